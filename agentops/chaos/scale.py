"""How large a run of chaos is, and what it must reach to count. Pure."""

from dataclasses import dataclass

# the parts of the stack that are killed and frozen, in the words of the report
PARTS = ("web", "worker child", "worker parent", "relay", "postgres", "broker")
OPERATIONS_EACH = 3  # a service credit is a credit, a change of the ticket and a drafted reply
LONG_MINUTES = 30
SLOWEST = 3  # times as long as it should take is how long the storm lasts at most


class BadScale(ValueError):
    """The words in the environment name no scale; the message says what to give."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """`seconds` of storm; `gap` is the shortest and longest pause between two blows; `drain` bounds, in seconds, how
    long the rest may take afterwards. `lease` and `call_limit` are the product's own limits, shortened."""

    seconds: float
    customers: int
    gap: tuple[float, float]
    drain: float
    least_operations: int
    least_faults: int = 20
    least_kills: int = 4
    least_succeeded: float = 0.95
    lease: float = 10.0
    call_limit: float = 1.5


def for_minutes(text: str, /) -> Scale:
    """The scale of `CHAOS_MINUTES`, 3 by default. Raises BadScale."""
    try:
        minutes = float(text or "3")
    except ValueError:
        minutes = 0.0
    if not 3 <= minutes <= 600:
        raise BadScale(f"CHAOS_MINUTES is {text!r}: give a number of minutes from 3 to 600")
    long = minutes >= LONG_MINUTES
    least = round(5000 * minutes / LONG_MINUTES) if long else 1000
    return Scale(
        seconds=minutes * 60,
        customers=-(-least * 108 // (100 * OPERATIONS_EACH)),
        gap=(5.0, 40.0) if long else (1.5, 5.0),
        drain=min(900.0, max(300.0, minutes * 30)),
        least_operations=least,
    )
