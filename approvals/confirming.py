"""What a yes takes beyond the click, scaled to the risk by the policy: the amount typed again, a login proved a moment
ago. Each level takes what the one before it takes. Pure."""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from runs.money import Money, MoneyError, parse_amount

Level = Literal["click", "retype", "reauthenticate"]
CLICK: Level = "click"
LEVELS: tuple[Level, ...] = ("click", "retype", "reauthenticate")
WORDS: dict[str, str] = {
    "click": "one confirmation",
    "retype": "the amount typed again",
    "reauthenticate": "the amount typed again and a fresh login",
}
_TYPED = 60  # characters of an amount, at most


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What came with the click: the amount as it was `typed`, and when this session last `proved` whose it is."""

    typed: str = ""
    proved: dt.datetime | None = None


def strictest(*, levels: Iterable[Level]) -> Level:
    """The level that is enough for all of them; a click where there are none."""
    return max(levels, key=LEVELS.index, default=CLICK)


def enough(*, given: str, needed: str) -> bool:
    """Whether a yes given under one level is enough for another; a level nobody knows is never enough."""
    return given in LEVELS and needed in LEVELS and LEVELS.index(given) >= LEVELS.index(needed)


def words(*, level: str, money: Money | None) -> str:
    """What the level takes of somebody who approves; without an amount there is none to type."""
    if level == "reauthenticate" and money is None:
        return "a fresh login"
    return WORDS.get(level, level)


def is_fresh(*, proved: dt.datetime | None, now: dt.datetime, within: dt.timedelta) -> bool:
    """Whether the login was proved no longer than `within` ago."""
    return proved is not None and dt.timedelta() <= now - proved + dt.timedelta(seconds=5) <= within


def problem(*, level: str, money: Money | None, given: Given | None, now: dt.datetime, within: dt.timedelta) -> str:
    """The code of what is missing (see `approvals.words`), or ""; without `given` the path can take no more than a
    click. An unknown level takes everything."""
    if level == CLICK:
        return ""
    if given is None:
        return "confirm_on_page"
    if level != "retype" and not is_fresh(proved=given.proved, now=now, within=within):
        return "reauthentication_needed"
    if money is None:
        return "" if level != "retype" else "confirm_on_page"
    if not given.typed.strip():
        return "retype_needed"
    return "" if agrees(typed=given.typed, money=money) else "retype_differs"


def agrees(*, typed: str, money: Money) -> bool:
    """Whether somebody typed this very amount: `1200`, `1200.00`, `1,200.00`, `$1,200.00` or with the code."""
    said = typed.strip()[:_TYPED].removesuffix(money.currency).removeprefix(money.currency).strip()
    if said in (money.display(), money.display().lstrip("".join({*money.display()} - {*"0123456789.,"}))):
        return True
    try:
        return parse_amount(text=said, currency=money.currency) == money
    except MoneyError:
        return False
