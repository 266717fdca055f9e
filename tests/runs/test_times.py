"""Times in words."""

import datetime as dt

import pytest

from runs.times import relative

NOW = dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-300, "5 min ago"), (-9, "just now"), (0, "just now"), (0.4, "just now"), (2, "in a moment"), (300, "in 5 min")],
)
def test_what_happened_while_the_page_was_made_is_not_said_to_come(seconds: float, words: str) -> None:
    assert relative(at=NOW + dt.timedelta(seconds=seconds), now=NOW) == words
