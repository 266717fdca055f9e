"""Reversals: what can be undone and how, who has proposed it, and what becomes of the operation when it was done.

Building blocks; whoever writes holds the run of the operation that is undone, and that operation.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import Error as DatabaseError
from django.db.models import Exists, OuterRef, QuerySet

from reconciliation import late, moves
from reconciliation.attempts import records_in, shown
from reconciliation.case_opening import open_case, resolve
from reconciliation.models import Case, Operation, Reversal
from reconciliation.models.case import UNRESOLVED
from reconciliation.models.operation import OperationState
from runs import clock, record
from runs.canonical import nfc
from runs.models import Principal, Run
from runs.models.run import RunState
from runs.tools.base import CannotReverse, Compensation, Made
from runs.tools.registry import UnknownTool, contract

log = logging.getLogger(__name__)
S = OperationState
Origin = Reversal.Origin
Result = Reversal.Result
NO_WAY = "no_way"  # the doubt: its tool's declaration cannot say how it is undone
START_KEY = "reversal:"  # before the reversal's id, in the start key of its run


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """How a record is undone: `tool` with `effect` undoes what they call `reference`."""

    tool: str
    effect: dict[str, str]
    reference: str


def undo_of(*, operation: Operation) -> Undo | str:
    """What would undo the operation, by its tool's declaration, or why nothing does, as a sentence. Of what happened
    twice it is the second record, while that stands."""
    try:
        reversal = contract(operation.tool).reversal
    except UnknownTool:
        return "There is no such tool any more."
    if not isinstance(reversal, Compensation):
        return reversal.why
    if operation.state == S.COMPENSATED:
        return "It is reversed already."
    if operation.state != S.SUCCEEDED:
        return "Only what is known to have happened can be reversed."
    reference = operation.other_reference or operation.external_reference or ""
    if reference in reversed_references(operation=operation):
        return f"{reference} is reversed already; a case says what else stands."
    try:
        made = Made(
            identity=operation.identity,
            effect=operation.effect,
            reference=reference,
            minor=operation.other_minor if operation.other_reference else operation.real_minor,
            record=_shown(operation, reference),
        )
        return Undo(tool=reversal.tool, effect=nfc(reversal.effect(made)), reference=reference)
    except CannotReverse as why:
        return str(why)
    except DatabaseError:
        raise
    except Exception as problem:  # a declaration that fails holds up neither a page nor the end of a run
        log.exception("what would undo %s could not be worked out", operation.identity)
        return f"What would undo it could not be worked out ({type(problem).__name__}: {problem})."[:500]


def is_undoable(*, operation: Operation) -> bool:
    """Whether it is its tool's promise that it can be undone; what there is no tool for is a person's to say."""
    try:
        return isinstance(contract(operation.tool).reversal, Compensation)
    except UnknownTool:
        return True


def _shown(operation: Operation, reference: str) -> dict[str, Any]:
    """Their record of that name as it was shown last; nothing if it never was."""
    for observation in operation.observations.order_by("-at"):
        for one in records_in(observation=observation):
            if one.get("reference") == reference and isinstance(one.get("raw"), dict):
                return dict(one["raw"])
    return {}


def planned(*, operation: Operation, reference: str) -> list[str]:
    """Their names for all that is undone where everything of the operation is, in that order: `reference` is first."""
    second = reference == operation.other_reference
    return [reference, operation.external_reference or ""] if second else [reference]


def living(*, operation: Operation) -> Reversal | None:
    """The reversal of it that was proposed, or planned, and has not ended."""
    found = Reversal.objects.select_related("run", "proposed_by", "after")
    return found.filter(operation=operation, ended_at__isnull=True).first()


def of_run(*, run: Run) -> Reversal | None:
    """What this run was started to undo, while that has not ended."""
    key = run.start_key.removeprefix(START_KEY)
    return None if key == run.start_key else Reversal.objects.filter(pk=key, ended_at__isnull=True).first()


def is_unlinked(*, run: Run) -> bool:
    """Whoever started the run has not written down yet that this is the one."""
    reversal = of_run(run=run)
    return reversal is not None and reversal.run_id is None


def undoes(*, run: Run, effect: dict[str, str]) -> dict[str, Any] | None:
    """What an operation of this run with this effect says that it undoes; None where that was never proposed."""
    reversal = of_run(run=run)
    if reversal is None or reversal.effect != effect:
        return None
    return {"reverses_id": reversal.operation_id, "reverses_reference": reversal.reference}


def annotated(operations: QuerySet[Operation]) -> QuerySet[Operation]:
    """The operations as `late.with_disputes` gives them, and with `reversing`: whether a reversal of it has not
    ended."""
    open_ones = Reversal.objects.filter(operation=OuterRef("pk"), ended_at__isnull=True)
    return late.with_disputes(operations).annotate(reversing=Exists(open_ones))


def undone_in_words(*, operations: Iterable[Operation]) -> str:
    """Which of `annotated` were undone or are to be, as a sentence without its full stop; empty where none is."""
    told = [
        f"{one.external_reference} was reversed" if one.state == S.COMPENSATED
        else f"a reversal of {one.external_reference} is proposed"
        for one in operations
        if one.state == S.COMPENSATED or one.reversing  # type: ignore[attr-defined]
    ]  # fmt: skip
    return "; ".join(told)


def propose(
    *,
    run: Run,
    operation: Operation,
    undo: Undo,
    origin: Origin,
    principal: Principal,
    reason: str,
    case: Case | None = None,
    after: Reversal | None = None,
) -> Reversal:
    """Write the reversal down; the relay starts its run now, or once the one that it comes `after` is done."""
    made = Reversal.objects.create(
        operation=operation,
        reference=undo.reference,
        effect=undo.effect,
        tool=undo.tool,
        origin=origin,
        case=case,
        after=after,
        proposed_by=principal,
        reason=reason,
        due_at=clock.now() if after is None else None,
    )
    record.append(
        run=run, kind="reversal.proposed", actor=principal, operation=str(operation.pk), reference=undo.reference,
        undone_by=undo.tool, reason=reason, after=after.reference if after else "", case=case.label if case else "",
        amount_minor=operation.real_minor, currency=operation.currency,
    )  # fmt: skip
    return made


def in_order(*, run: Run) -> list[Operation]:
    """What the run has done and stands undisputed, the newest first: the order in which it is undone."""
    return [one for one in _undisputed(run) if not one.reversing]  # type: ignore[attr-defined]


def _undisputed(run: Run) -> list[Operation]:
    """The same with what is being undone already."""
    done = annotated(Operation.objects.filter(run=run, state=S.SUCCEEDED))
    return [one for one in done.order_by("-created_at") if not one.disputed]  # type: ignore[attr-defined]


def propose_all(*, run: Run, origin: Origin, principal: Principal, reason: str) -> list[Reversal]:
    """Reversals of everything the locked run has done and a tool declares one for, in reverse order; each is proposed
    only once the one before it is done, also where somebody had proposed that one before. Of what happened twice the
    first record follows on the second (`end`). One that cannot be proposed although it is declared is a person's: a
    case says so."""
    made: list[Reversal] = []
    after: Reversal | None = None
    for operation in _undisputed(run):
        if operation.reversing:  # type: ignore[attr-defined]
            after = living(operation=operation)
            continue
        undo = undo_of(operation=operation)
        if not isinstance(undo, Undo):
            if is_undoable(operation=operation):
                left_standing(run=run, operation=operation, doubt=NO_WAY, why=undo, actor=principal)
        else:
            after = propose(
                run=run,
                operation=operation,
                undo=undo,
                origin=origin,
                principal=principal,
                reason=reason,
                after=after,
            )
            made.append(after)
    return made


def left_standing(*, run: Run, operation: Operation, doubt: str, why: str, actor: Principal) -> Case:
    """It was to be undone, and no machine can have that done: a person who settles cases says what follows. Our record
    of it is right, so it is in no dispute. `doubt` is what failed, as a code."""
    why = f"{operation.external_reference} was to be undone, and could not be: {why}".rstrip(".")
    return open_case(run=run, operation=operation, kind=Case.Kind.NOT_UNDONE, doubts=[doubt], why=why, actor=actor)


def in_words(*, reversals: Sequence[Reversal]) -> str:
    """What is proposed to be undone, as a sentence; empty where nothing is."""
    if not reversals:
        return ""
    names = [name for one in reversals for name in planned(operation=one.operation, reference=one.reference)]
    named = ", then ".join(names)
    each = "It needs its own approval." if len(names) == 1 else "Each needs its own approval."
    return f"Reversal proposed: {named}. {each}"


def left_in_words(*, run: Run) -> str:
    """What of the run was to be undone and could not be, with its cases; empty where nothing is."""
    found = Case.objects.filter(UNRESOLVED, operation__run=run, kind=Case.Kind.NOT_UNDONE)
    return " ".join(f"{one.why} ({one.label})." for one in found.order_by("number"))


def book(*, run: Run, operation: Operation, reversal: Reversal, actor: Principal) -> None:
    """The record was undone: nothing of it stands any more, here either, and it no longer counts. Where more stands
    than that record, the operation counts on, and a person says what is true. The totals that it counts in are
    locked."""
    if reversal.reference == operation.other_reference:
        minor = operation.other_minor or 0
        operation.other_reversed = True
        operation.save(update_fields=["other_reversed"])
        moves.give_back(operation=operation, minor=minor, released=False)
        record.append(
            run=run, kind="operation.second_reversed", actor=actor, operation=str(operation.pk),
            reference=reversal.reference, amount_minor=minor, currency=operation.currency,
        )  # fmt: skip
        return
    if reversal.reference != operation.external_reference:
        return  # it was corrected meanwhile, and the record that it has now stands
    if left := _left_standing(operation, reversal.reference):
        names = ", ".join(left)
        why = f"{reversal.reference} was reversed, and {names} still stands under the same identity"
        doubt, kind = f"beside:{reversal.reference}:{names}", Case.Kind.DIFFERENT
        open_case(run=run, operation=operation, kind=kind, doubts=[doubt], why=why, actor=actor)
        return
    moves.move(
        run=run,
        operation=operation,
        to=S.COMPENSATED,
        actor=actor,
        why=f"{reversal.reference} was reversed",
        settled_at=operation.settled_at,
    )
    moves.give_back(operation=operation, minor=operation.real_minor or 0, released=True)


def _left_standing(operation: Operation, undone: str) -> list[str]:
    """The records under the operation's identity that stand, but for the one that was undone: by our record, and by
    what was shown last."""
    gone = {undone, *reversed_references(operation=operation)}
    known = shown(observations=operation.observations.order_by("at"))
    gone |= {name for one in known if one.void or gone & set(one.names) for name in one.names}
    ours = {operation.other_reference} - {""}
    return sorted((ours | {one.reference for one in known}) - gone)


def reversed_references(*, operation: Operation) -> set[str]:
    """Their names of its records that a reversal of ours has undone."""
    return set(operation.reversed_by.filter(state=S.SUCCEEDED).values_list("reverses_reference", flat=True))


def end(*, run: Run, reversal: Reversal, result: Result, what: str, actor: Principal, by_itself: bool = False) -> None:
    """The reversal is over. What was to be undone after it is proposed next if this one is done; else nothing more is
    proposed by itself: a person looks at what stands. Where it ended `by_itself` a case has that person look."""
    now = clock.now()
    reversal.result, reversal.what, reversal.ended_at, reversal.due_at = result, what, now, None
    reversal.tries, reversal.problem = 0, ""
    reversal.save(update_fields=["result", "what", "ended_at", "due_at", "tries", "problem"])
    record.append(
        run=run, kind="reversal.ended", actor=actor, operation=str(reversal.operation_id), result=str(result),
        reference=reversal.reference, why=what,
    )  # fmt: skip
    if result == Result.DONE:
        undone_after_all(run=run, operation=reversal.operation, what=what, actor=actor)
    elif by_itself:
        left_standing(run=run, operation=reversal.operation, doubt=f"ended:{reversal.pk}", why=what, actor=actor)
    if result == Result.DONE and _rest(run, reversal) is not None:
        return  # what was to follow follows on that one
    following = Reversal.objects.filter(after__operation=reversal.operation, ended_at__isnull=True).first()
    if following is None:
        return
    if result == Result.DONE:
        following.due_at = now
        following.save(update_fields=["due_at"])
    else:
        why = f"not proposed, since {reversal.reference} before it was not reversed"
        end(run=run, reversal=following, result=Result.DROPPED, what=why, actor=actor, by_itself=by_itself)


def _rest(run: Run, reversal: Reversal) -> Reversal | None:
    """Where all that the run did is to be undone, the record that still stands of what happened twice is next."""
    operation = reversal.operation
    over = run.finished_at if run.state == RunState.CANCELLED else None
    was_open = over is not None and reversal.created_at < over  # so the cancelled run left it to that one
    all_of_it = reversal.origin in (Origin.CANCELLED, Origin.FAILED) or was_open
    if not all_of_it or operation.state != S.SUCCEEDED:
        return None
    if reversal.reference == operation.external_reference or not operation.other_reversed:
        return None
    undo = undo_of(operation=operation)
    if not isinstance(undo, Undo):
        left_standing(run=run, operation=operation, doubt=NO_WAY, why=undo, actor=reversal.proposed_by)
        return None
    return propose(
        run=run, operation=operation, undo=undo, origin=Origin(reversal.origin), principal=reversal.proposed_by,
        reason=reversal.reason,
    )  # fmt: skip


def undone_after_all(*, run: Run, operation: Operation, what: str, actor: Principal) -> None:
    """Whoever was asked to look at what could not be undone need not any more."""
    found = Case.objects.select_for_update(of=("self",)).filter(operation=operation, kind=Case.Kind.NOT_UNDONE)
    for case in found.filter(UNRESOLVED):
        resolve(run=run, case=case, verdict=Case.Verdict.BY_PROBE, evidence=what, actor=actor)
