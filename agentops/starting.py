"""Starting a run of a workflow: validate its input, fix its principals, make it once."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from agentops.narrowing import Less, narrowed
from agentops.workflows.base import Narrowed, Workflow
from agentops.workflows.correction_notice import CorrectionNotice
from agentops.workflows.registry import UnknownWorkflow, workflow
from agentops.workflows.reversal import Reversal
from approvals import rules
from runs import clock
from runs.canonical import digest, nfc
from runs.models import Principal, Run
from runs.services import principals
from runs.services.runs import Started, start
from runs.services.signalling import DOCUMENT
from runs.shape import in_words


class BadInput(Exception):
    """The input is not what the workflow takes; `faults` is a list of {"field", "message"}."""

    def __init__(self, faults: list[dict[str, str]]) -> None:
        super().__init__("; ".join(f"{one['field']}: {one['message']}" for one in faults))
        self.faults = faults


# what they say or undo comes from our own record, which nobody can give by hand
FROM_WITHIN = {
    Reversal.name: "it is proposed from the run, or the case, of what it undoes",
    CorrectionNotice.name: "a correction starts it where the customer had been written to",
}


def start_workflow(
    *,
    name: str,
    data: Any,
    initiator: Principal,
    start_key: str = "",
    from_within: bool = False,
    less: Mapping[str, Less] | None = None,
) -> Started:
    """Start the newest version of the workflow `name`. Without a key of the starter's own, the workflow's natural one
    is used, so the same ticket is one run. `from_within`: the product itself starts it. `less` are the tools that are
    left to the run, each with what narrows it further; None leaves all that the workflow grants.

    Raises UnknownWorkflow, BadInput, BadTerms, StartConflict.
    """
    found = workflow(name)
    if name in FROM_WITHIN and not from_within:
        raise UnknownWorkflow(f"{name} is not started by its name: {FROM_WITHIN[name]}")
    try:
        checked = found.Input.model_validate(data).plain_dict()
    except ValidationError as problem:
        raise BadInput([_fault(one["loc"], in_words(one)) for one in problem.errors()]) from None
    subject = found.subject(data=checked)
    kind = Principal.Kind.AGENT if found.choices else Principal.Kind.WORKFLOW
    start_key = start_key or f"{found.name}:{found.start_key(data=checked)}"
    tools, terms = list(found.tools), _terms(found, checked)
    if less is not None:
        again = Run.objects.filter(start_key=start_key).exists()  # told as it was, whatever is over since
        tools, terms = narrowed(tools=tools, terms=terms, wanted=less, now=None if again else clock.now())
    return start(
        workflow=found.name,
        workflow_version=found.version,
        title=subject.title,
        subject=subject.subject,
        data=checked,
        start_key=start_key,
        capabilities=tools,
        terms=terms,
        also={} if less is None else {"capabilities": {tool: one.plain() for tool, one in less.items()}},
        initiator=initiator,
        run_as=principals.find_or_make(
            kind=Principal.Kind.SERVICE, key=f"service:{found.name}", label=f"{found.title} service"
        ),
        agent=principals.find_or_make(kind=kind, key=f"{kind}:{found.name}", label=f"{found.title} agent"),
    )


def _terms(found: Workflow, data: dict[str, Any]) -> dict[str, Any]:
    """What narrows the run's tools, as it is stored. A condition that cannot be read is a fault of the workflow."""
    terms: dict[str, Any] = {}
    for name, grant in found.grants(data=data).items() if isinstance(found, Narrowed) else ():
        one: dict[str, Any] = {}
        if grant.only:
            one["only"] = {variable: nfc(list(values)) for variable, values in grant.only.items()}
        if grant.when:
            rules.compiled(source=grant.when)
            one["when"] = grant.when
        if grant.within is not None:
            one["until"] = (clock.now() + grant.within).isoformat()
        terms[name] = one
    return terms


def checked_payload(*, run: Run, event: str, payload: dict[str, Any]) -> dict[str, Any]:
    """What a run is told, checked by the shape that the run's own version gives the event; a document has none.

    Raises BadInput, naming each field, and UnknownWorkflow when this process does not know the run's version.
    """
    if event == DOCUMENT:
        return payload
    events = workflow(run.workflow, run.workflow_version).events
    if event not in events:
        known = ", ".join([DOCUMENT, *sorted(events)])
        raise BadInput([{"field": "kind", "message": f"a run of {run.workflow} can be told: {known}"}])
    try:
        checked = events[event].model_validate(payload).plain_dict()
        digest(checked)  # it is to be evidence
    except ValidationError as problem:
        raise BadInput([_fault(("payload", *one["loc"]), in_words(one)) for one in problem.errors()]) from None
    except ValueError as problem:
        raise BadInput([_fault(("payload",), str(problem))]) from None
    return checked


def _fault(path: tuple[int | str, ...], message: str) -> dict[str, str]:
    field = ".".join(str(part) for part in path) or "input"
    return {"field": field, "message": message.removeprefix("Value error, ")}
