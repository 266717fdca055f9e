"""Looking for requests that nobody can answer any more: people leave, are deactivated, lose a right. Their runs are
made due, and say it; those that said it already look again, since somebody may have come."""

import uuid

from django.db import transaction

from approvals import staffing
from approvals.models import Stage
from approvals.models.request import RequestState
from runs import transitions
from runs.models import Run
from runs.models.run import RunState

PART = 200


def work_off(*, limit: int = PART) -> int:
    """Wake them; returns how many. What somebody else has locked is left for the next look."""
    waiting = Run.objects.filter(state=RunState.AWAITING_APPROVAL, finished_at__isnull=True)
    asked = Stage.objects.filter(
        staffing.unanswerable(), opened_at__isnull=False, met_at__isnull=True, request__state=RequestState.OPEN
    )
    silent = waiting.filter(pk__in=asked.values("request__run_id")).exclude(waits_for__startswith=staffing.NOBODY)
    said = waiting.filter(waits_for__startswith=staffing.NOBODY)
    found = [*silent.order_by("pk").values_list("pk", flat=True)[:limit]]
    found += said.order_by("wake_at").values_list("pk", flat=True)[:limit]
    return sum(_wake(pk) for pk in found)


def _wake(pk: uuid.UUID) -> bool:
    with transaction.atomic(durable=True):
        run = Run.objects.select_for_update(of=("self",), skip_locked=True).filter(pk=pk).first()
        if run is None or run.state != RunState.AWAITING_APPROVAL:
            return False
        transitions.wake(run=run)
        return True
