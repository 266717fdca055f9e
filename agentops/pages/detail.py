"""One event in full: its facts as labelled rows, nothing shortened. Pure."""

import json
from dataclasses import dataclass
from typing import Any

from agentops.pages.said import Said
from agentops.pages.story import EventLike, amount, plain_kind, tell

# words that read better than the key; all other keys are shown as they are called
LABELS = {
    "identity": "Identity",
    "wire_key": "Key on the wire",
    "number": "Number",
    "why": "Why",
    "by": "By",
    "amount": "Amount",
    "pieces": "Sources",
    "rules": "Rules",
    "case_kind": "Kind of case",
    "conclusive": "Conclusive",
}
HIDDEN = ("currency",)  # told with the amount
CODE = ("identity", "wire_key", "operation", "request", "decision", "reference", "refusal_code", "code")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """`lines` has one entry, or one for each item of a list; `code` asks for a fixed-width face."""

    label: str
    lines: tuple[str, ...]
    code: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    said: Said
    facts: tuple[Fact, ...]
    raw: str


def _item(value: Any) -> str:
    if isinstance(value, dict):
        told = " · ".join(str(value[key]) for key in ("title", "text", "label", "kind", "id") if value.get(key))
        return f"{told} · v{value['version']}" if told and value.get("version") else told or json.dumps(value)
    return str(value)


def _lines(value: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(_item(one) for one in value) or ("none",)
    if isinstance(value, bool):
        return ("yes" if value else "no",)
    return (_item(value) if value not in (None, "") else "–",)


def full(*, event: EventLike) -> Detail:
    """Everything the event carries."""
    facts = []
    for key, value in event.data.items():
        if key in HIDDEN:
            continue
        if key == "amount_minor":
            key, value = "amount", amount(event.data)
        label = LABELS.get(key, plain_kind(str(key)))
        facts.append(Fact(label=label, lines=_lines(value), code=key in CODE))
    raw = json.dumps(event.data, indent=2, ensure_ascii=False, sort_keys=True)
    return Detail(said=tell(event), facts=tuple(facts), raw=raw)
