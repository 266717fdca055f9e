"""Recurring work: begun by whoever comes first when it is due, however many look; when it ran last is a row."""

import datetime as dt
from collections.abc import Iterable

from django.db import connection

from runs import clock
from runs.models import Recurring

# work that began and was never finished is begun again after this many of its turns
STALLED_TURNS = 6
STALLED_AT_LEAST = dt.timedelta(seconds=30)

_BEGIN = """
INSERT INTO runs_recurring AS r (name, every_seconds, started_at, result, failed)
VALUES (%(name)s, %(every)s, clock_timestamp(), '', FALSE)
ON CONFLICT (name) DO UPDATE SET started_at = clock_timestamp(), every_seconds = excluded.every_seconds
 WHERE r.started_at <= clock_timestamp() - make_interval(secs => %(gap)s)
RETURNING name
"""


def begin(*, name: str, every: int) -> bool:
    """Take this turn: True for one caller in every `every` seconds. One statement."""
    with connection.cursor() as cursor:
        # a little less, so that a clock that ticks a moment early does not skip every second turn
        cursor.execute(_BEGIN, {"name": name, "every": every, "gap": every * 0.9})
        return cursor.fetchone() is not None


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
