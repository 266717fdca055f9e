"""Recurring work: begun by whoever comes first when it is due, however many look; when it ran last is a row."""

import datetime as dt
from collections.abc import Iterable

from runs import clock
from runs.models import Recurring

# work that began and was never finished is begun again after this many of its turns
STALLED_TURNS = 6
STALLED_AT_LEAST = dt.timedelta(seconds=30)


def begin(*, name: str, every: int) -> bool:
    """Take this turn: True for one caller in every `every` seconds, however many come at once."""
    # a little less, so that a clock that ticks a moment early does not skip every second turn
    before = clock.now() - dt.timedelta(seconds=every * 0.9)
    due = Recurring.objects.filter(pk=name, started_at__lte=before)
    if due.update(started_at=clock.ClockTimestamp(), every_seconds=every):
        return True
    first = {"every_seconds": every, "started_at": clock.ClockTimestamp()}
    return Recurring.objects.get_or_create(pk=name, defaults=first)[1]


def finish(*, name: str, result: str, failed: bool = False) -> None:
    """Say what came of the turn."""
    Recurring.objects.filter(pk=name).update(
        finished_at=clock.ClockTimestamp(), result=" ".join(result.split())[:300], failed=failed
    )


def stalled(*, job: Recurring, now: dt.datetime) -> str:
    """What is wrong with it, in words that follow its name; empty while it keeps its time and ends well."""
    every = dt.timedelta(seconds=job.every_seconds)
    last = job.finished_at or job.started_at
    if now - last > max(every * STALLED_TURNS, STALLED_AT_LEAST):
        ended = "last finished" if job.finished_at else "has never finished; it began"
        return f"{ended} {int((now - last).total_seconds())} s ago and is due every {job.every_seconds} s"
    return f"failed the last time: {job.result}" if job.failed else ""


def told(*, names: Iterable[str]) -> list[tuple[Recurring, str]]:
    """Those jobs that have run, by name, each with what is wrong with it or nothing."""
    now = clock.now()
    return [(one, stalled(job=one, now=now)) for one in Recurring.objects.filter(name__in=names).order_by("name")]
