"""Working time: adding it and measuring it by one calendar of days, hours and holidays in one zone. Pure.

Hours are wall-clock hours of the zone; where the clock changes, a day has an hour more or less of elapsed time, and
that is what counts.
"""

import datetime as dt
import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass, field

MOST_DAYS = 3660  # a calendar that never works must not be searched for ever


class NeverWorks(ValueError):
    """The calendar has no working time within years."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """`days` are numbers from Monday 0; hours are `begins` until `ends` on each of them but the `holidays`."""

    zone: zoneinfo.ZoneInfo
    days: frozenset[int]
    begins: dt.time
    ends: dt.time
    holidays: frozenset[dt.date] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        if not self.days or not self.days <= set(range(7)) or self.begins >= self.ends:
            raise NeverWorks("name at least one day, and hours that end after they begin")


def _spans(calendar: Calendar, since: dt.datetime) -> Iterator[tuple[dt.datetime, dt.datetime]]:
    """The stretches of working time from `since` on, in UTC."""
    day = since.astimezone(calendar.zone).date()
    for _ in range(MOST_DAYS):
        if day.weekday() in calendar.days and day not in calendar.holidays:
            opens = dt.datetime.combine(day, calendar.begins, calendar.zone).astimezone(dt.UTC)
            closes = dt.datetime.combine(day, calendar.ends, calendar.zone).astimezone(dt.UTC)
            if closes > since and closes > opens:
                yield max(opens, since), closes
        day += dt.timedelta(days=1)
    raise NeverWorks("there is no working time within years")


def later(*, calendar: Calendar, since: dt.datetime, by: dt.timedelta) -> dt.datetime:
    """The moment when `by` of working time has gone since then; with nothing to go, then. Raises NeverWorks."""
    left = by
    if left <= dt.timedelta(0):
        return since
    for opens, closes in _spans(calendar, since):
        if closes - opens >= left:
            return opens + left
        left -= closes - opens
    raise AssertionError("unreachable")


def between(*, calendar: Calendar, since: dt.datetime, until: dt.datetime) -> dt.timedelta:
    """How much working time lies between the two."""
    total = dt.timedelta(0)
    if until <= since:
        return total
    for opens, closes in _spans(calendar, since):
        if opens >= until:
            break
        total += min(closes, until) - opens
    return total
