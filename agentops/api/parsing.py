"""Reading JSON bodies without surprises: a key named twice, NaN and Infinity are refused, not silently resolved."""

import json
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, UnreadablePostError
from ninja.errors import HttpError
from ninja.parser import Parser

from runs.readable import DEEPEST, finite, is_too_deep, no_constant

MAX_BODY_BYTES = 100_000


class NotAcceptable(ValueError):
    """The bytes are not the one JSON object that was asked for; the message follows "the body" or a file name."""


class TooLarge(ValueError):
    """The body has more bytes than are taken."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key[:100]!a} is given twice")
        found[key] = value
    return found


def read_object(raw: bytes, /) -> dict[str, Any]:
    """The object in UTF-8 JSON. Raises NotAcceptable."""
    try:
        found = json.loads(raw.decode("utf-8"), object_pairs_hook=_once, parse_constant=no_constant, parse_float=finite)
    except (ValueError, RecursionError) as problem:
        raise NotAcceptable(f"is not acceptable JSON: {str(problem)[:300]}") from None
    if not isinstance(found, dict):
        raise NotAcceptable("must hold one JSON object")
    if is_too_deep(found):
        raise NotAcceptable(f"nests objects and lists more than {DEEPEST} deep; make it flatter")
    return found


def read_body(request: HttpRequest, /, *, limit: int) -> bytes:
    """The body, at most `limit` bytes of it. Raises TooLarge, and NotAcceptable when it broke off."""
    try:
        declared = int(request.headers.get("Content-Length") or 0)
    except ValueError:
        raise NotAcceptable("has a Content-Length that is no number") from None
    if declared > limit:
        raise TooLarge
    try:
        raw = request.body
    except RequestDataTooBig:
        raise TooLarge from None
    except UnreadablePostError:
        raise NotAcceptable("broke off") from None
    if len(raw) > limit:
        raise TooLarge
    return raw


class StrictParser(Parser):
    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        try:
            return read_object(read_body(request, limit=MAX_BODY_BYTES))
        except TooLarge:
            raise HttpError(413, f"the body has more than {MAX_BODY_BYTES} bytes") from None
        except NotAcceptable as problem:
            raise HttpError(400, f"the body {problem}") from None
