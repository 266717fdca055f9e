"""Starting a run: once per starting event, with its principals and capabilities fixed for good."""

from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction

from runs import hot, record
from runs.canonical import digest
from runs.models import Principal, Run
from runs.nudging import nudge_relay


class StartConflict(Exception):
    """The same key was used before with other parameters; `run` is the one it made then."""

    def __init__(self, run: Run) -> None:
        super().__init__("this key was used before with other parameters")
        self.run = run


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    run: Run
    created: bool


def start(
    *,
    workflow: str,
    workflow_version: str,
    title: str,
    subject: str,
    data: dict[str, Any],
    start_key: str,
    capabilities: list[str],
    initiator: Principal,
    run_as: Principal,
    agent: Principal,
    terms: dict[str, Any] | None = None,
    also: dict[str, Any] | None = None,
) -> Started:
    """Make the run, or find the one that the key made before. `data` is the workflow's validated input; `terms` what
    narrows its capabilities, by tool (see `approvals.capabilities`); `also` what else the starter gave, by name.

    Raises StartConflict when the key was used with another workflow or input, or other things given.
    """
    # the version is left out: the same event after a release is still the same event
    input_digest = digest({"workflow": workflow, "input": data, **(also or {})})
    with transaction.atomic(durable=True):
        run = Run(
            workflow=workflow,
            workflow_version=workflow_version,
            title=title,
            subject=subject,
            input=data,
            input_digest=input_digest,
            start_key=start_key,
            capabilities=capabilities,
            terms=terms or {},
            initiator=initiator,
            run_as=run_as,
            agent=agent,
        )
        try:
            with transaction.atomic():
                hot.insert(run)
        except IntegrityError:
            run = Run.objects.get(start_key=start_key)
            if run.input_digest != input_digest:
                raise StartConflict(run) from None
            return Started(run=run, created=False)
        record.append(
            run=run,
            kind="run.started",
            actor=initiator,
            title=title,
            subject=subject,
            workflow=workflow,
            workflow_version=workflow_version,
            input=data,
            capabilities=capabilities,
            terms=terms or {},
        )
        nudge_relay(due=True)
    return Started(run=run, created=True)
