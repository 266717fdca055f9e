"""Reading parameters: each function names the field and the remedy when it refuses."""

import re
from collections.abc import Collection
from typing import Any

from agentops.sandbox.wire import Doc, Refusal

_INTEGER = re.compile(r"-?[0-9]{1,15}")


def refuse(*, param: str, message: str, code: str = "parameter_invalid") -> Refusal:
    """The refusal of one parameter (status 400, not kept under the idempotency key)."""
    return Refusal(status=400, code=code, param=param, message=message)


def only(*, params: Doc, allowed: Collection[str]) -> None:
    """Refuse names outside ``allowed``: a parameter that is silently dropped hides a caller's mistake."""
    for name in params:
        if name not in allowed:
            raise refuse(
                param=name,
                code="parameter_unknown",
                message=f"Received unknown parameter: {name}. Known here: {', '.join(sorted(allowed))}.",
            )


def text(*, params: Doc, name: str, required: bool = False, longest: int = 5000) -> str | None:
    """A string of at most ``longest`` characters; absent, null and empty are all None."""
    value = params.get(name)
    if value is None or value == "":
        if required:
            raise refuse(param=name, code="parameter_missing", message=f"Missing required param: {name}.")
        return None
    if not isinstance(value, str):
        raise refuse(param=name, message=f"Invalid {name}: must be text.")
    if len(value) > longest:
        raise refuse(param=name, message=f"Invalid {name}: at most {longest} characters, got {len(value)}.")
    return value


def needed(*, params: Doc, name: str, longest: int = 5000) -> str:
    """Like ``text`` with ``required``, for callers that need the narrower type."""
    value = text(params=params, name=name, required=True, longest=longest)
    assert value is not None
    return value


def choice(*, params: Doc, name: str, options: Collection[str]) -> str | None:
    """One of ``options`` or None when absent."""
    value = text(params=params, name=name)
    if value is not None and value not in options:
        raise refuse(param=name, message=f"Invalid {name}: must be one of {', '.join(sorted(options))}.")
    return value


def integer(*, params: Doc, name: str, low: int, high: int, default: int | None = None, label: str = "") -> int:
    """A whole number in ``low``..``high``, as decimal text (forms) or as a JSON integer.

    ``label`` replaces the name in messages for nested parameters. Without a default the parameter is required.
    """
    shown = label or name
    value: Any = params.get(name)
    if value is None or value == "":
        if default is None:
            raise refuse(param=shown, code="parameter_missing", message=f"Missing required param: {shown}.")
        return default
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise refuse(param=shown, code="parameter_invalid_integer", message=f"Invalid integer: {value!r:.60}.")
    if not low <= value <= high:
        raise refuse(param=shown, message=f"Invalid {shown}: must be between {low} and {high}, got {value}.")
    return value


def group(*, params: Doc, name: str) -> Doc:
    """A nested group of parameters; absent is empty."""
    value = params.get(name)
    if value is None or value == "":
        return {}
    if not isinstance(value, dict):
        raise refuse(param=name, message=f"Invalid {name}: must be a group of named values.")
    return value


def items(*, params: Doc, name: str, longest: int = 250) -> list[Doc]:
    """A list of nested groups, at most ``longest``; absent is empty."""
    value = params.get(name)
    if value is None or value == "":
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise refuse(param=name, message=f"Invalid {name}: must be a list of groups.")
    if len(value) > longest:
        raise refuse(param=name, message=f"Invalid {name}: at most {longest} entries, got {len(value)}.")
    return value
