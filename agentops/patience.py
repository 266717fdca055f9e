"""Waiting for a database that is away for a moment: a worker neither uses up hints nor keeps a run meanwhile."""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connection

from runs.one_by_one import is_busy

Result = TypeVar("Result")
PAUSES = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0)  # seconds between two tries; together well within a lease
log = logging.getLogger(__name__)


def patiently(act: Callable[[], Result], /, *, busy_too: bool = False) -> Result:
    """Do `act`, and do it again while the database cannot be reached. Raises what the last try raised.

    A lock that was not given in time is raised at once: the database is there, somebody else has the row. With
    `busy_too` that is waited for as well, for what must not be given up.
    """
    for pause in PAUSES:
        try:
            return act()
        except (OperationalError, InterfaceError) as problem:
            if is_busy(problem=problem) and not busy_too:
                raise
            log.warning("the database could not do it, trying again: %s", problem)
            connection.close()
            time.sleep(pause)
    return act()
