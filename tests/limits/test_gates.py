"""The rows that all workers share, asked by many at once: circuits, trials, asked-for pauses, places in a line."""

import datetime as dt
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from reconciliation.circuit import Word, of_call, of_error
from reconciliation.classification import Result
from reconciliation.models import Dependency
from reconciliation.services import gates
from runs import clock
from runs.tools.base import Ambiguous, NotSent, Overloaded, Rate, Refused, ToolError, Unreachable
from tests.approvals.world import at_once

TOOL, SYSTEM = "stub.count", "stub"
DOWN = {"error": "ConnectionError", "text": "refused"}


def fail(name: str = TOOL, times: int = 1, **raw: Any) -> None:
    for _ in range(times):
        gates.heard(
            name=name, result=Result.AMBIGUOUS, detail="Stub answered 503.", raw=raw or {"status": 503},
            retry_after=None, now=clock.now(), troubled=True,
        )  # fmt: skip


def answer(name: str = TOOL) -> None:
    gates.heard(
        name=name, result=Result.DONE, detail="", raw={}, retry_after=None, now=clock.now(), troubled=True
    )  # fmt: skip


def send(*, rate: Rate | None = None, turn: dt.datetime | None = None) -> gates.Go | gates.Wait:
    return gates.may_send(tool=TOOL, rate=rate, turn=turn, seconds=30)


def row(name: str = TOOL) -> Dependency:
    return Dependency.objects.get(pk=name)


def trial_is_due(name: str = TOOL) -> None:
    Dependency.objects.filter(pk=name).update(ask_at=clock.ClockTimestamp())


def statements(action: Callable[[], Any]) -> int:
    seen: list[str] = []

    def count(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        seen.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(count):
        action()
    return len(seen)


# ---- what the end of a call says


CALLS = [
    (Result.DONE, {}, Word.ANSWERED),
    (Result.REFUSED, {"status": 402}, Word.ANSWERED),
    (Result.OVERLOADED, {"status": 429}, Word.LIMITED),
    (Result.NOT_SENT, DOWN, Word.FAILED),
    (Result.NOT_SENT, {}, Word.NOTHING),  # this worker was too slow to begin, or there is no address
    (Result.AMBIGUOUS, DOWN, Word.FAILED),
    (Result.AMBIGUOUS, {"status": 503}, Word.FAILED),
    (Result.AMBIGUOUS, {"status": 408}, Word.FAILED),
    (Result.AMBIGUOUS, {"status": 409}, Word.ANSWERED),
    (Result.AMBIGUOUS, {"answer": "?"}, Word.NOTHING),
    (Result.SENDER_GONE, {}, Word.NOTHING),
]


@pytest.mark.parametrize(("result", "raw", "word"), CALLS)
def test_only_the_system_itself_counts_as_failed(result: Result, raw: dict[str, Any], word: Word) -> None:
    assert of_call(result=result, raw=raw) == word


@given(st.sampled_from(list(Result)), st.dictionaries(st.sampled_from(["status", "error"]), st.integers(0, 999)))
def test_every_end_of_a_call_has_one_meaning(result: Result, raw: dict[str, Any]) -> None:
    assert of_call(result=result, raw=raw) in Word


@pytest.mark.parametrize("error", [NotSent("x"), Refused("x", code="c"), Overloaded("x"), Ambiguous("x")])
def test_each_error_has_its_result(error: ToolError) -> None:
    expected = {NotSent: "not_sent", Refused: "refused", Overloaded: "overloaded", Ambiguous: "ambiguous"}
    assert of_error(error) == expected[type(error)]


# ---- all is well


def test_when_all_is_well_nothing_is_written_and_one_statement_tells_the_time_as_well(db: str) -> None:
    assert statements(send) == 1
    assert statements(lambda: gates.may_read(systems=[SYSTEM, "other"], tool=TOOL)) == 1
    go = gates.Go(now=clock.now())
    done = {"name": TOOL, "result": Result.DONE, "detail": "", "raw": {}, "retry_after": None, "now": go.now}
    assert statements(lambda: gates.heard(**done, troubled=False)) == 0
    assert statements(lambda: gates.heard_reading(systems=[SYSTEM], go=go, problem=None)) == 0
    assert not Dependency.objects.exists()
    rated = Rate(calls=100, per=dt.timedelta(seconds=1), burst=5)
    assert statements(lambda: send(rate=rated)) == 1


# ---- the circuit


def test_it_opens_after_failures_in_a_row_and_an_answer_between_starts_the_count_anew(db: str) -> None:
    fail(times=gates.OPENS_AFTER - 1)
    answer()
    fail(times=gates.OPENS_AFTER - 1)
    assert isinstance(send(), gates.Go) and row().open_since is None
    fail()
    held = send()
    assert isinstance(held, gates.Wait) and (held.code, held.waits_on) == ("circuit_open", TOOL)
    assert held.waits_for.startswith("stub.count to answer again; asked next at ") and held.until > clock.now()
    assert row().last_failure == "Stub answered 503." and row().open_since is not None


def test_calls_that_were_under_way_when_it_opened_put_the_question_off_no_further(db: str) -> None:
    fail(times=gates.OPENS_AFTER)
    before = row()
    fail(times=10)
    assert (row().ask_at, row().failures) == (before.ask_at, gates.OPENS_AFTER)


def test_one_trial_at_a_time_among_many_workers(db: str) -> None:
    fail(times=gates.OPENS_AFTER)
    assert {type(one) for one in at_once(*[send] * 4)} == {gates.Wait}  # not due yet
    for _ in range(2):
        trial_is_due()
        answers = at_once(*[send] * 8)
        assert sorted(type(one).__name__ for one in answers) == ["Go"] + ["Wait"] * 7
        ask_at = row().ask_at
        fail()
        assert row().trial_until is None and row().ask_at > ask_at and row().ask_at > clock.now()
    trial_is_due()
    assert sum(isinstance(one, gates.Go) for one in at_once(*[send] * 8)) == 1
    answer()
    assert (row().open_since, row().failures, row().trial_until) == (None, 0, None)


def test_reads_and_lookups_share_one_trial_too(db: str) -> None:
    fail(SYSTEM, times=gates.OPENS_AFTER)
    trial_is_due(SYSTEM)
    answers = at_once(*[lambda: gates.may_read(systems=["other", SYSTEM])] * 8)
    [go] = [one for one in answers if isinstance(one, gates.Go)]
    gates.heard_reading(systems=["other", SYSTEM], go=go, problem=None)
    assert row(SYSTEM).open_since is None
    assert all(isinstance(one, gates.Go) for one in at_once(*[lambda: gates.may_read(systems=[SYSTEM])] * 3))


def test_a_trial_whose_worker_never_comes_back_lapses(db: str) -> None:
    fail(times=gates.OPENS_AFTER)
    trial_is_due()
    assert isinstance(send(), gates.Go) and isinstance(send(), gates.Wait)
    Dependency.objects.update(trial_until=clock.ClockTimestamp())
    assert isinstance(send(), gates.Go)


def test_a_reading_that_failed_elsewhere_ends_its_trial_without_a_word(db: str) -> None:
    fail(SYSTEM, times=gates.OPENS_AFTER)
    trial_is_due(SYSTEM)
    go = gates.may_read(systems=["other", SYSTEM])
    assert isinstance(go, gates.Go)
    problem = Unreachable("x", dependency="other", problem=NotSent("x", raw=DOWN))
    gates.heard_reading(systems=["other", SYSTEM], go=go, problem=problem)
    assert (row(SYSTEM).open_since is None, row(SYSTEM).trial_until, row("other").failures) == (False, None, 1)
    assert isinstance(gates.may_read(systems=[SYSTEM]), gates.Go)


def test_a_tool_that_is_down_keeps_nobody_from_reading_its_system(db: str) -> None:
    fail(times=gates.OPENS_AFTER)
    assert isinstance(gates.may_read(systems=[SYSTEM]), gates.Go)
    assert isinstance(gates.may_read(systems=[SYSTEM], tool=TOOL), gates.Wait)


def test_a_system_that_is_down_and_says_until_when_is_asked_no_earlier(db: str) -> None:
    fail(times=gates.OPENS_AFTER, status=503, headers={"retry-after": "600"})
    ask_at = row().ask_at
    assert ask_at is not None and ask_at > clock.now() + dt.timedelta(seconds=590)


# ---- asked to wait


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [("30", 29, 30), ("99999999999999", 3590, 3600), ("-30", 0, 1), ("soon", 0, 1), (None, 0, 1), ("0", -1, 0)],
)
def test_what_one_call_is_told_holds_for_all(db: str, header: str | None, least: int, most: int) -> None:
    gates.heard(
        name=TOOL, result=Result.OVERLOADED, detail="", raw={"status": 429}, retry_after=header, now=clock.now(),
        troubled=False,
    )  # fmt: skip
    not_before = row().not_before
    assert not_before is not None
    left = (not_before - clock.now()).total_seconds()
    assert least - 1 < left <= most
    if left > 0.5:
        waits = at_once(*[send] * 6)
        assert all(isinstance(one, gates.Wait) and one.code == "left_alone" for one in waits)
        places = sorted(one.until for one in waits)
        assert places[0] >= not_before and len(set(places)) == 6  # nobody before it lifts, and no two together


def test_a_shorter_pause_takes_a_longer_one_not_back(db: str) -> None:
    for header in ("60", "1"):
        gates.heard(
            name=TOOL, result=Result.OVERLOADED, detail="", raw={}, retry_after=header, now=clock.now(), troubled=False
        )  # fmt: skip
    assert row().not_before > clock.now() + dt.timedelta(seconds=50)


# ---- the rate


def test_many_at_once_get_as_many_places_as_the_rate_has(db: str) -> None:
    rate = Rate(calls=10, per=dt.timedelta(seconds=100))
    answers = at_once(*[lambda: send(rate=rate)] * 9)
    waits = [one for one in answers if isinstance(one, gates.Wait)]
    assert len(waits) == 8 and {one.code for one in waits} == {"rate"}
    places = sorted(one.until for one in waits)
    apart = [(after - before).total_seconds() for before, after in itertools.pairwise(places)]
    assert apart == pytest.approx([10.0] * 7)
    assert "10 calls per 100 s" in waits[0].waits_for


def test_who_comes_later_stands_behind_those_that_wait(db: str) -> None:
    rate = Rate(calls=10, per=dt.timedelta(seconds=1), burst=3)
    first = [send(rate=rate) for _ in range(6)]
    assert [isinstance(one, gates.Go) for one in first] == [True] * 3 + [False] * 3
    ends = max(one.until for one in first if isinstance(one, gates.Wait))
    newcomer = send(rate=rate)
    assert isinstance(newcomer, gates.Wait) and newcomer.until > ends
    Dependency.objects.update(free_at=clock.ClockTimestamp())
    assert isinstance(send(rate=rate), gates.Wait)  # a place is free, and belongs to those in line
    assert isinstance(send(rate=rate, turn=clock.now()), gates.Go)


def test_a_turn_whose_time_has_come_still_keeps_to_the_rate(db: str) -> None:
    rate = Rate(calls=1, per=dt.timedelta(seconds=60))
    turn = clock.now()
    answers = at_once(*[lambda: send(rate=rate, turn=turn)] * 5)
    assert sum(isinstance(one, gates.Go) for one in answers) == 1


@pytest.mark.parametrize(
    ("calls", "seconds", "words"),
    [(5, 1, "5 calls per second"), (1, 1, "1 call per second"), (9, 0.5, "9 calls per 0.5 s")],
)
def test_a_rate_says_what_it_is(calls: int, seconds: float, words: str) -> None:
    rate = Rate(calls=calls, per=dt.timedelta(seconds=seconds))
    assert (str(rate), rate.spacing.total_seconds()) == (words, pytest.approx(seconds / calls, abs=1e-6))


@pytest.mark.parametrize("wrong", [{"calls": 0}, {"burst": 0}, {"per": dt.timedelta(0)}])
def test_a_rate_of_nothing_is_none(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="at least one call"):
        Rate(**{"calls": 1, "per": dt.timedelta(seconds=1), **wrong})
