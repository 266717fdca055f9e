"""Proposing that what was done is undone, and what follows once it was, or was not.

The reversal itself is a run like any other. Nothing here sends anything, and no transaction locks two runs.
"""

import datetime as dt
import uuid
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from reconciliation import late, moves, reversing
from reconciliation.models import Case, Operation, Reversal
from reconciliation.models.case import ABOUT_OUR_RECORD, SETTLE, UNRESOLVED
from reconciliation.models.operation import OperationState
from reconciliation.reversing import Undo
from runs import clock, faultpoints, holding, record, retry, rights
from runs.models import Principal, Run
from runs.models.run import RunState
from runs.nudging import nudge_relay
from runs.services import principals
from runs.texts import typed

R = Reversal.Result
LOOK_AFTER = dt.timedelta(seconds=2)
MOST_TRIES = 8  # in about ten minutes; then a person is asked
_ENDED = {RunState.REJECTED: R.REJECTED, RunState.CANCELLED: R.CANCELLED}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReversalResult:
    """`code` is ok, or the refusal: reason_needed, no_right (recorded in the run's stream), already_proposed,
    not_reversible (`why` says it), other_case."""

    code: str
    detail: dict[str, Any] = field(default_factory=dict)
    reversal: Reversal | None = None

    @property
    def ok(self) -> bool:
        return self.code == "ok"


def propose(
    *, operation_id: uuid.UUID, principal: Principal, reason: str, case_number: int | None = None
) -> ReversalResult:
    """Propose that the operation is undone, from its run's page or from a case about it. Of two that come at once one
    is told that the other was first."""
    reason = typed(text=reason)
    if not reason:
        return ReversalResult(code="reason_needed")
    with transaction.atomic(durable=True):
        run, operation = moves.lock(operation_id=operation_id)
        case = None if case_number is None else Case.objects.filter(pk=case_number, operation=operation).first()
        if case_number is not None and case is None:
            return ReversalResult(code="other_case")
        permission = holding.OPERATE if case is None else SETTLE
        act = "reversal.propose"
        if code := rights.objection(
            run=run, principal=principal, permission=permission, act=act, operation=str(operation.pk)
        ):
            return ReversalResult(code=code)
        if already := reversing.living(operation=operation):
            return ReversalResult(code="already_proposed", detail={"by": str(already.proposed_by)}, reversal=already)
        undo = reversing.undo_of(operation=operation)
        if not isinstance(undo, Undo):
            return ReversalResult(code="not_reversible", detail={"why": undo})
        made = reversing.propose(
            run=run,
            operation=operation,
            undo=undo,
            origin=reversing.Origin.OPERATOR if case is None else reversing.Origin.CASE,
            principal=principal,
            reason=reason,
            case=case,
        )
        nudge_relay()
        return ReversalResult(code="ok", reversal=made)


def due(*, limit: int) -> list[uuid.UUID]:
    """Reversals about which something is to be done, the longest due first."""
    found = Reversal.objects.filter(due_at__lte=clock.ClockTimestamp()).order_by("due_at")
    return list(found.values_list("pk", flat=True)[:limit])


def done_after_all(*, limit: int) -> list[uuid.UUID]:
    """Reversals that had ended without being done, and were done as our record has it now; not yet booked, and nobody
    has a case about it."""
    made = Operation.objects.filter(run=OuterRef("run"), reverses=OuterRef("operation"), state=OperationState.SUCCEEDED)
    case = Case.objects.filter(UNRESOLVED | Q(verdict=Case.Verdict.NOTED), operation=OuterRef("operation"))
    # that an earlier one could not be done says nothing of this one
    case = case.filter(ABOUT_OUR_RECORD | Q(opened_at__gt=OuterRef("ended_at")))
    found = Reversal.objects.filter(Exists(made), ~Exists(case), operation__state=OperationState.SUCCEEDED)
    found = found.exclude(result__in=["", R.DONE]).select_related("operation")
    named = [(one, {one.operation.external_reference, one.operation.other_reference}) for one in found]
    return [one.pk for one, names in named if one.reference in names][:limit]


def link(*, reversal_id: uuid.UUID, run: Run) -> None:
    """Note which run was started for it; again does nothing. That run may have ended meanwhile, unseen by what makes a
    reversal due, so it is looked at once more a moment later."""
    with transaction.atomic(durable=True):
        owner, reversal = _lock(reversal_id)
        if reversal.run_id is not None or reversal.ended_at is not None:
            return
        reversal.run, reversal.due_at = run, clock.now() + LOOK_AFTER
        reversal.tries, reversal.problem = 0, ""
        reversal.save(update_fields=["run", "due_at", "tries", "problem"])
        record.append(
            run=owner, kind="reversal.started", actor=principals.system(), operation=str(reversal.operation_id),
            reference=reversal.reference, run_id=str(run.pk),
        )  # fmt: skip
        faultpoints.reach("reversal.linked.before")
    faultpoints.reach("reversal.linked.after")


def follow_up(*, reversal_id: uuid.UUID) -> None:
    """The reversal was settled, or its run is over: book what is known about the operation that it undoes.

    Done: that one is compensated, and the next of its run is proposed. Failed, with proof: whatever the other side
    shows is looked at anew. Over without having been done: it has ended, and another may be proposed; if a
    correction then says that it was done, that is booked as well.
    """
    with transaction.atomic(durable=True):
        run, reversal = _lock(reversal_id)
        if reversal.run is None:
            return
        actor, operation = principals.system(), reversal.operation
        tries = Operation.objects.filter(run=reversal.run, reverses=operation).order_by("-created_at")
        # an earlier one counts that a correction found done; of the others the last
        made = tries.filter(state=OperationState.SUCCEEDED).first() or tries.first()
        if reversal.ended_at is not None:
            if made is not None and made.state == operation.state == OperationState.SUCCEEDED:
                reversing.book(run=run, operation=operation, reversal=reversal, actor=actor)
            return
        reversal.due_at, reversal.tries, reversal.problem = None, 0, ""
        reversal.save(update_fields=["due_at", "tries", "problem"])
        if made is not None and made.state == OperationState.SUCCEEDED:
            if operation.state == OperationState.SUCCEEDED:
                reversing.book(run=run, operation=operation, reversal=reversal, actor=actor)
            what = f"{reversal.reference} was reversed: {made.external_reference}"
            reversing.end(run=run, reversal=reversal, result=R.DONE, what=what, actor=actor)
        elif reversal.run.is_over or (made is not None and made.state == OperationState.FAILED):
            if made is not None:
                late.want_look(operation=operation, since=clock.now())
            if reversal.run.is_over:
                result = _ENDED.get(RunState(reversal.run.state), R.FAILED)
                reversing.end(run=run, reversal=reversal, result=result, what=reversal.run.outcome, actor=actor)
        faultpoints.reach("reversal.booked.before")
    faultpoints.reach("reversal.booked.after")


def note_failure(*, reversal_id: uuid.UUID, problem: str) -> None:
    """What was due about it failed, for a reason that is none of the database's: write that down, and when it is tried
    again, more and more slowly. After `MOST_TRIES` a person is asked by a case: no run for it can be started, so it has
    ended; or what came of it cannot be booked, which goes on being tried, unless it had ended before: then it is tried
    again once the case is settled."""
    with transaction.atomic(durable=True):
        run, reversal = _lock(reversal_id)
        actor, operation, problem = principals.system(), reversal.operation, problem[:1000]
        unbooked = f"unbooked:{reversal.pk}"
        if reversal.ended_at is not None:
            why = f"what came of its reversal cannot be booked: {problem}"
            reversing.left_standing(run=run, operation=operation, doubt=unbooked, why=why, actor=actor)
            return
        reversal.tries, reversal.problem = reversal.tries + 1, problem
        reversal.due_at = clock.now() + retry.backoff(attempt=reversal.tries, base=5, cap=300)
        reversal.save(update_fields=["tries", "problem", "due_at"])
        if reversal.tries == 1:
            record.append(
                run=run, kind="reversal.delayed", actor=actor, operation=str(operation.pk),
                reference=reversal.reference, why=problem,
            )  # fmt: skip
        if reversal.tries < MOST_TRIES:
            return
        if reversal.run_id is None:
            what = f"it could not be proposed, {reversal.tries} times; last: {problem}"
            reversing.end(run=run, reversal=reversal, result=R.FAILED, what=what, actor=actor, by_itself=True)
        elif reversal.tries == MOST_TRIES:
            why = f"what came of its reversal could not be booked, {reversal.tries} times; last: {problem}"
            reversing.left_standing(run=run, operation=operation, doubt=unbooked, why=why, actor=actor)


def _lock(reversal_id: uuid.UUID) -> tuple[Run, Reversal]:
    """The reversal, after the run of what it undoes, that operation and its totals."""
    operation_id = Reversal.objects.values_list("operation_id", flat=True).get(pk=reversal_id)
    run, operation = moves.lock(operation_id=operation_id)
    moves.lock_spent(operation=operation)
    reversal = Reversal.objects.select_for_update(of=("self",)).select_related("run").get(pk=reversal_id)
    reversal.operation = operation
    return run, reversal
