"""Retry-After in every form it comes in, and the pause that grows."""

import datetime as dt
import random
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.retry import MAX_RETRY_AFTER, backoff, retry_after

NOW = dt.datetime(2026, 3, 4, 5, 6, 7, tzinfo=dt.UTC)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MOMENTS = st.integers(0, 200_000_000_000).map(lambda seconds: EPOCH + dt.timedelta(seconds=seconds))  # to the year 8307
ALMOST_A_DATE = r"[A-Z][a-z]{2}, [0-9]{1,2} [A-Z][a-z]{2} [0-9]{1,9} [0-9]{1,9}:[0-9]{1,3}:[0-9]{1,3} [-+]?\w{1,9}"


@given(st.integers(min_value=0, max_value=10**30), st.sampled_from(["", " ", "\t"]))
def test_seconds_are_seconds_and_an_hour_at_most(seconds: int, around: str) -> None:
    found = retry_after(header=f"{around}{seconds}{around}", now=NOW)
    assert found == min(dt.timedelta(seconds=min(seconds, 10**6)), MAX_RETRY_AFTER)


@given(MOMENTS)
def test_a_date_is_a_pause_from_now_never_below_nothing_and_an_hour_at_most(at: dt.datetime) -> None:
    found = retry_after(header=format_datetime(at, usegmt=True), now=NOW)
    assert found == max(dt.timedelta(0), min(at - NOW, MAX_RETRY_AFTER))


@given(st.text(max_size=200))
def test_whatever_comes_is_a_sane_pause_or_not_understood(header: str) -> None:
    found = retry_after(header=header, now=NOW)
    assert found is None or dt.timedelta(0) <= found <= MAX_RETRY_AFTER


@given(st.from_regex(ALMOST_A_DATE))
def test_what_looks_like_a_date_does_not_break_it(header: str) -> None:
    found = retry_after(header=header, now=NOW)
    assert found is None or dt.timedelta(0) <= found <= MAX_RETRY_AFTER


@pytest.mark.parametrize(
    "header", [None, "", "soon", "-5", "1.5", "1e3", "٣", "²", "Wed, 04 Mar 2026", "Wed, 04 Mar 2026 05:06:07", "0x10"]
)
def test_absent_negative_and_nonsense_are_not_understood(header: str | None) -> None:
    assert retry_after(header=header, now=NOW) is None


@given(st.integers(min_value=1, max_value=10**6), st.integers())
def test_the_pause_grows_to_its_cap_and_differs_between_callers(attempt: int, seed: int) -> None:
    ceiling = min(300.0, 2 ** (min(attempt, 30) - 1))
    pause = backoff(attempt=attempt, rng=random.Random(seed)).total_seconds()
    assert ceiling / 2 - 1e-6 <= pause <= ceiling + 1e-6
