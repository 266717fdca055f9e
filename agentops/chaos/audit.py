"""Reading what the verdict rests on: the sandbox's ledger and logs, and the product's tables."""

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from agentops.chaos.judge import Effect, Made, Ran
from agentops.chaos.schedule import CREDIT, REPLY, TICKET
from agentops.demo.sandbox_client import SandboxClient
from approvals.models import ApprovalRequest
from reconciliation.models import Case, Operation
from runs import clock, record
from runs.models import Event, Run, StateEdge
from runs.models.run import RunState

PAGE = 1000


def _all(sandbox: SandboxClient, path: str, *, number: str) -> Iterator[dict[str, Any]]:
    """Every row of one of the sandbox's lists, oldest first."""
    after = 0
    while rows := sandbox.get(path, after=after, limit=PAGE)["data"]:
        yield from rows
        after = rows[-1][number]


def effects(sandbox: SandboxClient) -> list[Effect]:
    """What really happened, under the business keys that the ledger's own rows give."""
    found = []
    for row in _all(sandbox, "ledger", number="seq"):
        named, payload = row["objects"], row["payload"]
        if row["operation"] == CREDIT:
            noted = payload.get("metadata", {})
            key = f"credit/{noted.get('account')}/{noted.get('incident')}"
        elif row["operation"] in (TICKET, REPLY):
            key = f"{'ticket' if row['operation'] == TICKET else 'reply'}/{named['ticket']}"
        else:
            continue  # what billing or somebody at it did by itself
        found.append(Effect(key=key, identity=row["identity"] or ""))
    return found


def voided(sandbox: SandboxClient) -> int:
    """How many credits billing took back by itself."""
    return sum(row["operation"] == "billing.credit_notes.void" for row in _all(sandbox, "ledger", number="seq"))


def faults(sandbox: SandboxClient) -> Counter[str]:
    """The faults that calls really met and that deliveries of events really had, by mode; an event counts once."""
    found = Counter(row["fault"] for row in _all(sandbox, "requests", number="seq") if row["fault"])
    events = {
        (row["fault"], row["event"]) for row in _all(sandbox, "events", number="id") if row["fault"] and row["attempts"]
    }
    by_mode = Counter(mode for mode, _ in events)
    by_mode["events_forged"] //= 2  # the true event beside the forged one bears the mode as well
    return found + by_mode


def _chains(kind: str, key: str | None) -> dict[str, list[tuple[str, str]]]:
    """The edges in the record, by the operation (`key` names it in the data) or by the run."""
    found: dict[str, list[tuple[str, str]]] = {}
    for stream, data in Event.objects.filter(kind=kind).order_by("id").values_list("stream", "data"):
        found.setdefault(data[key] if key else stream, []).append((data["source"], data["target"]))
    return found


def made() -> list[Made]:
    """Every operation of the product."""
    chains = _chains("operation.state", "operation")
    cases = set(Case.objects.exclude(state="resolved").values_list("operation_id", flat=True))
    return [
        Made(
            key=_key(one.tool, one.effect),
            identity=one.identity,
            state=one.state,
            asked=one.decision.kind == "people",
            has_case=one.pk in cases,
            chain=tuple(chains.get(str(one.pk), ())),
        )
        for one in Operation.objects.select_related("decision")
    ]


def _key(tool: str, effect: Mapping[str, str]) -> str:
    if tool == "billing.create_credit":
        return f"credit/{effect['account']}/{effect['incident']}"
    return f"{'ticket' if tool == 'helpdesk.update_ticket' else 'reply'}/{effect['ticket']}"


def ran() -> list[Ran]:
    """Every run of the product."""
    chains = _chains("run.state", None)
    resting, now = at_rest(), clock.now()
    return [
        Ran(
            run=str(one.pk),
            state=one.state,
            at_rest=one.is_over or one.pk in resting,
            overdue=_overdue(one, now=now),
            record_breaks_at=record.verify(stream=record.stream_of(run_id=one.pk)),
            chain=tuple(chains.get(record.stream_of(run_id=one.pk), ())),
        )
        for one in Run.objects.all()
    ]


def at_rest() -> set[Any]:
    """The unfinished runs that visibly wait for a person: to decide, to go on with it, or to settle a case."""
    asked = ApprovalRequest.objects.filter(state="open", respond_by__gt=clock.now())
    people = Run.objects.filter(finished_at=None, state=RunState.NEEDS_PERSON)
    cases = Case.objects.exclude(state="resolved").filter(operation__run__finished_at=None)
    cases = cases.exclude(operation__state="succeeded")
    return {
        *asked.filter(run__state=RunState.AWAITING_APPROVAL).values_list("run_id", flat=True),
        *people.values_list("pk", flat=True),
        *cases.values_list("operation__run_id", flat=True),
    }


def under_way() -> int:
    """How many runs are neither over nor at rest."""
    live = set(Run.objects.filter(finished_at=None).values_list("pk", flat=True))
    return len(live - at_rest())


def _overdue(run: Run, *, now: dt.datetime) -> float:
    """Since when it has been due, or held under a lease that ran out, and nothing was recorded about it."""
    if run.is_over:
        return 0.0
    if run.wake_at is None and run.lease_until is None:
        begin = run.state_since
    else:
        begin = max(one for one in (run.wake_at, run.lease_until) if one is not None)
    last = (
        Event.objects.filter(stream=record.stream_of(run_id=run.pk))
        .order_by("-seq")
        .values_list("at", flat=True)
        .first()
    )
    marks = [one for one in (begin, last) if one is not None]
    return max(0.0, (now - max(marks)).total_seconds())


def edges() -> dict[str, frozenset[tuple[str, str]]]:
    """The edges that the database allows, by machine."""
    found: dict[str, set[tuple[str, str]]] = {}
    for machine, source, target in StateEdge.objects.values_list("machine", "source", "target"):
        found.setdefault(machine, set()).add((source, target))
    return {machine: frozenset(pairs) for machine, pairs in found.items()}


def starts_doubled(answers: Mapping[str, set[str]]) -> list[str]:
    """Keys that were answered with several runs, or with none that there is, and tickets with more than one run."""
    ids = {str(pk) for pk in Run.objects.values_list("pk", flat=True)}
    wrong = [ticket for ticket, runs in answers.items() if len(runs) != 1 or not runs <= ids]
    subjects = Counter(Run.objects.values_list("subject", flat=True))
    return sorted({*wrong, *(subject for subject, count in subjects.items() if count > 1)})
