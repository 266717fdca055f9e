"""Which column of a file holds what, and how it is written: the person says, and each value is read strictly. Pure."""

import datetime as dt
import re
import zoneinfo
from dataclasses import asdict, dataclass, fields
from typing import Any

from runs.money import Money, MoneyError, currency_code, parse_amount, parse_minor
from runs.texts import one_line

POINT, COMMA, MINOR = "point", "comma", "minor"
CONVENTIONS = {
    POINT: "1,234.56 (a point before the cents)",
    COMMA: "1.234,56 (a comma before the cents)",
    MINOR: "123456 (whole cents, or the currency’s smallest unit)",
}
# how a date is written → the pattern for its digits, in the order named
FORMATS = {
    "iso": "2026-10-31 or 2026-10-31T13:45:00+01:00",
    "dmy.": "31.10.2026",
    "dmy/": "31/10/2026",
    "mdy/": "10/31/2026",
    "seconds": "1793454300 (seconds since 1970)",
}
VOID_WORDS = frozenset({"void", "voided", "cancelled", "canceled", "reversed"})
_GROUPED = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?")
_TIME = r"(?:[ T]([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?)?"
_DATES = {
    "dmy.": re.compile(r"(?P<d>[0-9]{1,2})\.(?P<m>[0-9]{1,2})\.(?P<y>[0-9]{4})" + _TIME),
    "dmy/": re.compile(r"(?P<d>[0-9]{1,2})/(?P<m>[0-9]{1,2})/(?P<y>[0-9]{4})" + _TIME),
    "mdy/": re.compile(r"(?P<m>[0-9]{1,2})/(?P<d>[0-9]{1,2})/(?P<y>[0-9]{4})" + _TIME),
}
_ISO = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_EARLIEST, _LATEST = dt.datetime(1990, 1, 1, tzinfo=dt.UTC), dt.datetime(2100, 1, 1, tzinfo=dt.UTC)
MAX_TEXT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Places of the columns, from 0; None where the file has none. `currency_fixed` holds for every line where there is
    no column for it. `minus`: what was given is written with a minus sign. `zone` is for times without one."""

    reference: int
    amount: int
    at: int
    currency: int | None = None
    currency_fixed: str = ""
    identity: int | None = None
    account: int | None = None
    status: int | None = None
    convention: str = POINT
    minus: bool = False
    date_format: str = "iso"
    zone: str = "UTC"

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def columns_from(plain: dict[str, Any]) -> Columns:
    """The same from what was stored."""
    names = {one.name for one in fields(Columns)}
    return Columns(**{name: value for name, value in plain.items() if name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    reference: str
    identity: str
    account: str
    money: Money
    at: dt.datetime
    void: bool


class BadLine(ValueError):
    """One line cannot be read; the message says which column and why."""


def parse(*, values: tuple[str, ...], columns: Columns) -> Parsed:
    """One line. Raises BadLine. Values are taken as they are written, but for spaces around them."""
    said = [value.strip() for value in values]
    reference = _text(said[columns.reference], "The reference")
    if not reference:
        raise BadLine("The reference is empty.")
    code = columns.currency_fixed if columns.currency is None else said[columns.currency]
    if not code:
        raise BadLine("The currency is empty.")
    try:
        code = currency_code(code)
    except MoneyError as error:
        raise BadLine(f"The currency {_shown(code)} {error}.") from None
    return Parsed(
        reference=reference,
        identity="" if columns.identity is None else _text(said[columns.identity], "The identity"),
        account="" if columns.account is None else _text(said[columns.account], "The account"),
        money=amount(text=said[columns.amount], currency=code, convention=columns.convention, minus=columns.minus),
        at=moment(text=said[columns.at], date_format=columns.date_format, zone=columns.zone),
        void=columns.status is not None and said[columns.status].casefold() in VOID_WORDS,
    )


def _shown(text: str) -> str:
    return f"“{one_line(text=text, limit=40)}”"


def _text(text: str, what: str) -> str:
    if len(text) > MAX_TEXT:
        raise BadLine(f"{what} is longer than {MAX_TEXT} characters.")
    return text


def amount(*, text: str, currency: str, convention: str, minus: bool) -> Money:
    """An amount in the convention that was chosen. Raises BadLine for anything else: no exponents, signs of currency,
    other digits, or a comma where a point was said."""
    number = text
    if minus:
        if not text.startswith("-"):
            raise BadLine(f"The amount {_shown(text)} has no minus sign.")
        number = text[1:]
    try:
        if convention == MINOR:
            return parse_minor(text=number, currency=currency)
        plain = number.translate({ord("."): ",", ord(","): "."}) if convention == COMMA else number
        if number.isascii() and _GROUPED.fullmatch(plain):
            number = plain.replace(",", "")
        elif convention == COMMA:
            raise MoneyError("is not an amount as 1.234,56")
        return parse_amount(text=number, currency=currency)
    except MoneyError as error:
        raise BadLine(f"The amount {_shown(text)} {error}.") from None


def moment(*, text: str, date_format: str, zone: str) -> dt.datetime:
    """A time in the format and zone that were chosen; a day alone is its first moment. Raises BadLine."""
    try:
        found = _read(text, date_format)
        if found.tzinfo is None:
            local = found.replace(tzinfo=zoneinfo.ZoneInfo(zone))
            found = local.astimezone(dt.UTC)
            if found.astimezone(local.tzinfo).replace(tzinfo=None) != local.replace(tzinfo=None):
                raise BadLine(f"The time {_shown(text)} does not exist in {zone}: the clock was put forward.")
        found = found.astimezone(dt.UTC)
    except (ValueError, OverflowError, OSError) as error:
        if isinstance(error, BadLine):
            raise
        raise BadLine(f"The date {_shown(text)} is not written as {FORMATS[date_format]}.") from None
    if not _EARLIEST <= found < _LATEST:
        raise BadLine(f"The date {_shown(text)} is not between 1990 and 2099.")
    return found


def _read(text: str, date_format: str) -> dt.datetime:
    if date_format == "seconds":
        if not re.fullmatch("[0-9]{1,12}", text):
            raise ValueError
        return dt.datetime.fromtimestamp(int(text), dt.UTC)
    if date_format == "iso":
        if not _ISO.fullmatch(text):
            raise ValueError
        return dt.datetime.fromisoformat(text)
    found = _DATES[date_format].fullmatch(text)
    if found is None:
        raise ValueError
    hour, minute, second = (int(one or 0) for one in found.groups()[3:])
    return dt.datetime(int(found["y"]), int(found["m"]), int(found["d"]), hour, minute, second)  # noqa: DTZ001
