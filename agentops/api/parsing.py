"""Reading JSON bodies without surprises: a key named twice, NaN and Infinity are refused, not silently resolved."""

import json
from typing import Any

from django.http import HttpRequest
from ninja.errors import HttpError
from ninja.parser import Parser


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} is given twice")
        found[key] = value
    return found


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a JSON number")


class StrictParser(Parser):
    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        try:
            found = json.loads(request.body, object_pairs_hook=_once, parse_constant=_no_constant)
        except (ValueError, RecursionError) as problem:
            raise HttpError(400, f"the body is not acceptable JSON: {problem}") from None
        if not isinstance(found, dict):
            raise HttpError(400, "the body must be one JSON object")
        return found
