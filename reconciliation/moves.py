"""Moving an operation: the machine's edge, the row, its reservations and the record, under the run's row lock."""

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.db.models import BooleanField, QuerySet
from django.db.models.expressions import RawSQL

from approvals import freezes
from approvals.models import Allowance
from reconciliation.models import Attempt, Operation, Reservation
from reconciliation.models.operation import SETTLED, OperationState
from runs import clock, hot, record
from runs.models import Principal, Run

S = OperationState
_MOVES = {
    S.SENDING: "send",
    S.AUTHORISED: "come_back",
    S.SUCCEEDED: "succeed",
    S.FAILED: "fail",
    S.ACCEPTED: "accept",
    S.UNKNOWN: "lose_track",
    S.ABANDONED: "abandon",
    S.COMPENSATED: "compensate",
}

MOVED = ["reserved_minor", "settled_minor", "overrun_minor", "reserved_count", "settled_count"]


_RUN = hot.Query(
    lambda operation: Run.objects.select_for_update(of=("self",)).filter(
        pk__in=Operation.objects.filter(pk=operation).values("run_id")
    )
)
_OPERATION = hot.Query(lambda operation: Operation.objects.select_for_update(of=("self",)).filter(pk=operation))
_RESERVED = hot.Query(lambda operation: Reservation.objects.filter(operation=operation, state="reserved"))


def lock(*, operation_id: uuid.UUID) -> tuple[Run, Operation]:
    """The operation with its run, locked in the fixed order: run first. Raises Operation.DoesNotExist."""
    run = _RUN.first(operation=operation_id)
    if run is None:
        raise Operation.DoesNotExist(f"there is no operation {operation_id}")
    return run, _OPERATION.one(operation=operation_id)


_FROZEN: dict[str, Any] = {"any_freeze": RawSQL(freezes.ANY, (), output_field=BooleanField())}
_RUN_BY = hot.Query(
    lambda attempt: (
        Run.objects.select_for_update(of=("self",))
        .filter(pk__in=Operation.objects.filter(attempts=attempt).values("run_id"))
        .annotate(**_FROZEN)
    )
)
_OPERATION_BY = hot.Query(
    lambda attempt: Operation.objects.select_for_update(of=("self",)).filter(
        pk__in=Attempt.objects.filter(pk=attempt).values("operation_id")
    )
)
_ATTEMPT = hot.Query(lambda attempt: Attempt.objects.select_for_update(of=("self",)).filter(pk=attempt))


def lock_attempt(*, attempt_id: uuid.UUID) -> tuple[Run, Operation, Attempt]:
    """The attempt with its operation and its run, locked in the fixed order; `run.any_freeze` says whether anything is
    frozen. There is such an attempt."""
    run, operation = _RUN_BY.one(attempt=attempt_id), _OPERATION_BY.one(attempt=attempt_id)
    return run, operation, _ATTEMPT.one(attempt=attempt_id)


def move(*, run: Run, operation: Operation, to: OperationState, actor: Principal, why: str, **fields: Any) -> None:
    """Take the declared edge, set `fields`, settle or release what was reserved, and append to the run's record.

    Raises django_fsm.TransitionNotAllowed when there is no such edge.
    """
    source = operation.state
    reserved = _RESERVED(operation=operation.pk) if to in SETTLED else []
    if reserved:  # before the operation changes: a sender that holds a total may wait for this very business key
        lock_allowances(keys=[one.allowance_id for one in reserved])
    edge: Callable[[], None] = getattr(operation, _MOVES[to])
    edge()
    now = clock.now()
    if to in SETTLED:
        look_at = operation.look_wanted_at  # told of something meanwhile: it is looked up, settled or not
        fields = {"settled_at": now, "next_attempt_at": None, "next_probe_at": look_at, **fields}
    if to in (S.UNKNOWN, S.ACCEPTED):
        fields.setdefault("unknown_since", operation.unknown_since or now)
    for name, value in fields.items():
        setattr(operation, name, value)
    hot.update(row=operation, names=["state", *fields])
    if reserved and to in (S.SUCCEEDED, S.FAILED, S.ABANDONED):
        close_reservations(operation=operation, settled=to == S.SUCCEEDED)
    record.append(
        run=run,
        kind="operation.state",
        actor=actor,
        operation=str(operation.pk),
        identity=operation.identity,
        source=source,
        target=str(to),
        why=why,
    )


def lock_reserved(*, operation: Operation) -> list[Reservation]:
    """Every total that the operation has ever counted towards, locked, and what it holds of each."""
    found = list(Reservation.objects.filter(operation=operation).order_by("pk"))
    lock_allowances(keys=[one.allowance_id for one in found])
    return found


def lock_allowances(*, keys: Iterable[str], missing: Mapping[str, Allowance] | None = None) -> dict[str, Allowance]:
    """Lock totals until the transaction ends, making those of `missing` that are not there yet.

    Runs share totals, so everybody locks them here and in this one order: Python's, one statement each. (The database
    would sort by its collation, and one statement for all promises no order.)
    """
    locked: dict[str, Allowance] = {}
    for key in sorted(set(keys)):
        if missing is not None and key in missing:
            Allowance.objects.bulk_create([missing[key]], ignore_conflicts=True)
        locked[key] = Allowance.objects.select_for_update().get(pk=key)
    return locked


def close_reservations(*, operation: Operation, settled: bool) -> None:
    """Turn what the operation reserved into spent, or give it back; the allowances are locked by now."""
    for one in Reservation.objects.filter(operation=operation, state="reserved").select_related("allowance"):
        total = one.allowance
        counted = total.count_limit is not None
        total.reserved_minor -= one.amount_minor
        total.reserved_count -= counted
        if settled:
            total.settled_count += counted
            _spend(total=total, minor=booked(operation=operation, reservation=one))
        total.save(update_fields=MOVED)
        Reservation.objects.filter(pk=one.pk).update(state="settled" if settled else "released")


def booked(*, operation: Operation, reservation: Reservation) -> int:
    """What a settled operation counts towards one of its totals, in minor units: nothing unless it happened; what was
    recorded at another amount counts at that amount, and what was recorded twice counts twice until one is reversed."""
    if operation.state != S.SUCCEEDED:
        return 0
    actual = operation.as_settled("actual_minor")
    return (int(actual) if actual else reservation.amount_minor) + (operation.other_minor or 0)


def book(*, operation: Operation, reservation: Reservation, before: int) -> None:
    """After a correction: the total counts what is true now instead of `before`. It is locked by now."""
    total = Allowance.objects.get(pk=reservation.allowance_id)
    _spend(total=total, minor=booked(operation=operation, reservation=reservation) - before)
    if total.count_limit is not None:  # the truth is booked, and a count that is full stays full
        more = (operation.state == S.SUCCEEDED) - (reservation.state == "settled")
        total.settled_count = min(max(0, total.settled_count + more), total.count_limit - total.reserved_count)
    total.save(update_fields=["settled_minor", "overrun_minor", "settled_count"])
    state = "settled" if operation.state == S.SUCCEEDED else "released"
    Reservation.objects.filter(pk=reservation.pk).update(state=state)


def _spend(*, total: Allowance, minor: int) -> None:
    """It goes over the limit visibly if it must: the truth is booked even where it should not have happened."""
    total.settled_minor += minor
    total.overrun_minor = max(total.overrun_minor, total.reserved_minor + total.settled_minor - total.limit_minor)


def lock_spent(*, operation: Operation) -> None:
    """Lock every total that the operation was spent from."""
    lock_allowances(keys=_spent(operation).values_list("allowance_id", flat=True))


def give_back(*, operation: Operation, minor: int, released: bool) -> None:
    """Take what was undone out of every total it was spent from, which are locked; `released` when nothing of the
    operation counts any more."""
    for one in _spent(operation).select_related("allowance"):
        total = one.allowance
        total.settled_minor -= minor
        if released and total.count_limit is not None:
            total.settled_count = max(0, total.settled_count - 1)
        total.save(update_fields=["settled_minor", "settled_count"])
    if released:
        _spent(operation).update(state=Reservation.State.RELEASED)


def _spent(operation: Operation) -> QuerySet[Reservation]:
    return Reservation.objects.filter(operation=operation, state=Reservation.State.SETTLED)
