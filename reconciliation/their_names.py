"""One record on their side settles one operation, by whichever of its names it is given.

A building block inside the caller's transaction: the run and the operation are locked, their totals not yet.
"""

from collections.abc import Iterable

from django.db import IntegrityError, connection, transaction
from django.db.models import QuerySet

from reconciliation.models import Operation, TheirName


def take(*, operation: Operation, names: Iterable[str]) -> TheirName | None:
    """Keep these names of theirs for the operation. What already settles another one is returned, and then nothing is
    kept. Waits for whoever is about to take one of them, so names are taken in one order."""
    wanted = sorted({one for one in names if one})
    if operation.is_settled:  # it is corrected: its own names stay
        wanted = sorted(set(wanted) - set(_standing(operation).values_list("name", flat=True)))
    if len(wanted) == 1 and _keep(operation, wanted[0]):
        return None
    try:
        with transaction.atomic():
            TheirName.objects.bulk_create(
                TheirName(system=operation.system, name=one, operation=operation) for one in wanted
            )
    except IntegrityError:
        held = TheirName.objects.filter(system=operation.system, name__in=wanted, given_up=False).exclude(
            operation=operation
        )
        taken = held.select_related("operation").order_by("name").first()
        if taken is None:
            raise
        return taken
    return None


_KEEP = """
INSERT INTO reconciliation_theirname (system, name, operation_id) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING
"""


def _keep(operation: Operation, name: str) -> bool:
    """False when it is taken."""
    with connection.cursor() as cursor:
        cursor.execute(_KEEP, [operation.system, name, operation.pk])
        return bool(cursor.rowcount)


def give_up(*, operation: Operation, but: Iterable[str]) -> None:
    """A correction has found that these names of theirs, `but` for some, do not stand for the operation."""
    _standing(operation).exclude(name__in=list(but)).update(given_up=True)


def _standing(operation: Operation) -> QuerySet[TheirName]:
    return TheirName.objects.filter(operation=operation, given_up=False)
