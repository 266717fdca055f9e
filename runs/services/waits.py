"""Waking runs for what no message tells: another run's end."""

from django.db import transaction
from django.db.models import Q

from runs import clock, transitions
from runs.models import Run, Wait

A_WORKER = "worker"  # `run.waits_on` of a run that no worker here knows: it looks again in its own time


def wake_for_ended_runs(*, limit: int) -> int:
    """Make the runs due whose other run has ended, and return how many; a transaction for each, so no two runs are
    ever locked at once. It looks at what is, so a crash between an end and this loses nothing."""
    ended = Wait.objects.filter(ended_at__isnull=True, other__finished_at__isnull=False)
    # one that was woken and got nowhere looks again in its own time, or it would be woken at every look
    ended = ended.filter(run__claims_in_row=0).exclude(run__waits_on=A_WORKER)
    ended = ended.filter(run__paused_at__isnull=True, run__frozen_by__isnull=True)  # woken when they may go on
    asleep = Q(run__wake_at__isnull=True) | Q(run__wake_at__gt=clock.ClockTimestamp())
    found = list(ended.filter(asleep).values_list("run_id", flat=True)[:limit])
    for run_id in found:
        with transaction.atomic(durable=True):
            run = Run.objects.select_for_update(of=("self",), skip_locked=True).filter(pk=run_id).first()
            if run is not None:
                transitions.wake(run=run)
    return len(found)
