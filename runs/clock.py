"""The one clock: the database's, read at the moment of asking and never at a transaction's start."""

import datetime as dt

from django.db import connection
from django.db.models import DateTimeField, Func


class ClockTimestamp(Func):
    """`clock_timestamp()`: unlike Django's `Now()` it moves on while a statement waited for a lock."""

    function = "clock_timestamp"
    template = "%(function)s()"
    output_field = DateTimeField()


def now() -> dt.datetime:
    """The database's time; call it *after* the locks are held."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        row = cursor.fetchone()
    assert row is not None
    value: dt.datetime = row[0]
    return value
