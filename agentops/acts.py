"""Everything an operator does to a run, by name: pause, resume, cancel, try again now, hand to a person.

The last two need to know of operations and requests, so they are here and not beside the others. Each acts on the
locked run, inside `runs.services.operate.carry_out`.
"""

import datetime as dt
import uuid
from collections.abc import Callable
from functools import partial

from agentops.reasons import Reason
from agentops.steps import base
from approvals import freezes
from approvals.models import ApprovalRequest, Freeze
from approvals.models.request import RequestState
from reconciliation.models import Attempt, Operation
from reconciliation.models.operation import IN_FLIGHT
from runs import clock, record, transitions, waiting
from runs.models import Principal, Run
from runs.models.run import RunState
from runs.services import operate
from runs.services.operate import Inner, OperateResult


def trying_again(run: Run, principal: Principal, reason: str) -> OperateResult:
    """Let a run that waits go on now. Where the outcome of something sent is not known, the other side is asked now;
    nothing is ever sent again by this.

    Refusals: cancelling, paused, needs_person, frozen, awaits_answer, at_work, own_wait, asked_to_wait.
    """
    if refused := _stands_still(run):
        return refused
    waiting = Operation.objects.select_for_update(of=("self",)).exclude(settled_at__isnull=False).filter(run=run)
    operation = waiting.order_by("-created_at").first()
    if operation is not None and operation.is_unconfirmed:
        operation.next_probe_at = clock.now()
        operation.save(update_fields=["next_probe_at"])
        record.append(run=run, kind="probe.requested", actor=principal, operation=str(operation.pk), reason=reason)
        return _woken(run)
    if refused := _held_by_others(run, operation):
        return refused
    if operation is not None and operation.next_attempt_at is not None:
        operation.next_attempt_at = clock.now()
        operation.save(update_fields=["next_attempt_at"])
    record.append(run=run, kind="run.try_again", actor=principal, reason=reason, by=str(principal))
    return _woken(run)


def _woken(run: Run) -> OperateResult:
    transitions.wake(run=run)
    return OperateResult(code="ok")


def _stands_still(run: Run) -> OperateResult | None:
    """Why waking it would change nothing: a person's word keeps it where it is."""
    if run.cancel_requested_at is not None:
        return OperateResult(code="cancelling", detail={"by": str(run.cancelled_by)})
    if run.paused_at is not None:
        return OperateResult(code="paused")
    if run.state == RunState.NEEDS_PERSON:
        return OperateResult(code="needs_person")
    return None


def _held_by_others(run: Run, operation: Operation | None) -> OperateResult | None:
    if freeze := _freeze(run):
        return OperateResult(code="frozen", detail={"freeze": freeze})
    if run.wake_at is not None and run.wake_at <= clock.now():
        return OperateResult(code="at_work")
    if ApprovalRequest.objects.filter(run=run, state=RequestState.OPEN).exists():
        return OperateResult(code="awaits_answer")
    wait = waiting.open_wait(run=run) if run.frozen_by is None else None
    if wait is not None and run.wake_at == wait.due_at:  # and for nothing else, such as another worker
        return OperateResult(code="own_wait", detail={"what": wait.words})
    if operation is None or operation.next_attempt_at is None or operation.next_attempt_at <= clock.now():
        return None
    last = operation.attempts.order_by("-number").first()
    if last is not None and last.result == Attempt.Result.OVERLOADED:
        until = operation.next_attempt_at.isoformat()
        return OperateResult(code="asked_to_wait", detail={"system": operation.system, "until": until})
    return None


def _freeze(run: Run) -> str:
    """The freeze that holds it, in words. Once lifted it holds nothing, also before the relay has woken the run."""
    if run.frozen_by is None:
        return ""
    if Freeze.objects.filter(pk=run.frozen_by, lifted_at__isnull=True).exists():
        return run.waits_for
    another = freezes.over(workflow=run.workflow)
    return "" if another is None else another.words


def handing_over(run: Run, principal: Principal, reason: str) -> OperateResult:
    """Take the run out of the machine's hands: whoever takes it decides how it goes on. What waits for approval is
    withdrawn, what was never sent is given up; while something is in flight it stays with its run.

    Refusals: cancelling, needs_person, in_flight.
    """
    if run.cancel_requested_at is not None:
        return OperateResult(code="cancelling", detail={"by": str(run.cancelled_by)})
    if run.state == RunState.NEEDS_PERSON:
        return OperateResult(code="needs_person")
    flying = Operation.objects.filter(run=run, state__in=IN_FLIGHT).first()
    if flying is not None:
        return OperateResult(code="in_flight", detail={"system": flying.system})
    base.hand_over(run, code=Reason.HANDED_OVER, reason=f"{principal}: {reason}", actor=principal)
    return OperateResult(code="ok")


INNER: dict[str, Inner] = {
    "pause": operate.pausing,
    "resume": operate.resuming,
    "again": trying_again,
    "to-person": handing_over,
    "cancel": operate.cancelling,
}


def perform(
    *,
    act: str,
    run_id: uuid.UUID,
    principal: Principal,
    reason: str,
    keep: Callable[[OperateResult], None] | None = None,
    nowait: bool = False,
    paused_at: dt.datetime | None = None,
) -> OperateResult:
    """One of `INNER` on one run, in one durable transaction. Resuming ends the pause that began `paused_at` and no
    other, where that is given. Raises KeyError for another act, and Run.DoesNotExist."""
    inner = INNER[act]
    if act == "resume":
        inner = partial(operate.resuming, shown=paused_at)
    return operate.carry_out(
        act=act, inner=inner, run_id=run_id, principal=principal, reason=reason, keep=keep, nowait=nowait
    )
