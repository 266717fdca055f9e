"""The rules about answers, absence and sending again, at their edges. Pure: no database, no clock."""

import datetime as dt
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from agentops.steps import executing
from reconciliation.classification import (
    Outcome,
    Resend,
    Result,
    Sent,
    absence_is_conclusive,
    after_answer,
    conclusive_from,
    resend,
)
from runs.tools.base import Ambiguous, NotSent, Overloaded, Record, Refused, Repeat
from runs.tools.billing.contract import CREATE_CREDIT

AT = dt.datetime(2026, 1, 5, 9, 0, tzinfo=dt.UTC)
MOMENT = dt.timedelta(microseconds=1)
CONTRACT = replace(
    CREATE_CREDIT, repeat=Repeat.BY_IDENTITY, retention=dt.timedelta(hours=24), settling=dt.timedelta(seconds=20)
)
ONE = Sent(
    epoch=0,
    opened_at=AT,
    send_before=AT + dt.timedelta(seconds=5),
    call_limit=dt.timedelta(seconds=10),
    can_wake=False,
)
BOUND = AT + dt.timedelta(seconds=5 + 10 + 20)
KEPT_UNTIL = AT + CONTRACT.retention - dt.timedelta(minutes=10)


@pytest.mark.parametrize(
    ("result", "as_sent", "outcome"),
    [
        (Result.DONE, True, Outcome.SUCCEEDED),
        (Result.DONE, False, Outcome.UNKNOWN),
        (Result.AMBIGUOUS, False, Outcome.UNKNOWN),  # a time-out is no failure
        (Result.SENDER_GONE, False, Outcome.UNKNOWN),
        (Result.REFUSED, False, Outcome.FAILED),
        (Result.OVERLOADED, False, Outcome.LATER),
        (Result.NOT_SENT, False, Outcome.LATER),
    ],
)
def test_what_the_only_answer_means(result: Result, as_sent: bool, outcome: Outcome) -> None:
    assert after_answer(earlier=[], result=result, as_sent=as_sent) == outcome
    for harmless in (Result.NOT_SENT, Result.REFUSED, Result.OVERLOADED):
        assert after_answer(earlier=[harmless], result=result, as_sent=as_sent) == outcome
    for unclear in (Result.AMBIGUOUS, Result.SENDER_GONE, Result.DONE):
        earlier = [Result.NOT_SENT, unclear]
        assert after_answer(earlier=earlier, result=result, as_sent=as_sent) == Outcome.UNKNOWN


def absent(*, at: dt.datetime, attempts: tuple[Sent, ...] = (ONE,), seen: bool = False, proves: bool = True) -> bool:
    contract = replace(CONTRACT, lookup_is_conclusive=proves)
    return absence_is_conclusive(contract=contract, attempts=attempts, asked_at=at, seen=seen)


def test_absence_is_proof_only_after_the_last_call_has_ended_and_settled() -> None:
    assert conclusive_from(contract=CONTRACT, attempts=[ONE]) == BOUND
    assert not absent(at=AT) and not absent(at=BOUND - MOMENT) and not absent(at=BOUND)
    assert absent(at=BOUND + MOMENT)
    later = replace(ONE, opened_at=AT + dt.timedelta(hours=1), send_before=ONE.send_before + dt.timedelta(hours=1))
    assert not absent(at=BOUND + MOMENT, attempts=(later, ONE))
    assert absent(at=BOUND + dt.timedelta(hours=1) + MOMENT, attempts=(later, ONE))


def test_absence_proves_nothing_where_somebody_may_wake_or_it_was_seen_or_the_lookup_is_weak() -> None:
    late = BOUND + dt.timedelta(days=9)
    assert absent(at=late)
    assert not absent(at=late, attempts=(ONE, replace(ONE, can_wake=True)))
    assert not absent(at=late, seen=True)
    assert not absent(at=late, proves=False)


def again(*, now: dt.datetime, absent_at: dt.datetime = AT, **more: Any) -> Resend:
    given = {"contract": CONTRACT, "attempts": [ONE], "seen": False, **more}
    return resend(absent_at=absent_at, now=now, **given)


def test_the_same_key_is_used_only_while_the_receiver_surely_keeps_it() -> None:
    assert again(now=KEPT_UNTIL - MOMENT) == Resend.SAME_KEY
    assert again(now=KEPT_UNTIL) == Resend.NO
    assert again(now=KEPT_UNTIL, absent_at=KEPT_UNTIL) == Resend.NEW_EPOCH  # absence is proved by then
    # the first use of the key is what its keeping is counted from
    second = replace(ONE, opened_at=KEPT_UNTIL - MOMENT, send_before=KEPT_UNTIL)
    newer = replace(second, epoch=1)
    assert again(now=KEPT_UNTIL, attempts=[ONE, newer]) == Resend.SAME_KEY
    assert again(now=KEPT_UNTIL - MOMENT, attempts=[ONE, second]) == Resend.NO  # twice at most


def test_the_next_key_needs_proof_and_nothing_is_sent_again_where_it_may_not() -> None:
    first = replace(CONTRACT, repeat=Repeat.LOOK_UP_FIRST)
    after = BOUND + MOMENT
    assert again(now=after, absent_at=BOUND, contract=first) == Resend.NO
    assert again(now=after, absent_at=after, contract=first) == Resend.NEW_EPOCH
    once = replace(CONTRACT, repeat=Repeat.ONCE)
    few = replace(CONTRACT, max_attempts=1)
    waking = [replace(ONE, can_wake=True)]
    for more in ({"contract": once}, {"contract": few}, {"attempts": waking}, {"seen": True}):
        assert again(now=after, absent_at=after, **more) == Resend.NO


class Stub:
    """A connector that says what it is told to say."""

    contract: ClassVar[Any] = CONTRACT

    def __init__(self, says: Exception | Record) -> None:
        self.says = says
        self.calls = 0

    def send(self, **_: Any) -> Record:
        self.calls += 1
        if isinstance(self.says, Exception):
            raise self.says
        return self.says

    def look_up(self, **_: Any) -> Any:
        raise AssertionError("a call looks nothing up")


def _opened() -> Any:
    attempt = SimpleNamespace(opened_at=AT, send_before=AT + dt.timedelta(hours=1), wire_key="one:0")
    return SimpleNamespace(attempt=attempt, operation=SimpleNamespace(system="billing", effect={}, identity="one"))


@pytest.mark.parametrize(
    ("says", "result"),
    [
        (Ambiguous("no answer"), Result.AMBIGUOUS),
        (TimeoutError("read timed out"), Result.AMBIGUOUS),
        (ConnectionResetError("reset"), Result.AMBIGUOUS),
        (ValueError("not JSON"), Result.AMBIGUOUS),
        (NotSent("no connection"), Result.NOT_SENT),
        (Refused("no", code="no"), Result.REFUSED),
        (Overloaded("later"), Result.OVERLOADED),
        (Record(reference="CN-1", identity="one"), Result.DONE),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception | Record) else str(value),
)
def test_only_what_is_known_to_be_without_effect_is_called_so(says: Exception | Record, result: Result) -> None:
    connector = Stub(says)
    assert executing.call(connector, _opened(), began=executing.time.monotonic()).result == result
    assert connector.calls == 1


def test_a_worker_that_is_too_slow_does_not_call() -> None:
    connector = Stub(TimeoutError())
    too_late = executing.time.monotonic() - 3601
    assert executing.call(connector, _opened(), began=too_late).result == Result.NOT_SENT
    assert connector.calls == 0
