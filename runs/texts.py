"""Text from outside, made fit to be kept and shown. Pure."""

from typing import Any

MARK = "\ufffd"  # the replacement character: something was here that no text can hold


def storable(value: Any) -> Any:
    """The same JSON-like value with NUL and lone surrogates replaced, in names too: PostgreSQL keeps neither, and one
    such character in a ticket would otherwise stop its run for good."""
    if isinstance(value, str):
        if "\x00" not in value and not any("\ud800" <= mark <= "\udfff" for mark in value):
            return value
        return "".join(MARK if mark == "\x00" or "\ud800" <= mark <= "\udfff" else mark for mark in value)
    if isinstance(value, dict):
        return {storable(name): storable(item) for name, item in value.items()}
    if isinstance(value, list):
        return [storable(item) for item in value]
    return value


def untrusted(text: str, *, limit: int) -> dict[str, str]:
    """Text by outsiders as a model is shown it: marked as data, cut at `limit` characters, its true length named."""
    shown = {"untrusted_text": text[:limit]}
    if len(text) > limit:
        shown["note"] = f"cut: the first {limit} of {len(text)} characters"
    return shown
