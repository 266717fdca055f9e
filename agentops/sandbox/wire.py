"""What comes in on the wire and what goes out, before either system gives it meaning."""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

if TYPE_CHECKING:
    from agentops.sandbox.transaction import Transaction

Doc = dict[str, Any]

MAX_BODY_BYTES = 1_000_000
_DEEPEST = 16
_TOO_DEEP = f"Parameters may be nested {_DEEPEST} deep at most."
_KEY_PART = re.compile(r"\[([^\[\]]*)\]")


class Refusal(Exception):
    """The sandbox says no: becomes an error answer in the shape of the system that was called.

    ``stored``: whether the answer is kept under the idempotency key. Stripe keeps only results of calls that began
    executing, so a refusal of the parameters is not kept and one that comes from the state of an object is.
    """

    def __init__(
        self,
        *,
        status: int,
        code: str,
        message: str,
        param: str | None = None,
        stored: bool = False,
        extra: Doc | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.param = param
        self.stored = stored
        self.extra = extra or {}
        self.headers = headers or {}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A complete HTTP answer with a JSON body."""

    status: int = 200
    body: Doc = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(kw_only=True)
class Call:
    """One request on the wire. ``ids`` come from the path, ``params`` from the query or the body."""

    system: str
    operation: str
    method: str
    path: str
    ids: dict[str, str]
    params: Doc
    headers: dict[str, str]
    wire_key: str | None
    identity: str | None
    fingerprint: str


Handler = Callable[["Transaction", Call], Answer]


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One thing a system can do. ``traits`` say which fault modes make sense for it (see modes.py)."""

    name: str
    method: str
    path: str
    handler: Handler
    traits: frozenset[str]

    @property
    def system(self) -> str:
        return self.name.split(".", 1)[0]


def fingerprint(*, method: str, path: str, params: Doc) -> str:
    """Digest of what a call asks for: two calls with one key must agree on it."""
    text = json.dumps([method, path, params], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def nested_form(*, text: str) -> Doc:
    """Decode Stripe's bracket notation: ``a[b]=1&l[0][c]=2`` is ``{"a": {"b": "1"}, "l": [{"c": "2"}]}``.

    All leaves are strings. Raises Refusal when a name is used both as a value and as a group.
    """
    root: Doc = {}
    for name, value in parse_qsl(text, keep_blank_values=True, max_num_fields=2000):
        head, bracket, _ = name.partition("[")
        parts = [head, *_KEY_PART.findall(name)] if bracket else [head]
        if len(parts) > _DEEPEST:
            raise Refusal(status=400, code="parameter_invalid", message=_TOO_DEEP, param=head[:100])
        here = root
        for part in parts[:-1]:
            here = here.setdefault(part, {})
            if not isinstance(here, dict):
                raise _mixed(name=name)
        last = parts[-1] if parts[-1] or len(parts) == 1 else str(len(here))
        if isinstance(here.get(last), dict):
            raise _mixed(name=name)
        here[last] = value
    return {name: _lists(value) for name, value in root.items()}


def _mixed(*, name: str) -> Refusal:
    return Refusal(
        status=400,
        code="parameter_invalid",
        param=name,
        message=f"The parameter {name} is given both as a value and as a group of values; give it once.",
    )


def _lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {name: _lists(child) for name, child in value.items()}
    if inner and all(name.isdecimal() for name in inner):
        return [inner[name] for name in sorted(inner, key=int)]
    return inner


def json_object(*, raw: bytes) -> Doc:
    """Decode a JSON object of finite numbers and whole characters (empty body: ``{}``). Raises Refusal otherwise."""
    if not raw.strip():
        return {}
    try:
        value = json.loads(raw, parse_constant=_no_number)
        json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair is no text a database takes
    except (ValueError, RecursionError) as error:
        raise Refusal(status=400, code="malformed_json", message=f"The body is not valid JSON: {error}.") from None
    if not isinstance(value, dict):
        raise Refusal(status=400, code="malformed_json", message="The body must be a JSON object.")
    if _too_deep(value):
        raise Refusal(status=400, code="malformed_json", message=_TOO_DEEP)
    return value


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not a number JSON knows")


def _too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            child
            for item in level
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
        ]
    return bool(level)
