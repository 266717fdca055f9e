"""Late truth: what is told or found about an operation that is settled, or on its way to be.

What is only told makes somebody look, whatever state the operation is in; what a look or a late answer shows against
our record is a case for a person. Asking never sends anything. Building blocks: the caller holds run and operation.
"""

import datetime as dt
from collections.abc import Iterable
from typing import NamedTuple

from django.db.models import Exists, OuterRef, Q, QuerySet

from reconciliation.attempts import sent_attempts
from reconciliation.case_opening import open_case
from reconciliation.classification import calls_over
from reconciliation.comparison import in_words
from reconciliation.corrections import successor
from reconciliation.models import Case, Observation, Operation
from reconciliation.models.case import ABOUT_OUR_RECORD, NOTED_SINCE, UNRESOLVED
from reconciliation.models.operation import IN_FLIGHT, KEY_TAKEN, SETTLED, OperationState
from runs import clock, hot, retry
from runs.canonical import digest
from runs.models import Principal, Run
from runs.tools.base import Contract, Record

MOMENT = dt.timedelta(milliseconds=200)


# ---- looking once more


def want_look(*, operation: Operation, since: dt.datetime) -> None:
    """Have the other side asked by a question that is put after `since`, which may be still to come."""
    wanted, due = operation.look_wanted_at, operation.next_probe_at
    operation.look_wanted_at = since if wanted is None else max(wanted, since)
    operation.next_probe_at = since if due is None else min(due, since)
    operation.save(update_fields=["look_wanted_at", "next_probe_at"])


def want_look_after_calls(*, operation: Operation) -> None:
    """The same for what our own calls may still do: once the last of them is over."""
    if attempts := sent_attempts(operation=operation):
        want_look(operation=operation, since=calls_over(attempts=attempts))


def looked(*, run: Run, operation: Operation, by: Observation, contract: Contract, actor: Principal) -> None:
    """A look was made, recorded as `by`. What it was wanted for may take its time to show, so the last one is made
    once it must be there. Who cannot be asked is asked again, more and more slowly; at last a person sees it."""
    wanted = operation.look_wanted_at
    if wanted is None:
        return
    reached = by.finding != Observation.Finding.UNREACHABLE
    shown_by = wanted + contract.settling
    now = clock.now()
    if reached and by.asked_at > shown_by:
        operation.look_wanted_at = None
        operation.next_probe_at = None if operation.is_settled else operation.next_probe_at
    elif not operation.is_settled:
        return  # it is asked about until it is
    elif reached:
        operation.next_probe_at = max(now, shown_by + MOMENT if by.asked_at > wanted else wanted)
    else:
        _not_reached(run=run, operation=operation, wanted=wanted, by=by, contract=contract, actor=actor)
    operation.save(update_fields=["look_wanted_at", "next_probe_at"])


def _not_reached(
    *, run: Run, operation: Operation, wanted: dt.datetime, by: Observation, contract: Contract, actor: Principal
) -> None:
    failed = operation.observations.filter(source=by.source, finding=by.finding, asked_at__gte=wanted).count()
    operation.next_probe_at = max(wanted, clock.now() + retry.backoff(attempt=failed, base=5, cap=900))
    if failed >= contract.max_probes:
        operation.look_wanted_at = operation.next_probe_at = None
        why = f"it had to be looked up once more, and could not be, {failed} times; last answer: {by.summary}"
        kind = Case.Kind.NOT_CONFIRMED
        open_case(run=run, operation=operation, kind=kind, doubts=["not_reached"], why=why, actor=actor)


def is_unasked(operation: Operation) -> bool:
    """Is there something told about this settled operation that nobody has looked up since?"""
    wanted = operation.look_wanted_at
    if wanted is None or not operation.is_settled or wanted > clock.now():
        return False
    asked = operation.observations.filter(source=Observation.Source.PROBE, asked_at__gt=wanted)
    return not asked.exclude(finding=Observation.Finding.UNREACHABLE).exists()


# ---- what stands against going on

# an open case about a settled operation; once a person has noted it, only where something was done: the run's next
# actions would tell of it as our record has it
_IN_DISPUTE = (
    Q(operation__state__in=SETTLED)
    & ABOUT_OUR_RECORD
    & (UNRESOLVED | Q(NOTED_SINCE, operation__state=OperationState.SUCCEEDED))
)


def with_disputes(operations: QuerySet[Operation]) -> QuerySet[Operation]:
    """The operations with `disputed`: whether their run may not go on by itself for it."""
    return operations.annotate(disputed=Exists(Case.objects.filter(_IN_DISPUTE, operation=OuterRef("pk"))))


_HOLDER = hot.Query(lambda key: Operation.objects.filter(KEY_TAKEN, business_key=key)[:1])


def holder(*, business_key: str) -> Operation | None:
    """What holds the business key: nothing else is done for it."""
    return _HOLDER.first(key=business_key)


def holder_in_words(*, other: Operation) -> str:
    """Why nothing is done for the business key that it holds."""
    said = f"there is already one for this ({other.business_key}), by the run “{other.run.title}”"
    if other.state != OperationState.COMPENSATED:
        return said
    return f"{said}; it was reversed since, and whoever settles cases may allow on its page that it is done anew"


def disputed(operations: Iterable[Operation]) -> list[Operation]:
    """Those of `with_disputes` that are."""
    return [one for one in operations if one.disputed]  # type: ignore[attr-defined]


def disputes_in_words(*, operations: Iterable[Operation]) -> str:
    """What is said of them, each dispute with its case's name."""
    found = Case.objects.filter(_IN_DISPUTE, operation__in=[one.pk for one in operations]).select_related("resolved_by")
    return " ".join(case.dispute for case in found.order_by("number"))


def corrected_since(*, operations: Iterable[Operation], at: dt.datetime) -> str:
    """Which of them our record says otherwise of than it did at that time, as a sentence without its full stop; empty
    where none is."""
    changed = [one for one in operations if one.corrected_at is not None and one.corrected_at > at]
    named = [str(one.corrections.latest("number").before.get("external_reference") or one.identity) for one in changed]
    return f"our record of {', '.join(named)} was corrected after this was prepared" if named else ""


# ---- what was found


class Doubt(NamedTuple):
    """What a record says against ours: `code` tells it apart from others and stays, however `why` says it."""

    code: str
    why: str


def judge(
    *, run: Run, operation: Operation, found: Record, what: str, actor: Principal, asked_at: dt.datetime | None = None
) -> None:
    """Compare a record that `what` (a lookup, put at `asked_at`, or a late answer) brought with the settled operation:
    a person has to see what contradicts it, once."""
    names = (found.reference, *found.also)
    if found.void and voided_by_reversal(operation=operation, names=names):
        return  # our own reversal did, or may have; once that has failed it is looked at again
    doubt = _contradiction(operation, found, what)
    if not found.void and asked_at is not None and _reversed_before(operation, names, asked_at):
        why = f"{what} shows that {found.reference} stands, although our record says that it was reversed"
        doubt = Doubt(code=f"stands:{found.reference}", why=why)
    noted = Case.objects.filter(operation=operation, verdict=Case.Verdict.NOTED)
    if doubt and not noted.filter(doubts__contains=[doubt.code]).exists():
        kind, doubts, why = Case.Kind.DIFFERENT, [doubt.code], doubt.why
        if other := successor(operation):
            kind, why = Case.Kind.DUPLICATE, f"{doubt.why}, and “{other.run.title}” has done it anew since"
            doubts.append(f"anew:{other.pk}")
        open_case(run=run, operation=operation, kind=kind, doubts=doubts, why=why, actor=actor)


def voided_by_reversal(*, operation: Operation, names: Iterable[str]) -> bool:
    """Is the record of these names void, or may it be, because a reversal of ours was sent?"""
    sent = Operation.objects.filter(reverses=operation, reverses_reference__in=list(names))
    return sent.filter(state__in=(*IN_FLIGHT, OperationState.SUCCEEDED)).exists()


def _reversed_before(operation: Operation, names: Iterable[str], asked_at: dt.datetime) -> bool:
    """Was a record of these names undone, as our record has it, before they were asked?"""
    undone = operation.reversed_by.filter(reverses_reference__in=list(names), state=OperationState.SUCCEEDED)
    return undone.filter(settled_at__lt=asked_at).exists()


def _contradiction(operation: Operation, found: Record, what: str) -> Doubt | None:
    names = (found.reference, *found.also)
    ours = operation.external_reference in names
    if found.void:
        why = f"{what} shows that {found.reference} was voided after it had been confirmed"
        return Doubt(code=f"voided:{found.reference}", why=why) if ours else None
    if ours:
        if not found.mismatch or _settled_so(operation, found):
            return None
        differing = in_words(mismatch=found.mismatch, currency=operation.currency)
        return Doubt(
            code=f"otherwise:{found.reference}:{digest(found.mismatch)}",
            why=f"{what} shows {found.reference} otherwise than it was sent: {differing}",
        )
    if operation.other_reference in names:
        return None
    state = operation.get_state_display().lower()
    if operation.external_reference:
        state += f" as {operation.external_reference}"
    return Doubt(
        code=f"another:{found.reference}:{operation.state}:{operation.external_reference}",
        why=f"{what} names {found.reference}, but the operation is {state}",
    )


def _settled_so(operation: Operation, found: Record) -> bool:
    """A person settled it at this other amount."""
    return {name: pair[1] for name, pair in found.mismatch.items()} == {
        "amount_minor": operation.as_settled("actual_minor")
    }
