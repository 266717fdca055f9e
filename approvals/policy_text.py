"""A policy version as text, and what differs between two. Pure."""

import difflib
import json
from dataclasses import dataclass
from typing import Any

from runs.money import Money, MoneyError

WORDS = {"allow": "automatic", "ask": "asks", "deny": "refuses"}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a comparison: `kind` is `same`, `added`, `removed` or `gap`."""

    kind: str
    text: str


def _rule_lines(rule: dict[str, Any]) -> list[str]:
    lines = [f"{rule['id']}: {WORDS.get(rule['effect'], rule['effect'])}. {rule['text']}", f"    when {rule['when']}"]
    if ask := rule.get("ask"):
        lines.append(f"    {asks(ask=ask)}")
    return lines


def asks(*, ask: dict[str, Any]) -> str:
    """Who is asked and for how long, in a sentence."""
    people = "one person" if ask["quorum"] == 1 else f"{ask['quorum']} people"
    return (
        f"asks {people} of {ask['group']}; to be answered within {ask['respond_within_minutes']} min, "
        f"usable for {ask['valid_for_minutes']} min after that"
    )


def limits(*, total: dict[str, Any]) -> list[str]:
    """The limits of a running total in words: `$20,000.00 USD`."""
    found = []
    for currency, minor in total["limits"].items():
        try:
            found.append(str(Money(int(minor), currency)))
        except (MoneyError, ValueError):  # written by an older release: show it as it stands
            found.append(f"{minor} minor units of {currency}")
    return found


def lines(*, document: dict[str, Any]) -> list[str]:
    found = [line for rule in document.get("rules", []) for line in _rule_lines(rule)]
    for total in document.get("totals", []):
        found.append(f"{total['id']}: total. {total['text']}")
        found.append(f"    for each {', '.join(total['key'])}: {'; '.join(limits(total=total))}")
    return found


def compare(*, old: dict[str, Any], new: dict[str, Any]) -> list[Line]:
    """The lines of `new` against those of `old`, with two unchanged ones around each change; empty when equal."""
    before, after = lines(document=old), lines(document=new)
    kinds = {" ": "same", "+": "added", "-": "removed", "@": "gap"}
    found = list(difflib.unified_diff(before, after, lineterm="", n=2))[2:]
    return [Line(kinds[line[0]], "" if line[0] == "@" else line[1:]) for line in found]


def pretty(*, document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False)
