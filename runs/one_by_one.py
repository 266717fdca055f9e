"""Working off a list of which one that fails holds up no other, and what the database's own trouble is worth."""

import logging
from collections.abc import Callable, Iterable
from typing import TypeVar

from django.db import InterfaceError, OperationalError

Item = TypeVar("Item")
log = logging.getLogger(__name__)
LOCK_NOT_AVAILABLE, QUERY_CANCELED, DEADLOCK, SERIALIZATION = "55P03", "57014", "40P01", "40001"
# what the database says when it ends a connection or takes none: class 08, its shutdowns, and nothing at all
SHUTDOWNS = ("57P01", "57P02", "57P03", "25P03")


class NotAll(Exception):
    """Some could not be done, and wait; all the others were."""


def work_off(
    *,
    items: Iterable[Item],
    do: Callable[[Item], bool | None],
    name: Callable[[Item], str] = str,
    failed: Callable[[Item, Exception], None] | None = None,
) -> int:
    """Do each of them, in transactions of its own; returns how many were done: those of which `do` does not say False.

    What somebody else has locked is left for the next time. One that fails in a way that nobody foresaw is logged, told
    to `failed`, and named in the NotAll that is raised after the rest. A database that is gone is raised at once.
    """
    done, problems = 0, []
    for item in items:
        try:
            done += do(item) is not False
        except Exception as problem:
            if is_gone(problem=problem):
                raise
            if is_busy(problem=problem):
                continue
            log.exception("%s could not be done", name(item))
            problems.append(f"{name(item)} ({problem})")
            if failed is not None:
                failed(item, problem)
    if problems:
        raise NotAll(f"{len(problems)} of {done + len(problems)}, the first of them {problems[0]}")
    return done


def code_of(*, problem: BaseException) -> str:
    """The database's own code of what it raised; empty where it gave none."""
    return getattr(problem.__cause__, "sqlstate", None) or ""


def is_lost(*, problem: BaseException) -> bool:
    """Whether the transaction lost against another one, and would do if it were made again."""
    return isinstance(problem, OperationalError) and code_of(problem=problem) in (DEADLOCK, SERIALIZATION)


def is_busy(*, problem: BaseException) -> bool:
    """Whether the database gave up on the transaction, by its own code."""
    waited = isinstance(problem, OperationalError) and code_of(problem=problem) in (LOCK_NOT_AVAILABLE, QUERY_CANCELED)
    return waited or is_lost(problem=problem)


def is_gone(*, problem: BaseException) -> bool:
    """Whether there is no database to talk to, or no longer."""
    if not isinstance(problem, OperationalError | InterfaceError):
        return False
    code = code_of(problem=problem)
    return not code or code.startswith("08") or code in SHUTDOWNS
