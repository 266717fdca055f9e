"""Which statements a piece of work sends, for tests of what it may cost."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection
from django.test.utils import CaptureQueriesContext


@contextmanager
def statements_sent() -> Iterator[list[str]]:
    """The SQL of what is sent inside, without looks at the clock: how many of those there are hangs on the machine's
    speed. Filled in at the end."""
    sent: list[str] = []
    with CaptureQueriesContext(connection) as taken:
        yield sent
    sent += [one["sql"] for one in taken.captured_queries if not one["sql"].startswith("SELECT clock_timestamp()")]
