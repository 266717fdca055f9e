"""What the end of a call says about the system that was called, whatever it says about the effect. Pure."""

from enum import StrEnum
from typing import Any

from reconciliation.classification import Result
from runs.tools.base import Ambiguous, NotSent, Overloaded, Refused, ToolError


class Word(StrEnum):
    ANSWERED = "answered"  # it works, whether it did as it was told or said no
    LIMITED = "limited"  # it works, and wants fewer calls
    FAILED = "failed"  # it could not be reached, broke off, or has an error of its own
    NOTHING = "nothing"  # the call says nothing about it: it was never begun, or our own side failed


def of_call(*, result: Result, raw: dict[str, Any]) -> Word:
    """What the end of a call with this result says; `raw` is what came over the wire, as connectors keep it."""
    status = raw.get("status")
    if result == Result.OVERLOADED:
        return Word.LIMITED
    if result in (Result.DONE, Result.REFUSED):
        return Word.ANSWERED
    if result == Result.SENDER_GONE:
        return Word.NOTHING
    if isinstance(status, int) and status > 0:
        return Word.FAILED if status >= 500 or status == 408 else Word.ANSWERED
    return Word.FAILED if "error" in raw else Word.NOTHING


_RESULTS: dict[type[ToolError], Result] = {
    NotSent: Result.NOT_SENT,
    Refused: Result.REFUSED,
    Overloaded: Result.OVERLOADED,
    Ambiguous: Result.AMBIGUOUS,
}


def of_error(error: ToolError) -> Result:
    """The result that such an error is."""
    return _RESULTS.get(type(error), Result.AMBIGUOUS)


def asked_to_wait(raw: dict[str, Any]) -> str | None:
    """The Retry-After that came with an answer, as it came; also a system that is down may say when it is back."""
    headers = raw.get("headers")
    return headers.get("retry-after") if isinstance(headers, dict) else None
