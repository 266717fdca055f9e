"""Recording how a call ended. Nothing learned is ever dropped: each answer is an observation first, and moves the
operation only along its guarded edges. Needs no lease, so a frozen sender's late answer still counts.
"""

import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.db import connection, transaction

from reconciliation import late, moves
from reconciliation.case_opening import resolve_by_probe
from reconciliation.classification import WITHOUT_EFFECT, Outcome, Result, after_answer, unless_pending
from reconciliation.findings import as_found
from reconciliation.models import Attempt, Observation, Operation, WorkerProcess
from reconciliation.models.operation import IN_FLIGHT, OperationState
from reconciliation.services import gates
from reconciliation.settling import disagree, succeed
from runs import clock, faultpoints, hot, record, retry, transitions, words
from runs.models import Principal, Run
from runs.tools.base import Contract, Lookup, Record

log = logging.getLogger(__name__)
S = OperationState
F = Observation.Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How a call ended, as the sender saw it."""

    result: Result
    detail: str
    record: Record | None = None
    code: str = ""
    retry_after: str | None = None
    raw: dict[str, Any] = field(default_factory=dict)


_FINDINGS = {
    Result.NOT_SENT: F.NOT_SENT,
    Result.REFUSED: F.REFUSED,
    Result.OVERLOADED: F.REFUSED,
    Result.AMBIGUOUS: F.NO_ANSWER,
    Result.SENDER_GONE: F.NO_ANSWER,
}


def record_answer(
    *,
    attempt_id: uuid.UUID,
    answer: Answer,
    contract: Contract,
    actor: Principal,
    troubled: bool = True,
    then: Callable[[Run, Operation], None] | None = None,
) -> Operation:
    """Phase 3: store the answer, close the attempt if it is still open, and move the operation if it still waits; then
    tell all workers what it says about the tool (`troubled` False: all was well when the call began).

    `then` is done with the locked run in the same commit if the operation succeeds by it; when it fails the answer is
    stored all the same."""
    with transaction.atomic(durable=True):
        run, operation, attempt = moves.lock_attempt(attempt_id=attempt_id)
        waited = operation.state in IN_FLIGHT
        with record.together(run=run):
            _take_in(run, operation, attempt, answer, contract, actor, troubled)
        if then is not None and waited and operation.state == S.SUCCEEDED:
            _try(then, run, operation)
        faultpoints.reach("attempt.recorded.before")
        return operation


def _try(then: Callable[[Run, Operation], None], run: Run, operation: Operation) -> None:
    try:
        with transaction.atomic():
            then(run, operation)
    except Exception as problem:  # it is done again by itself, where it fails for all to see
        if connection.needs_rollback or connection.closed_in_transaction:
            raise  # the answer is lost with it, and has to be stored anew
        log.warning("after %s", operation.identity, exc_info=problem)


def _take_in(
    run: Run, operation: Operation, attempt: Attempt, answer: Answer, contract: Contract, actor: Principal,
    troubled: bool,
) -> None:  # fmt: skip
    as_sent = answer.record is not None and not answer.record.mismatch
    finding = (F.FOUND if as_sent else F.DIFFERENT) if answer.record else _FINDINGS[answer.result]
    observation = Observation(
        operation=operation,
        source=Observation.Source.SENDER,
        finding=finding,
        conclusive=answer.result in (Result.DONE, Result.NOT_SENT),
        summary=answer.detail,
        raw=as_found(Lookup(records=(answer.record,), pages=0)) if answer.record else answer.raw,
        actor=actor,
        asked_at=attempt.opened_at,
    )
    hot.insert(observation)
    if attempt.closed_at is None:
        _close(run=run, attempt=attempt, answer=answer, actor=actor)
    if operation.state in IN_FLIGHT:
        _apply(run=run, operation=operation, attempt=attempt, answer=answer, contract=contract, actor=actor)
    elif answer.record is not None:
        late.judge(run=run, operation=operation, found=answer.record, what="a late answer", actor=actor)
    elif answer.result not in WITHOUT_EFFECT:
        late.want_look_after_calls(operation=operation)
    transitions.wake(run=run, mark=False)
    gates.heard(
        name=contract.name, result=answer.result, detail=answer.detail, raw={} if answer.record else answer.raw,
        retry_after=answer.retry_after, now=attempt.closed_at or attempt.opened_at, troubled=troubled,
    )  # fmt: skip


def _close(*, run: Run, attempt: Attempt, answer: Answer, actor: Principal) -> None:
    attempt.closed_at = clock.now()
    attempt.result = answer.result
    attempt.detail = answer.detail
    attempt.answer = answer.record.raw if answer.record else answer.raw
    hot.update(row=attempt, names=["closed_at", "result", "detail", "answer"])
    record.append(
        run=run,
        kind="attempt.closed",
        actor=actor,
        operation=str(attempt.operation_id),
        number=attempt.number,
        result=str(answer.result),
        detail=answer.detail,
    )


def _apply(
    *, run: Run, operation: Operation, attempt: Attempt, answer: Answer, contract: Contract, actor: Principal
) -> None:
    """Move an operation in flight by its sender's answer."""
    others = operation.attempts.exclude(pk=attempt.pk).values_list("result", flat=True)
    is_only = operation.attempts_made == attempt.number == 1
    earlier = [Result(result) if result else Result.AMBIGUOUS for result in ([] if is_only else others)]
    as_sent = answer.record is not None and not answer.record.mismatch
    outcome = after_answer(earlier=earlier, result=answer.result, as_sent=as_sent)
    pending = answer.record is not None and answer.record.pending
    outcome = unless_pending(outcome=outcome, pending=pending, contract=contract)
    if outcome == Outcome.SUCCEEDED and answer.record is not None:
        succeed(run=run, operation=operation, found=answer.record, by="answer", why=answer.detail, actor=actor)
    elif outcome == Outcome.UNKNOWN:
        if operation.state == S.SENDING:
            moves.move(
                run=run,
                operation=operation,
                to=S.UNKNOWN,
                actor=actor,
                why=answer.detail,
                next_probe_at=clock.now() + retry.backoff(attempt=1, base=0.5, cap=2),
            )
        if answer.record is not None and not as_sent:
            disagree(run=run, operation=operation, found=answer.record, actor=actor)
    elif operation.state != S.SENDING:
        pass  # proof about this call alone, while an earlier one stays unknown: the probe goes on
    elif outcome == Outcome.ACCEPTED:
        moves.move(
            run=run, operation=operation, to=S.ACCEPTED, actor=actor,
            why=f"{words.system(operation.system)} has only taken it on",
            next_probe_at=clock.now() + retry.backoff(attempt=1, base=0.5, cap=2),
        )  # fmt: skip
    elif outcome == Outcome.FAILED:
        moves.move(
            run=run, operation=operation, to=S.FAILED, actor=actor, why=answer.code or answer.detail,
            failure=answer.detail,
            failure_code=answer.code[:60], settled_by="answer",
        )  # fmt: skip
        resolve_by_probe(run=run, operation=operation, evidence=answer.detail, actor=actor)
    else:
        wait = retry.retry_after(header=answer.retry_after, now=clock.now())
        jittered = retry.backoff(attempt=attempt.number, cap=60)
        due = clock.now() + (wait + jittered / 4 if wait is not None else jittered)
        moves.move(
            run=run, operation=operation, to=S.AUTHORISED, actor=actor, why=answer.detail, next_attempt_at=due
        )  # fmt: skip


def close_dead_attempt(*, operation_id: uuid.UUID, claimer: WorkerProcess, actor: Principal) -> Operation:
    """A claimer found the operation mid-call: it is unknown from now on. The attempt is closed if its sender is proved
    gone, or is the claimer itself (which is here, so not in the call). A sender that may only be frozen keeps its
    attempt open, and will report if it wakes."""
    with transaction.atomic(durable=True):
        run, operation = moves.lock(operation_id=operation_id)
        attempt = operation.attempts.select_related("sender").filter(closed_at__isnull=True).first()
        if attempt is not None and attempt.sender_id == claimer.pk:
            lost = Answer(result=Result.AMBIGUOUS, detail="the answer could not be recorded")
            _close(run=run, attempt=attempt, answer=lost, actor=actor)
        elif attempt is not None and attempt.sender.ended_at is not None:
            gone = Answer(result=Result.SENDER_GONE, detail="the process that made the call ended before it reported")
            _close(run=run, attempt=attempt, answer=gone, actor=actor)
        if operation.state == S.SENDING:
            why = "the call was begun and its answer never recorded"
            moves.move(
                run=run, operation=operation, to=S.UNKNOWN, actor=actor, why=why, next_probe_at=clock.now()
            )  # fmt: skip
        return operation
