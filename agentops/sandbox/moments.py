"""Times and random identifiers, in the forms the two systems use."""

import secrets
import time
from datetime import UTC, datetime


def now() -> float:
    """Seconds since the epoch; the sandbox is its own world with its own clock."""
    return time.time()


def iso(*, at: float) -> str:
    """``at`` (epoch seconds) as UTC text with microseconds, e.g. ``2026-10-22T13:14:00.000000Z``."""
    return datetime.fromtimestamp(at, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def epoch(*, text: str) -> int:
    """Epoch seconds of an ISO 8601 date or date-time (UTC without an offset). Raises ValueError if it is neither."""
    moment = datetime.fromisoformat(text)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def new_id(*, prefix: str) -> str:
    """A random identifier such as ``cn_5f0c…`` (24 hexadecimal digits)."""
    return f"{prefix}_{secrets.token_hex(12)}"
