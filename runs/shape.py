"""What is wrong with input that has not the shape it should have, in words that say how to put it right."""

from collections.abc import Mapping
from typing import Any

_PLAIN = {
    "missing": "is missing; give it",
    "extra_forbidden": "is not known here; leave it out",
    "string_type": "is not text; write it in quotation marks",
    "string_too_short": "has fewer characters than {min_length}; fill it in",
    "string_too_long": "has more than {max_length} characters; shorten it",
    "string_pattern_mismatch": "is not written as it should be, which is {pattern}",
    "int_type": "is not a whole number; write digits alone",
    "dict_type": "is not an object; write it in braces",
    "list_type": "is not a list; write it in brackets",
    "too_long": "has more than {max_length}; leave some out",
    "greater_than_equal": "is less than {ge}; give {ge} or more",
    "less_than_equal": "is more than {le}; give {le} or less",
}


def in_words(error: Mapping[str, Any], /) -> str:
    """One of pydantic's errors (its `type`, `ctx` and `msg`), to be read after the field's name."""
    plain = _PLAIN.get(error["type"])
    try:
        return plain.format(**error.get("ctx", {})) if plain else str(error["msg"])
    except KeyError:  # another release of pydantic names the limit otherwise
        return str(error["msg"])
