"""Times in words. Pure: the present is passed in."""

import datetime as dt

NEAR_SECONDS = 15 * 60  # a deadline closer than this is shown as near


def span(*, seconds: float) -> str:
    """A length of time in at most two units: `45 s`, `4 min`, `1 h 56 min`, `3 d 2 h`."""
    whole = int(abs(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if hours == 0:
        return f"{minutes} min"
    if days == 0:
        rest = minutes % 60
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    rest = hours % 24
    return f"{days} d {rest} h" if rest and days < 14 else f"{days} d"


def spell(*, seconds: float) -> str:
    """Exact, for records: `340 ms`, `12 s`, `3 min 12 s`, `4 h 1 min`, `2 d 3 h`."""
    if seconds < 1:
        return f"{max(round(seconds * 1000), 0)} ms"
    whole = round(seconds)
    for size, name, small, small_name in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // small
            return f"{whole // size} {name} {rest} {small_name}" if rest else f"{whole // size} {name}"
    return f"{whole} s"


def relative(*, at: dt.datetime, now: dt.datetime) -> str:
    """`just now`, `4 min ago`, `in 2 h 5 min`."""
    seconds = (at - now).total_seconds()
    if abs(seconds) < 10:
        return "just now" if seconds < 1 else "in a moment"  # it may have happened as the page was being made
    words = span(seconds=seconds)
    return f"in {words}" if seconds > 0 else f"{words} ago"


def left(*, until: dt.datetime, now: dt.datetime) -> str:
    """`53 min left`, or `time is up`."""
    seconds = (until - now).total_seconds()
    return f"{span(seconds=seconds)} left" if seconds > 0 else "time is up"


def clock(*, at: dt.datetime, now: dt.datetime) -> str:
    """The time of day, with the day where it is another one: `13:04`, `tomorrow 09:00`, `16 Nov 13:04`.

    Both arguments are in the reader's zone.
    """
    days = (at.date() - now.date()).days
    time = f"{at:%H:%M}"
    if days == 0:
        return time
    if days in (1, -1):
        return f"{'tomorrow' if days == 1 else 'yesterday'} {time}"
    day = f"{at.day} {at:%b}" if at.year == now.year else f"{at.day} {at:%b %Y}"
    return f"{day} {time}"
