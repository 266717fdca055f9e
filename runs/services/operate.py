"""What people do to a run: pause, resume, cancel it, take it over, send it on, close it. All of it is recorded; what
changes the run's way has a reason.

Whoever acts is looked at under the run's lock: active, and holding the right to operate runs at that very moment.
"""

import datetime as dt
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from runs import clock, holding, record, rights, transitions
from runs.models import Principal, Run
from runs.models.run import RunState
from runs.nudging import nudge_relay
from runs.texts import typed


@dataclass(frozen=True, slots=True, kw_only=True)
class OperateResult:
    """`code` is ok, or a refusal: over, already_requested, reason_needed, not_waiting, not_paused, paused_anew,
    claimed_by_other, no_right (recorded in the run's stream); of trying again and handing over: see `agentops.acts`."""

    code: str
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.code == "ok"


def _lock(run_id: uuid.UUID, *, nowait: bool = False) -> Run:
    locked = Run.objects.select_for_update(of=("self",), nowait=nowait)
    return locked.select_related("owner", "cancelled_by").get(pk=run_id)


def _no_right(run: Run, principal: Principal, act: str) -> OperateResult | None:
    code = rights.objection(run=run, principal=principal, permission=holding.OPERATE, act=act)
    return OperateResult(code=code) if code else None


# what is done to the locked run, by somebody who may and with a reason; it says what became of that
Inner = Callable[[Run, Principal, str], OperateResult]


def carry_out(
    *,
    act: str,
    inner: Inner,
    run_id: uuid.UUID,
    principal: Principal,
    reason: str,
    keep: Callable[[OperateResult], None] | None = None,
    nowait: bool = False,
) -> OperateResult:
    """One act on one run that is not over: one durable transaction, in which `keep` may store what became of it. With
    `nowait` a run that somebody else has locked raises OperationalError at once."""
    reason = typed(text=reason)
    if not reason:
        return OperateResult(code="reason_needed")
    with transaction.atomic(durable=True):
        run = _lock(run_id, nowait=nowait)
        result = _no_right(run, principal, act)
        if result is None and run.is_over:
            result = OperateResult(code="over", detail={"state": run.state})
        result = result or inner(run, principal, reason)
        if keep is not None:
            keep(result)
        return result


def cancelling(run: Run, principal: Principal, reason: str) -> OperateResult:
    """Ask the run to stop. What has not started never will; what is in flight is settled first; what was done stays."""
    if run.cancel_requested_at is not None:
        return OperateResult(code="already_requested", detail={"by": str(run.cancelled_by)})
    run.cancel_requested_at, run.cancel_reason, run.cancelled_by = clock.now(), reason, principal
    run.save(update_fields=["cancel_requested_at", "cancel_reason", "cancelled_by"])
    record.append(run=run, kind="run.cancel_requested", actor=principal, reason=reason, by=str(principal))
    transitions.wake(run=run)
    return OperateResult(code="ok")


PAUSED = "a person to resume it"


def pausing(run: Run, principal: Principal, reason: str) -> OperateResult:
    """Let nothing new begin. The step in flight finishes, what was sent is settled, deadlines go on running."""
    if run.paused_at is not None:
        return OperateResult(code="already_requested", detail={"by": "Somebody"})
    return _set_pause(run, principal, reason, "run.paused", clock.now())


def resuming(run: Run, principal: Principal, reason: str, *, shown: dt.datetime | None = None) -> OperateResult:
    """Let a paused run go on where it was; not when it was paused at another moment than the page has `shown`, since
    that pause has its own reason."""
    if run.paused_at is None:
        return OperateResult(code="not_paused")
    if shown is not None and run.paused_at != shown:
        return OperateResult(code="paused_anew")
    return _set_pause(run, principal, reason, "run.resumed", None)


def _set_pause(run: Run, principal: Principal, reason: str, kind: str, at: dt.datetime | None) -> OperateResult:
    run.paused_at = at
    run.save(update_fields=["paused_at"])
    record.append(run=run, kind=kind, actor=principal, reason=reason, by=str(principal))
    transitions.wake(run=run)
    return OperateResult(code="ok")


def cancel(*, run_id: uuid.UUID, principal: Principal, reason: str) -> OperateResult:
    return carry_out(act="cancel", inner=cancelling, run_id=run_id, principal=principal, reason=reason)


def pause(*, run_id: uuid.UUID, principal: Principal, reason: str) -> OperateResult:
    return carry_out(act="pause", inner=pausing, run_id=run_id, principal=principal, reason=reason)


def resume(*, run_id: uuid.UUID, principal: Principal, reason: str) -> OperateResult:
    return carry_out(act="resume", inner=resuming, run_id=run_id, principal=principal, reason=reason)


def _for_person(run: Run, principal: Principal, act: str) -> OperateResult | None:
    """Refusals shared by everything done to a run that needs a person."""
    if refused := _no_right(run, principal, act):
        return refused
    if run.is_over:
        return OperateResult(code="over", detail={"state": run.state})
    if run.state != RunState.NEEDS_PERSON:
        return OperateResult(code="not_waiting", detail={"state": run.state})
    owner = holding.holder(run=run)
    if owner is not None and owner.pk != principal.pk:
        return OperateResult(code="claimed_by_other", detail={"by": str(owner)})
    return None


def claim(*, run_id: uuid.UUID, principal: Principal) -> OperateResult:
    """Take a run that needs a person, for `holding.CLAIM_LAPSES`; claiming again renews it."""
    with transaction.atomic(durable=True):
        run = _lock(run_id)
        if refused := _for_person(run, principal, "claim"):
            return refused
        run.owner = principal
        run.waits_for = f"{principal} to go on"
        run.save(update_fields=["owner", "waits_for"])
        record.append(run=run, kind=holding.CLAIMED, actor=principal, by=str(principal))
        return OperateResult(code="ok")


def release(*, run_id: uuid.UUID, principal: Principal) -> OperateResult:
    """Give a claimed run back to the list."""
    with transaction.atomic(durable=True):
        run = _lock(run_id)
        if refused := _for_person(run, principal, "release"):
            return refused
        run.owner = None
        run.waits_for = holding.awaited(run=run)
        run.save(update_fields=["owner", "waits_for"])
        record.append(run=run, kind="run.released_by_person", actor=principal, by=str(principal))
        return OperateResult(code="ok")


def _send_on(run_id: uuid.UUID, principal: Principal, reason: str, to: RunState, act: str) -> OperateResult:
    reason = typed(text=reason)
    if not reason:
        return OperateResult(code="reason_needed")
    with transaction.atomic(durable=True):
        run = _lock(run_id)
        if refused := _for_person(run, principal, act):
            return refused
        transitions.move(run=run, to=to, actor=principal, why=reason, refusals=[], times_out_of_date=0, tries_in_row=0)
        nudge_relay()
        return OperateResult(code="ok")


def gather_again(*, run_id: uuid.UUID, principal: Principal, reason: str) -> OperateResult:
    """Read every fact again and go on from there."""
    return _send_on(run_id, principal, reason, RunState.GATHERING, "gather_again")


def decide_again(*, run_id: uuid.UUID, principal: Principal, reason: str) -> OperateResult:
    """Ask the agent once more about the facts as they were read last."""
    return _send_on(run_id, principal, reason, RunState.DECIDING, "decide_again")


def close(
    *, run_id: uuid.UUID, principal: Principal, as_state: str, reason: str, what_stays: Callable[[Run], str]
) -> OperateResult:
    """End the run by hand, as completed or failed. Its outcome is the reason, and after it `what_stays`: what the
    locked run has done in the world, which the reason may leave out or deny."""
    reason = typed(text=reason)
    if not reason:
        return OperateResult(code="reason_needed")
    with transaction.atomic(durable=True):
        run = _lock(run_id)
        if refused := _for_person(run, principal, "close"):
            return refused
        target = RunState(as_state)
        if target not in (RunState.COMPLETED, RunState.FAILED):
            raise ValueError(f"a person closes a run as completed or failed, not {as_state}")
        stays = what_stays(run)
        outcome = f"{reason.rstrip('.')}. {stays}" if stays else reason
        transitions.move(run=run, to=target, actor=principal, why=reason, outcome=outcome)
        return OperateResult(code="ok")
