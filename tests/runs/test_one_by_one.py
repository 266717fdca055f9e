"""One that fails holds up no other, and is told; what is locked waits; a database that is gone ends it at once."""

import psycopg
import pytest
from django.db import IntegrityError, InterfaceError, OperationalError

from runs.one_by_one import NotAll, is_busy, is_gone, is_lost, work_off

BUSY = {"lock": "55P03", "slow": "57014", "deadlock": "40P01", "serialisation": "40001"}
GONE = {"class 08": "08006", "shutdown": "57P01", "starting": "57P03", "idle": "25P03", "nothing said": ""}


def trouble(sqlstate: str) -> OperationalError:
    problem = OperationalError("trouble")
    problem.__cause__ = psycopg.errors.lookup(sqlstate)("trouble") if sqlstate else psycopg.OperationalError("trouble")
    return problem


@pytest.mark.parametrize("sqlstate", BUSY.values(), ids=BUSY)
def test_what_is_busy_is_left_and_no_failure(sqlstate: str) -> None:
    problem, failed = trouble(sqlstate), []
    assert is_busy(problem=problem) and not is_gone(problem=problem)
    assert is_lost(problem=problem) == (sqlstate in ("40P01", "40001"))

    def do(item: int) -> None:
        if item == 2:
            raise problem

    assert work_off(items=[1, 2, 3], do=do, failed=lambda item, _: failed.append(item)) == 2
    assert failed == []


@pytest.mark.parametrize("sqlstate", GONE.values(), ids=GONE)
def test_a_database_that_is_gone_ends_it_at_once(sqlstate: str) -> None:
    problem, seen = trouble(sqlstate), []
    assert is_gone(problem=problem) and not is_busy(problem=problem)

    def do(item: int) -> None:
        seen.append(item)
        if item == 2:
            raise problem

    with pytest.raises(OperationalError):
        work_off(items=[1, 2, 3], do=do)
    assert seen == [1, 2]


def test_a_closed_connection_is_a_database_that_is_gone() -> None:
    assert is_gone(problem=InterfaceError("the connection is closed"))
    assert not is_gone(problem=IntegrityError("no")) and not is_busy(problem=ValueError("no"))


@pytest.mark.parametrize("kind", [ValueError, IntegrityError])
def test_one_that_fails_holds_up_no_other_and_is_named(kind: type[Exception], caplog: pytest.LogCaptureFixture) -> None:
    seen, failed = [], []

    def do(item: int) -> bool:
        seen.append(item)
        if item in (2, 4):
            raise kind(f"no such thing as {item}")
        return item != 3

    with pytest.raises(NotAll) as told:
        work_off(
            items=iter([1, 2, 3, 4, 5]),
            do=do,
            name=lambda item: f"number {item}",
            failed=lambda item, problem: failed.append((item, str(problem))),
        )
    assert seen == [1, 2, 3, 4, 5]
    assert str(told.value) == "2 of 4, the first of them number 2 (no such thing as 2)"
    assert failed == [(2, "no such thing as 2"), (4, "no such thing as 4")]
    assert "number 2 could not be done" in caplog.text and "no such thing as 4" in caplog.text
    assert work_off(items=[1, 3, 5], do=do) == 2
