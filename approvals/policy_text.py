"""The parts of a policy version in sentences. Pure."""

import json
from typing import Any

from approvals import confirming
from runs.money import Money, MoneyError


def asks(*, ask: dict[str, Any]) -> str:
    """Who is asked and for how long, in a sentence."""
    people = "one person" if ask["quorum"] == 1 else f"{ask['quorum']} people"
    level = ask.get("confirm", confirming.CLICK)
    takes = "" if level == confirming.CLICK else f"; each approval takes {confirming.WORDS.get(level, level)}"
    return (
        f"asks {people} of {ask['group']}; to be answered within {ask['respond_within_minutes']} min, "
        f"usable for {ask['valid_for_minutes']} min after that{takes}"
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


def pretty(*, document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False)
