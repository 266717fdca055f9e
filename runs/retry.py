"""When to try again: exponential backoff with jitter, and Retry-After in all its forms (RFC 9110, 10.2.3). Pure."""

import datetime as dt
import email.utils
import random

MAX_RETRY_AFTER = dt.timedelta(hours=1)


def backoff(*, attempt: int, base: float = 1.0, cap: float = 300.0, rng: random.Random | None = None) -> dt.timedelta:
    """The wait before the next try after `attempt` tries (1 is the first), in full jitter above half the ceiling."""
    ceiling = min(cap, base * 2 ** max(0, min(attempt, 30) - 1))
    return dt.timedelta(seconds=(rng or random).uniform(ceiling / 2, ceiling))


def retry_after(*, header: str | None, now: dt.datetime) -> dt.timedelta | None:
    """What a Retry-After header asks for: seconds or a date, an hour at most; None when absent or not understood."""
    if header is None:
        return None
    text = header.strip()[:100]
    if text.isascii() and text.isdigit():
        return dt.timedelta(seconds=min(int(text), MAX_RETRY_AFTER.total_seconds()))
    try:
        at = email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
    if at.tzinfo is None:
        return None
    return max(dt.timedelta(0), min(at - now, MAX_RETRY_AFTER))
