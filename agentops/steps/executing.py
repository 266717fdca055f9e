"""Carrying an action out: facts afresh, checks and rows under lock, the call, what is known. One attempt a step."""

import time
from collections import Counter
from collections.abc import Collection
from dataclasses import asdict
from functools import partial

from django.conf import settings

from agentops import policy_now
from agentops.patience import patiently
from agentops.reasons import Reason
from agentops.steps.base import (
    Next,
    Step,
    committed,
    committing,
    done_so_far,
    hand_over,
    may_go_on,
    out_of_date,
    park,
    wait,
)
from agentops.steps.gathering import go_on, read_facts
from agentops.steps.looking import held_up
from agentops.workflows.base import Follow
from approvals import freezes
from approvals.queries import binding_over
from reconciliation import moves, still_allowed
from reconciliation.classification import Resend, Result
from reconciliation.models import Operation
from reconciliation.models.operation import SETTLED_ABSENT, UNCONFIRMED, OperationState
from reconciliation.services import answers, execute, processes
from reconciliation.services.answers import Answer
from runs import clock, faultpoints, hot, leases, record, transitions, words
from runs.hiding import without_secrets
from runs.models import Evidence, Proposal, Run
from runs.models.run import RunState
from runs.services import principals
from runs.tools.base import Ambiguous, NotSent, Overloaded, Refused, Tool
from runs.tools.registry import tool

S = OperationState
DONE, NOT_DONE = (S.SUCCEEDED, S.COMPENSATED), (S.FAILED, S.ABANDONED)
VOID_READ_AGAIN = frozenset(
    {"out_of_date", "rights_lost", "not_approved", "policy_changed", "contract_changed", "standing_over"}
)
TRY_AGAIN_CODES = frozenset({"precondition_failed", "absent"})  # proved undone, and worth proposing afresh


_OPERATION = hot.Query(lambda proposal: Operation.objects.filter(proposal=proposal))


def carry_out(step: Step) -> Next:
    proposal = step.proposal()
    operation = _OPERATION.first(proposal=proposal.pk)
    if operation is None or operation.state == S.AUTHORISED:
        return _send_or_wait(step, proposal, operation)
    if operation.state == S.SENDING:
        processes.record_ended()
        answers.close_dead_attempt(operation_id=operation.pk, claimer=processes.current(), actor=step.actor)
        return Next.GO_ON
    if operation.is_unconfirmed:
        return _lose_track(step)
    if operation.state in DONE:
        return _after_success(step)
    return _after_failure(step)


def _as_locked(step: Step, states: Collection[S]) -> Operation | None:
    """The operation under the lock of its run, which whoever changes it takes first. None when it has left these
    states since it was looked at: then the step is taken anew."""
    found = _OPERATION.one(proposal=step.proposal().pk)
    return found if found.state in states else None


def _send_or_wait(step: Step, proposal: Proposal, operation: Operation | None) -> Next:
    connector = tool(proposal.tool)
    if operation is not None and operation.attempts_made >= connector.contract.max_attempts:
        return _give_up(step)
    if operation is not None and operation.next_attempt_at is not None and operation.next_attempt_at > clock.now():
        waits_for = f"the next try at {words.system(connector.contract.system)}"
        if operation.turn_at is not None:
            waits_for = f"its turn at {operation.tool}"
        with committing(step.lease, "run.advanced") as run:
            return wait(
                run,
                resume_to=RunState.EXECUTING,
                until=operation.next_attempt_at,
                waits_for=waits_for,
                waits_on=operation.tool if operation.turn_at is not None else "",
                actor=step.actor,
            )
    return attempt(step, proposal, connector, resend=Resend.NO)


def attempt(step: Step, proposal: Proposal, connector: Tool, *, resend: Resend) -> Next:
    """Phases 0 to 3 of one attempt."""
    resume_to = RunState.EXECUTING
    facts = read_facts(step, resume_to=resume_to, tool=proposal.tool)
    if isinstance(facts, Next):
        return facts
    began = time.monotonic()  # before the row is written: a worker frozen from here on must see that it is too late
    opened = execute.open_attempt(
        lease=step.lease,
        lease_seconds=settings.LEASE_SECONDS,
        proposal_id=proposal.pk,
        contract=connector.contract,
        facts=still_allowed.Facts(
            evidence=tuple(facts.values()),
            binding_digest=binding_over(proposal=proposal, facts=facts.values()) or "",
            read_at=min((one.retrieved_at for one in facts.values()), default=clock.now()),
            fresh_for=settings.FACT_FRESH,
            variables=policy_now.variables(run=step.run, known=step.workflow, action=proposal.action(), facts=facts),
            objection=step.workflow.objection(action=proposal.action(), facts=facts, identity=proposal.identity),
            quiet=step.hand.quiet,
        ),
        sender=processes.current(),
        actor=step.actor,
        resend=resend,
    )
    step.hand.facts = facts  # stored with it
    faultpoints.reach("attempt.opened.after")
    if isinstance(opened, still_allowed.Void):
        return _void(step, opened, unknown=resend != Resend.NO)
    if isinstance(opened, execute.Held):
        return _held(step, opened)
    answer = call(connector, opened, began=began)
    faultpoints.reach("attempt.called")
    went = patiently(partial(_record, opened, answer, connector, step), busy_too=True)
    faultpoints.reach("attempt.recorded.after")
    return went


def call(connector: Tool, opened: execute.Opened, *, began: float) -> Answer:
    """Phase 2: make the call if there is still time, and say what is known. Anything unforeseen is ambiguous.

    `began` is this machine's monotonic time from before the attempt was opened, so it runs out before `send_before`.
    """
    made = opened.attempt
    allowed = (made.send_before - made.opened_at).total_seconds()
    if time.monotonic() - began > allowed:
        return Answer(result=Result.NOT_SENT, detail="this worker was too slow to begin the call in time")
    operation = opened.operation
    try:
        found = connector.send(effect=operation.effect, identity=operation.identity, wire_key=made.wire_key)
    except NotSent as known:
        return Answer(result=Result.NOT_SENT, detail=known.detail, raw=known.raw)
    except Refused as known:
        return Answer(result=Result.REFUSED, detail=known.detail, code=known.code, raw=known.raw)
    except Overloaded as known:
        return Answer(
            result=Result.OVERLOADED, detail=known.detail, retry_after=known.retry_after, raw=known.raw
        )  # fmt: skip
    except Ambiguous as known:
        return Answer(result=Result.AMBIGUOUS, detail=known.detail, raw=known.raw)
    except Exception as unforeseen:  # noqa: BLE001  # bytes may be out: whatever went wrong, it may have happened
        broke = without_secrets(f"the call broke off: {type(unforeseen).__name__}: {unforeseen}")
        return Answer(result=Result.AMBIGUOUS, detail=broke)
    as_sent = "as sent" if not found.mismatch else "but not as sent"
    return Answer(
        result=Result.DONE,
        detail=f"{words.system(operation.system)} answered with {found.reference}, {as_sent}",
        record=found,
        raw=asdict(found)["raw"],
    )


def _record(opened: execute.Opened, answer: Answer, connector: Tool, step: Step) -> Next:
    """Phase 3, and what follows from success in the same commit. An answer in hand is not given up because the
    database is away for a moment; if it stays away it is lost with this process, and the operation is found by
    asking."""
    gone_on: list[tuple[Run, Next]] = []

    def then(run: Run, operation: Operation) -> None:
        if (went := _go_on_from(step, run, operation)) is not None:
            gone_on.append((run, went))

    answers.record_answer(
        attempt_id=opened.attempt.pk, answer=answer, contract=connector.contract, actor=step.actor,
        troubled=opened.troubled, then=then,
    )  # fmt: skip
    if not gone_on:
        step.hand.proposal = None  # a newer one was not committed, or was, and nobody heard of it
        return Next.GO_ON
    run, went = gone_on[0]
    committed(step.lease, run)
    faultpoints.reach("run.advanced.after")
    return went


def _go_on_from(step: Step, run: Run, operation: Operation) -> Next | None:
    """Within the commit that records a success: what follows from it, where nothing has come for the locked run
    meanwhile, and this worker holds it still."""
    if not leases.is_held(lease=step.lease, run=run) or run.state != RunState.EXECUTING or not may_go_on(run):
        return None
    principals.known(run=run)
    facts = step.facts()
    done = done_so_far(run, known=step.hand.proposal)
    follow = step.workflow.follow(data=run.input, facts=facts, done=done)
    with record.together(run=run):
        went = _from_success(step, run, operation, follow, facts)
    faultpoints.reach("run.advanced.before")
    return went


def _held(step: Step, held: execute.Held) -> Next:
    """Nothing changes; it is tried again in a moment, when the freeze is lifted, or when what it shares
    with others may be had. What may have happened already is
    asked about meanwhile."""
    if held.code == freezes.FROZEN and step.run.state == RunState.EXECUTING:
        return Next.GO_ON  # and parks at this boundary
    if held.code == "look_first":
        return Next.LOOK
    if held.code == "sender_ended":
        processes.anew()
    with committing(step.lease, "run.advanced") as run:
        until = held.until or clock.now() + settings.HELD_RETRY
        if run.state == RunState.EXECUTING:
            return wait(
                run,
                resume_to=RunState.EXECUTING,
                until=until,
                waits_for=held.detail,
                waits_on=held.waits_on,
                why=held.detail,
                actor=step.actor,
            )
        park(run, until=until, waits_for=held.detail, waits_on=held.waits_on)
        return Next.HELD if held.waits_on else Next.PARK


def _void(step: Step, void: still_allowed.Void, *, unknown: bool) -> Next:
    """The decision no longer counts. While the outcome is unknown nothing else begins: the asking goes on, until it is
    settled or a person has its case."""
    with committing(step.lease, "run.advanced") as run:
        if unknown:
            return park(
                run, until=clock.now() + settings.HELD_RETRY, waits_for=f"certainty; it stays unsent: {void.detail}"
            )
        if void.code == "cancelled":
            return Next.GO_ON
        if void.code == "lapsed":  # it was held for long, which says nothing against its facts
            transitions.move(run=run, to=RunState.GATHERING, actor=step.actor, why=void.detail)
            return Next.GO_ON
        if void.code in VOID_READ_AGAIN:
            return out_of_date(run, why=void.detail, actor=step.actor)
        code = Reason.APPROVAL_EXPIRED if void.code == "expired" else Reason(void.code)
        return hand_over(run, code=code, reason=f"{void.detail}; nothing was done", actor=step.actor)


def _lose_track(step: Step) -> Next:
    with committing(step.lease, "run.advanced") as run:
        operation = _as_locked(step, UNCONFIRMED)
        if operation is None:
            return Next.GO_ON
        transitions.move(
            run=run,
            to=RunState.OUTCOME_UNKNOWN,
            actor=step.actor,
            why=f"{words.system(operation.system)} has only taken it on"
            if operation.state == S.ACCEPTED
            else f"the outcome at {words.system(operation.system)} is not known",
            waits_for=f"{words.system(operation.system)} to confirm",
            wake_at=operation.next_probe_at or clock.now(),
        )
    return Next.GO_ON


def _after_success(step: Step) -> Next:
    """Recorded by the other side, and perhaps undone since: what comes next?"""
    facts = step.facts()
    with committing(step.lease, "run.advanced") as run:
        operation = _as_locked(step, DONE)
        if operation is None:
            return Next.GO_ON
        follow = step.workflow.follow(data=run.input, facts=facts, done=done_so_far(run))
        return _from_success(step, run, operation, follow, facts)


def _from_success(step: Step, run: Run, operation: Operation, follow: Follow, facts: dict[str, Evidence]) -> Next:
    if run.times_out_of_date:
        run.times_out_of_date = 0
        record.save(run=run, names=["times_out_of_date"])
    stands = operation.state == S.SUCCEEDED
    if stands and (other := operation.other_reference):
        reason = (
            f"{words.system(operation.system)} has it twice: {operation.external_reference} counts, and {other} has to "
            "be reversed, which is proposed among the run's operations"
        )
        return hand_over(run, code=Reason.RECORDED_TWICE, reason=reason, actor=step.actor)
    if stands and operation.is_different:
        reason = f"{operation.external_reference} was recorded with other values than were sent"
        return hand_over(run, code=Reason.RECORDED_DIFFERENTLY, reason=reason, actor=step.actor)
    if (stop := held_up(run, actor=step.actor)) is not None:
        return stop
    return go_on(run, follow=follow, facts=facts, step=step)


def _after_failure(step: Step) -> Next:
    """Proved not done, or given up before. What can be proposed afresh is; the rest is a person's."""
    with committing(step.lease, "run.advanced") as run:
        operation = _as_locked(step, NOT_DONE)
        if operation is None:
            return Next.GO_ON
        if operation.state == S.ABANDONED or operation.failure_code in TRY_AGAIN_CODES:
            return out_of_date(run, why=operation.failure or "it was given up before it was done", actor=step.actor)
        if operation.failure_code == Reason.GAVE_UP:
            reason = f"given up after {operation.attempts_made} attempts: {operation.failure}"
            return hand_over(run, code=Reason.GAVE_UP, reason=reason, actor=step.actor)
        if operation.failure_code == SETTLED_ABSENT:
            reason = f"an admin settled that it did not happen: {operation.failure}"
            return hand_over(run, code=Reason.SETTLED_ABSENT, reason=reason, actor=step.actor)
        if operation.failure_code == Reason.NOT_CARRIED_OUT:
            return hand_over(run, code=Reason.NOT_CARRIED_OUT, reason=operation.failure, actor=step.actor)
        reason = f"{words.system(operation.system)} refused: {operation.failure}; nothing was done"
        return hand_over(run, code=Reason.REFUSED_BY_SYSTEM, reason=reason, actor=step.actor)


def _give_up(step: Step) -> Next:
    with committing(step.lease, "run.advanced") as run:
        operation = _as_locked(step, (S.AUTHORISED,))
        if operation is None:
            return Next.GO_ON
        reason = f"{_in_vain(operation)}; nothing was done"
        moves.move(run=run, operation=operation, to=S.ABANDONED, actor=step.actor, why=reason)
        return hand_over(run, code=Reason.GAVE_UP, reason=reason, actor=step.actor)


def _in_vain(operation: Operation) -> str:
    """What became of attempts that are all proved without effect, told apart: turned away is not unreached."""
    results = Counter(operation.attempts.values_list("result", flat=True))
    made, turned_away = results.total(), results[Result.OVERLOADED]
    if not turned_away:
        return f"none of {made} attempts reached {words.system(operation.system)}"
    unreached = f", and {made - turned_away} did not reach it" if turned_away < made else ""
    return f"{words.system(operation.system)} turned {turned_away} of {made} attempts away, asking to wait{unreached}"
