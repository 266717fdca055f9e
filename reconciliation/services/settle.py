"""Recording what is known. Nothing learned is ever dropped: each answer and each lookup is an observation first, and
moves the operation only along its guarded edges. Needs no lease, so a frozen sender's late answer still counts.
"""

import datetime as dt
import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.db import connection, transaction

from reconciliation import late, moves, their_names
from reconciliation.attempts import may_have_acted, seen_recorded, sent_attempts, shown, standing_references
from reconciliation.case_opening import open_case, resolve_by_probe
from reconciliation.classification import (
    WITHOUT_EFFECT,
    Outcome,
    Result,
    Sent,
    absence_is_conclusive,
    after_answer,
    conclusive_from,
    unless_pending,
)
from reconciliation.comparison import in_words
from reconciliation.findings import as_found, finding_of
from reconciliation.models import Attempt, Observation, Operation, WorkerProcess
from reconciliation.models.case import Case
from reconciliation.models.operation import IN_FLIGHT, OperationState
from reconciliation.services import gates
from runs import clock, faultpoints, hot, record, retry, transitions
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
    then: Callable[[Operation], None] | None = None,
) -> Operation:
    """Phase 3: store the answer, close the attempt if it is still open, and move the operation if it still waits; then
    tell all workers what it says about the tool (`troubled` False: all was well when the call began).

    `then` is done in the same commit if the operation succeeds by it; when it fails the answer is stored all the
    same."""
    with transaction.atomic(durable=True):
        run, operation, attempt = moves.lock_attempt(attempt_id=attempt_id)
        waited = operation.state in IN_FLIGHT
        with record.together(run=run):
            _take_in(run, operation, attempt, answer, contract, actor, troubled)
        if then is not None and waited and operation.state == S.SUCCEEDED:
            _try(then, operation)
        faultpoints.reach("attempt.recorded.before")
        return operation


def _try(then: Callable[[Operation], None], operation: Operation) -> None:
    try:
        with transaction.atomic():
            then(operation)
    except Exception as problem:  # it is done again by itself, where it fails for all to see
        if connection.needs_rollback or connection.closed_in_transaction:
            raise  # the answer is lost with it, and has to be stored anew
        log.info("after %s: %s", operation.identity, problem)


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
            _disagree(run=run, operation=operation, found=answer.record, actor=actor)
    elif operation.state != S.SENDING:
        pass  # proof about this call alone, while an earlier one stays unknown: the probe goes on
    elif outcome == Outcome.ACCEPTED:
        moves.move(
            run=run, operation=operation, to=S.ACCEPTED, actor=actor, why=f"{operation.system} has only taken it on",
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


def succeed(*, run: Run, operation: Operation, found: Record, by: str, why: str, actor: Principal) -> bool:
    """Settle by what the other side has recorded; one external reference settles one operation only.

    Building block: the caller holds the locks. Returns False, with a case opened, when the reference is taken.
    """
    if taken := their_names.take(operation=operation, names=(found.reference, *found.also)):
        why = f"{taken.name} already settles another operation ({taken.operation.identity})"
        open_case(run=run, operation=operation, kind=Case.Kind.DUPLICATE, why=why, actor=actor)
        return False
    moves.move(
        run=run,
        operation=operation,
        to=S.SUCCEEDED,
        actor=actor,
        why=why,
        external_reference=found.reference,
        actual=found.raw,
        settled_by=by,
    )
    resolve_by_probe(run=run, operation=operation, evidence=why, actor=actor)
    return True


def _disagree(*, run: Run, operation: Operation, found: Record, actor: Principal) -> None:
    differing = in_words(mismatch=found.mismatch, currency=operation.currency)
    why = f"{found.reference} carries our identity but is not what was sent: {differing}"
    open_case(run=run, operation=operation, kind=Case.Kind.DIFFERENT, why=why, actor=actor)


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


def record_lookup(
    *,
    operation_id: uuid.UUID,
    lookup: Lookup | None,
    problem: str,
    asked_at: dt.datetime,
    contract: Contract,
    actor: Principal,
) -> Observation:
    """Store what a lookup found (`lookup` None and `problem` in words: it could not be asked) and settle if it can be.

    Found once as sent: succeeded, unless another call of ours may make one more. Found otherwise, or twice: a case.
    Absent: proof only when the absence rule says so (the caller then sends again or fails it). Unreachable is not
    absent. Past the contract's probes a case is opened. What is shown against a settled operation is a case too.
    """
    with transaction.atomic(durable=True):
        run, operation = moves.lock(operation_id=operation_id)
        attempts = sent_attempts(operation=operation)
        finding, summary, conclusive = finding_of(
            lookup=lookup,
            problem=problem,
            asked_at=asked_at,
            contract=contract,
            attempts=attempts,
            seen=seen_recorded(operation=operation),
        )
        observation = Observation.objects.create(
            operation=operation,
            source=Observation.Source.PROBE,
            finding=finding,
            conclusive=conclusive,
            summary=summary,
            raw=as_found(lookup) if lookup else {},
            actor=actor,
            asked_at=asked_at,
        )
        record.append(
            run=run, kind="probe.made", actor=actor, operation=str(operation.pk), finding=str(finding), summary=summary,
            conclusive=conclusive,
        )  # fmt: skip
        if operation.state in IN_FLIGHT:
            _after_probe(run, operation, observation, lookup, contract, attempts, actor)
        else:
            for one in lookup.records if lookup else ():
                late.judge(run=run, operation=operation, found=one, what="a lookup", actor=actor, asked_at=asked_at)
        late.looked(run=run, operation=operation, by=observation, contract=contract, actor=actor)
        transitions.wake(run=run, mark=False)
        faultpoints.reach("probe.recorded.before")
        return observation


def _after_probe(
    run: Run,
    operation: Operation,
    observation: Observation,
    lookup: Lookup | None,
    contract: Contract,
    attempts: list[Sent],
    actor: Principal,
) -> None:
    """Settle by the finding or schedule the next question."""
    operation.probes_made += 1
    over = conclusive_from(contract=contract, attempts=attempts)
    pending = lookup is not None and any(one.pending for one in lookup.records)
    if lookup is not None and operation.state == S.ACCEPTED and _not_carried_out(run, operation, lookup, actor):
        operation.save(update_fields=["probes_made"])
        return
    if pending:
        pass
    elif lookup is not None and observation.finding == F.FOUND:
        if _found(run, operation, observation, lookup.records[0], over, actor):
            operation.save(update_fields=["probes_made"])
            return
    elif lookup is not None and observation.finding == F.DIFFERENT:
        _disagree(run=run, operation=operation, found=lookup.records[0], actor=actor)
    elif observation.finding == F.SEVERAL:
        open_case(run=run, operation=operation, kind=Case.Kind.DUPLICATE, why=observation.summary, actor=actor)
    waited = pending and _still_to_come(operation, contract)
    if (
        operation.probes_made >= contract.max_probes
        and not waited
        and not operation.cases.exclude(state="resolved").exists()
    ):
        why = f"asked {operation.probes_made} times; last answer: {observation.summary}"
        open_case(run=run, operation=operation, kind=Case.Kind.NOT_CONFIRMED, why=why, actor=actor)
    now = clock.now()
    due = now + retry.backoff(attempt=operation.probes_made, base=1, cap=900)
    if waited:
        pass
    elif observation.finding == F.FOUND or (observation.finding == F.ABSENT and not observation.conclusive):
        proof = over + late.MOMENT
        due = proof if proof > now else due  # the next question is worth asking once its answer can be proof
    wanted = operation.next_probe_at  # set while this question was under way: somebody wants a fresh answer
    operation.next_probe_at = min(due, wanted) if wanted is not None and wanted > observation.asked_at else due
    operation.save(update_fields=["probes_made", "next_probe_at"])


def _still_to_come(operation: Operation, contract: Contract) -> bool:
    """Is what they took on within the time in which the contract says its outcome is known?"""
    since = operation.unknown_since
    return contract.final_within is not None and since is not None and clock.now() < since + contract.final_within


def _not_carried_out(run: Run, operation: Operation, lookup: Lookup, actor: Principal) -> bool:
    """They took it on and then did not do it, which the one record that they ever showed says: by their own word."""
    every = shown(observations=operation.observations.order_by("at"))
    if len(lookup.records) != 1 or not all(one.void for one in every):
        return False
    why = f"{operation.system} took it on as {lookup.records[0].reference}, and did not carry it out"
    moves.move(
        run=run, operation=operation, to=S.FAILED, actor=actor, why=why, failure=why, failure_code="not_carried_out",
        settled_by="probe",
    )  # fmt: skip
    resolve_by_probe(run=run, operation=operation, evidence=why, actor=actor)
    return True


def _found(
    run: Run, operation: Operation, observation: Observation, found: Record, over: dt.datetime, actor: Principal
) -> bool:
    """Settle by the one record that is shown, unless that may not be all there is: another one was shown before, or of
    several calls, each of which may make one, not all were over (`over`) and shown when the question was put."""
    standing = standing_references(observations=operation.observations.order_by("at"))
    if others := [one for one in standing if one != found.reference]:
        why = f"{observation.summary}; shown before: {', '.join(others)}"
        open_case(run=run, operation=operation, kind=Case.Kind.DUPLICATE, why=why, actor=actor)
        return False
    acted = may_have_acted(operation=operation)
    if len(acted) > 1 and (observation.asked_at <= over or any(one.may_wake for one in acted)):
        return False
    return succeed(
        run=run, operation=operation, found=found, by="probe", why=observation.summary, actor=actor
    )  # fmt: skip


def fail_as_absent(*, operation_id: uuid.UUID, contract: Contract, code: str, actor: Principal) -> bool:
    """Absence was proved and the operation may not be sent again: it failed. False when it has moved meanwhile or the
    latest lookup is no proof, as when another worker has sent it since. `code` is absent or gave_up."""
    with transaction.atomic(durable=True):
        run, operation = moves.lock(operation_id=operation_id)
        probe = operation.observations.filter(source="probe").order_by("-asked_at").first()
        if operation.state != S.UNKNOWN or probe is None or probe.finding != F.ABSENT:
            return False
        attempts = sent_attempts(operation=operation)
        seen = seen_recorded(operation=operation)
        if not absence_is_conclusive(contract=contract, attempts=attempts, asked_at=probe.asked_at, seen=seen):
            return False
        why = "it is proved that nothing happened, and it may not be sent again"
        moves.move(
            run=run, operation=operation, to=S.FAILED, actor=actor, why=why, failure=probe.summary,
            failure_code=code, settled_by="probe"
        )  # fmt: skip
        resolve_by_probe(run=run, operation=operation, evidence=probe.summary, actor=actor)
        transitions.wake(run=run, mark=False)
        return True
