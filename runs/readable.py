"""JSON from outside, read so that it can be kept and shown: with no number that JSON does not know, and not nested
deeper than what goes down it one by one. Pure.
"""

import json
import math
from typing import Any

from runs.texts import storable

DEEPEST = 50  # objects and lists within each other


class Unreadable(ValueError):
    """It is no JSON that can be kept; the message says why."""


def no_constant(text: str) -> Any:
    """For `json.loads`: NaN and Infinity are no JSON."""
    raise Unreadable(f"{text} is not a JSON number")


def finite(text: str) -> float:
    """For `json.loads`: 1e999 is good JSON and no number anybody means."""
    value = float(text)
    if not math.isfinite(value):
        raise Unreadable(f"{text[:40]} is too large a number")
    return value


def is_too_deep(value: Any, /) -> bool:
    level = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return any(isinstance(one, dict | list) for one in level)


def read_json(text: str | bytes, /) -> Any:
    """What the text says, storable. Raises Unreadable."""
    try:
        found = json.loads(text, parse_constant=no_constant, parse_float=finite)
    except Unreadable:
        raise
    except (ValueError, RecursionError) as problem:
        raise Unreadable(f"it is no JSON ({type(problem).__name__})") from None
    if is_too_deep(found):
        raise Unreadable(f"it nests objects and lists more than {DEEPEST} deep")
    return storable(found)
