"""The one clock: the database's, read at the moment of asking and never at a transaction's start."""

import datetime as dt
import time

from django.db import connection
from django.db.models import DateTimeField, Func


class ClockTimestamp(Func):
    """`clock_timestamp()`: unlike Django's `Now()` it moves on while a statement waited for a lock."""

    function = "clock_timestamp"
    template = "%(function)s()"
    output_field = DateTimeField()


_KEEP_SECONDS = 0.05
_QUICK_SECONDS = 0.005


def now() -> dt.datetime:
    """The database's time, to within `_QUICK_SECONDS` and never ahead of it; call it *after* the locks are held.

    A quick answer is carried on by this machine's monotonic clock for a moment, so that a step does not ask for every
    line it writes. Where it must be exact, ask `read`.
    """
    kept = getattr(connection, "agentops_clock", None)
    if kept is not None:
        gone = time.monotonic() - kept[1]
        if gone < _KEEP_SECONDS:
            carried: dt.datetime = kept[0] + dt.timedelta(seconds=gone)
            return carried
    return read()


def read() -> dt.datetime:
    """The database's time, asked for now."""
    began = time.monotonic()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        row = cursor.fetchone()
    assert row is not None
    value: dt.datetime = row[0]
    keep(at=value, began=began)
    return value


def keep(*, at: dt.datetime, began: float) -> None:
    """Carry on the time that a statement brought, begun at this machine's monotonic `began`."""
    ended = time.monotonic()
    # an answer that took long may be old already: a frozen process must not believe that it is still early
    connection.agentops_clock = (at, ended) if ended - began < _QUICK_SECONDS else None  # type: ignore[attr-defined]
