"""What opens a door is neither written down nor shown: our own secrets, fields that are called so, what looks like one.

The other side may well say our key back to us, in a sentence or in a body.
"""

import re
from collections.abc import Sequence
from typing import Any

from django.conf import settings

HIDDEN = "(secret, not shown)"
OURS: set[str] = set()  # the names of the settings that hold our secrets; whoever knows of one adds it
_WORDS = r"authori[sz]ation|api.?key|token|secret|password|cookie|signature|credential"
_NAMES = re.compile(_WORDS, re.IGNORECASE)
_LOOKS = re.compile(r"\b(?:Bearer|Basic)\s+\S+|\b(?:sk|rk|whsec)_[A-Za-z0-9_]+")
# of JSON in a text; a name is bounded, so a body of somebody's making takes no time
_PAIRS = re.compile(
    rf'("[^"\\]{{0,60}}(?:{_WORDS})[^"\\]{{0,60}}"\s*:\s*)"(?:[^"\\]|\\.)+"?', re.IGNORECASE
)  # fmt: skip


def without_secrets(value: Any) -> Any:
    """The same JSON-like value, or text, without what opens a door."""
    known = [str(getattr(settings, one, "")) for one in sorted(OURS)]
    return _hidden(value, [one for one in known if len(one) >= 6])


def _hidden(value: Any, known: Sequence[str]) -> Any:
    if isinstance(value, dict):
        return {key: _named(str(key), one, known) for key, one in value.items()}
    if isinstance(value, list):
        return [_hidden(one, known) for one in value]
    if isinstance(value, str):
        for secret in known:
            value = value.replace(secret, HIDDEN)
        return _PAIRS.sub(rf'\1"{HIDDEN}"', _LOOKS.sub(HIDDEN, value))
    return value


def _named(key: str, value: Any, known: Sequence[str]) -> Any:
    if value and isinstance(value, str | list | dict) and _NAMES.search(key):
        return HIDDEN
    return _hidden(value, known)
