"""Where a run stands: what it waits for, until when, and what has been done in the world by it."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from agentops import asked
from approvals import freezes, heard
from approvals.models import ApprovalRequest
from approvals.models.request import RequestState
from approvals.staffing import NOBODY
from reconciliation.models import Case, Correction, Operation
from reconciliation.models.case import UNRESOLVED
from reconciliation.models.operation import IN_FLIGHT, OperationState
from reconciliation.queries import corrections, disputes
from runs import holding, waiting
from runs.models import Run, Wait
from runs.models.run import RunState
from runs.services.operate import PAUSED

S = RunState
DONE = (OperationState.SUCCEEDED, OperationState.COMPENSATED)
NOTHING = (OperationState.FAILED, OperationState.ABANDONED)

_THEN = {True: "then it goes on by itself", False: "then it goes on without it"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """`at` is when, None for a clock that is stopped; `then` what happens at that time."""

    word: str
    at: dt.datetime | None
    then: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Whereabouts:
    """`waits` is empty while the run is at work; `done` are operations the other side has recorded, `unsure` those that
    may have happened, `nothing` those proved not done or given up, without those in `disputed`: settled operations of
    which the other side shows something else. `corrected` is what was put right in our own
    record. `wait` is what its workflow waits for; `started_for` is the wait of the
    run that started this one."""

    run: Run
    waits: str
    deadline: Deadline | None
    request: ApprovalRequest | None
    done: Sequence[Operation]
    unsure: Sequence[Operation]
    nothing: Sequence[Operation]
    cases: Sequence[Case]
    disputed: Sequence[Case]
    corrected: Sequence[Correction]
    wait: Wait | None
    started_for: Wait | None


def of(*, run: Run) -> Whereabouts:
    """Five queries, and a few more for an open request, however many have answered it."""
    open_states = [RequestState.OPEN, RequestState.APPROVED]
    asked = ApprovalRequest.objects.filter(run=run, state__in=open_states).select_related("proposal")
    request = asked.order_by("-created_at").first()
    operations = list(Operation.objects.filter(run=run).order_by("created_at"))
    cases = list(Case.objects.filter(UNRESOLVED, operation__run=run).select_related("claimed_by"))
    disputed = list(disputes().filter(operation__run=run).order_by("number"))
    wait = waiting.open_wait(run=run)
    started_for = Wait.objects.filter(other=run, starts__isnull=False).select_related("run").first()
    doubtful = {case.operation_id for case in disputed}
    return Whereabouts(
        run=run,
        waits=_waits(run=run, request=request),
        deadline=_deadline(run=run, request=request, operations=operations, wait=wait),
        request=request,
        done=[one for one in operations if one.state in DONE],
        unsure=[one for one in operations if one.state in IN_FLIGHT],
        nothing=[one for one in operations if one.state in NOTHING and one.pk not in doubtful],
        cases=cases,
        disputed=disputed,
        corrected=list(corrections().filter(operation__run=run)) if any(one.corrected for one in operations) else [],
        wait=wait,
        started_for=started_for,
    )


def _waits(*, run: Run, request: ApprovalRequest | None) -> str:
    if run.is_over:
        return ""
    if run.paused_at is not None and run.waits_for == PAUSED:
        return PAUSED
    if run.frozen_by is not None:
        return run.waits_for
    if run.state == S.AWAITING_APPROVAL and request is not None:
        if request.state == RequestState.APPROVED:
            return "Approved, waiting to run"
        if run.waits_for.startswith(NOBODY):
            return run.waits_for
        progress = asked.progress(request, yes=heard.yes(requests=[request]))
        return f"An answer from {asked.asked_words(request)}{f' ({progress})' if progress else ''}"
    if run.state == S.NEEDS_PERSON:
        owner = holding.holder(run=run)
        return f"{owner} has it" if owner else "A person to take it over"
    if run.state == S.OUTCOME_UNKNOWN:
        return run.waits_for or "Certainty about what happened"
    return run.waits_for if run.state in (S.WAITING, S.AWAITING_APPROVAL, S.EXECUTING) else ""


def _deadline(
    *, run: Run, request: ApprovalRequest | None, operations: Sequence[Operation], wait: Wait | None
) -> Deadline | None:
    if run.is_over:
        return None
    if wait is not None and run.waits_for == wait.words:
        if wait.due_at is None:
            return None
        timer = wait.kind == Wait.Kind.TIMER
        return Deadline(word="Until" if timer else "At the latest", at=wait.due_at, then=_THEN[timer])
    if request is not None and request.state == RequestState.OPEN:
        late = "is rejected" if request.when_late == "reject" else "expires and a person gets the run"
        then = f"then it {late}"
        if freezes.over(workflow=run.workflow, tool=request.proposal.tool) is not None:
            then = "that clock stands still under the freeze, and moves on when it is lifted"
            if request.respond_by < request.valid_until:
                return Deadline(word="Answer: stopped while frozen", at=None, then=then)
        return Deadline(word="Answer until", at=request.respond_by, then=then)
    if request is not None:
        return Deadline(word="Approval good until", at=request.valid_until, then="then it no longer counts")
    probes = [one.next_probe_at for one in operations if one.state in IN_FLIGHT and one.next_probe_at is not None]
    if probes:
        return Deadline(word="Asked again", at=min(probes), then="the other side is asked what it has recorded")
    ready = [one for one in operations if one.state == OperationState.AUTHORISED]
    tries = [one.next_attempt_at for one in ready if one.next_attempt_at is not None]
    if tries:
        return Deadline(word="Next attempt", at=min(tries), then="nothing has been done so far")
    if run.state == S.WAITING and run.wake_at is not None:
        return Deadline(word="Goes on", at=run.wake_at, then="it tries again by itself")
    return None
