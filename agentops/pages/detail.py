"""One event in full: its facts as labelled values, nested ones too, nothing shortened, none left out. Reads nothing."""

import datetime as dt
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.dateparse import parse_datetime

from agentops.pages import detail_words
from agentops.pages.said import Said
from agentops.pages.story import EventLike, amount, tell
from runs import times, words

DEEPEST = 4  # levels drawn as lists and facts; what lies deeper is one line of JSON
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DIGEST = re.compile(r"[0-9a-f]{40,128}")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One value, drawn by `kind`: `none`, `text`, `code` (a fixed-width face), `time` (`at`), `money` (`minor` and
    `currency`), `list` (`items`) or `facts`. `note` is the stored word where `text` is another one. `to` names the page
    that `text` leads to, with `key` as its argument."""

    kind: str
    text: str = ""
    note: str = ""
    at: dt.datetime | None = None
    minor: str = ""
    currency: str = ""
    to: str = ""
    key: str = ""
    items: tuple["Value", ...] = ()
    facts: tuple["Fact", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """`known` is False where `label` is the key as it is stored, for want of words."""

    label: str
    known: bool
    value: Value

    @property
    def wide(self) -> bool:
        """Whether its value takes a whole line."""
        nested = any(one.kind == "facts" for one in (self.value, *self.value.items))
        return nested or len(self.value.items) > 3 or len(self.value.text) > (44 if self.value.kind == "code" else 60)

    @property
    def place(self) -> tuple[int, bool]:
        """Where it stands among the others: what people read, then ids and digests, then what is empty."""
        return {"code": 1, "none": 2}.get(self.value.kind, 0), self.wide


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    said: Said
    facts: tuple[Fact, ...]
    raw: str


def full(*, event: EventLike) -> Detail:
    """Everything the event carries."""
    raw = json.dumps(event.data, indent=2, ensure_ascii=False, sort_keys=True)
    return Detail(said=tell(event), facts=facts(kind=event.kind, data=event.data), raw=raw)


def facts(*, kind: str, data: Mapping[str, Any], depth: int = 0) -> tuple[Fact, ...]:
    """The facts of an event of this kind, or of an object inside it (then `kind` is empty); an amount and its currency
    are one."""
    together = bool(amount(dict(data))) or not (data.get("amount_minor") or data.get("currency"))
    found = []
    for key, value in data.items():
        if key == "amount_minor" and together:
            shown = _money(data)
        elif key == "currency" and together and "amount_minor" in data:
            continue
        else:
            shown = _value(kind, key, value, depth)
        label = detail_words.label(kind=kind, key=key)
        found.append(Fact(label=label or key, known=bool(label), value=shown))
    return tuple(sorted(found, key=lambda one: one.place))


def _money(data: Mapping[str, Any]) -> Value:
    if data.get("amount_minor") in (None, ""):
        return Value(kind="none", text="–")
    return Value(kind="money", minor=str(data["amount_minor"]), currency=str(data["currency"]))


def _value(kind: str, key: str, value: Any, depth: int) -> Value:
    if value is None or value == "":
        return Value(kind="none", text="–")
    if isinstance(value, dict | list):
        return _nested(kind, key, value, depth)
    if isinstance(value, bool):
        return Value(kind="text", text="yes" if value else "no")
    said = detail_words.value(kind=kind, key=key, stored=str(value))
    if said:
        same = said.casefold().replace(" ", "_") == str(value).casefold()
        return Value(kind="text", text=said, note="" if same else str(value))
    if key in detail_words.SECONDS and isinstance(value, int):
        return Value(kind="text", text=times.spell(seconds=value))
    return _text(key, str(value))


def _nested(kind: str, key: str, value: Any, depth: int) -> Value:
    if not value:
        return Value(kind="none", text="none")
    if depth >= DEEPEST:
        return Value(kind="code", text=json.dumps(value, ensure_ascii=False, sort_keys=True))
    if isinstance(value, dict):
        return Value(kind="facts", facts=facts(kind="", data=value, depth=depth + 1))
    return Value(kind="list", items=tuple(_value(kind, key, one, depth + 1) for one in value))


def _text(key: str, text: str) -> Value:
    at = _moment(text)
    if at is not None:
        return Value(kind="time", text=text, at=at)
    page = detail_words.PAGES.get(key, "")
    number = text.removeprefix("RC-")
    if page == "case" and number.isascii() and number.isdigit() and len(number) < 16:
        return Value(kind="text", text=f"RC-{number}", to=page, key=number)
    if page and page != "case" and _UUID.fullmatch(text):
        return Value(kind="code", text=text, to=page, key=text)
    if key in detail_words.TOOLS:
        return Value(kind="text", text=words.tool(text), note=text)
    exact = key in detail_words.CODES or _UUID.fullmatch(text) or _DIGEST.fullmatch(text)
    return Value(kind="code" if exact else "text", text=text)


def _moment(text: str) -> dt.datetime | None:
    """A time with its zone, as the record writes it; None for anything else."""
    try:
        return parse_datetime(text) if _MOMENT.fullmatch(text) else None
    except ValueError:
        return None
