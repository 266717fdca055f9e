"""Looking up settled operations that something was told about, also those of runs that are over."""

import datetime as dt
import uuid

from django.db import transaction

from reconciliation import moves
from reconciliation.models import Observation, Operation
from reconciliation.models.operation import SETTLED
from reconciliation.services import gates, probe
from runs import clock
from runs.services import principals
from runs.tools.registry import tool

LOOK_AGAIN = dt.timedelta(minutes=1)  # somebody who took a look and was lost holds it up no longer than this


def due(*, limit: int) -> list[uuid.UUID]:
    """Settled operations whose look is due, the longest due first."""
    found = Operation.objects.filter(
        state__in=SETTLED, look_wanted_at__isnull=False, next_probe_at__lte=clock.ClockTimestamp()
    )
    return list(found.order_by("next_probe_at").values_list("pk", flat=True)[:limit])


def look(*, operation_id: uuid.UUID) -> Observation | None:
    """Ask about it if that is due; None when it is not, or there is no such operation. A look counts once for all who
    wanted it until then. Sends nothing."""
    operation = _take(operation_id)
    if operation is None:
        return None
    connector = tool(operation.tool)
    gate = gates.may_read(systems=[connector.contract.system])
    if isinstance(gate, gates.Wait):  # it does not answer now: nothing is asked, so nothing is counted
        Operation.objects.filter(pk=operation.pk, look_wanted_at__isnull=False).update(next_probe_at=gate.until)
        return None
    return probe.ask(operation=operation, connector=connector, actor=principals.system())


def _take(operation_id: uuid.UUID) -> Operation | None:
    """Claim the look for a while, so that no two ask at once."""
    with transaction.atomic(durable=True):
        if not Operation.objects.filter(pk=operation_id).exists():
            return None
        _, operation = moves.lock(operation_id=operation_id)
        now, at = clock.now(), operation.next_probe_at
        if not operation.is_settled or operation.look_wanted_at is None or at is None or at > now:
            return None
        operation.next_probe_at = now + LOOK_AGAIN
        operation.save(update_fields=["next_probe_at"])
        return operation
