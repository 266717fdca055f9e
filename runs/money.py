"""Money: whole minor units of an ISO 4217 currency, one strict type at every entrance.

Exponents come from CLDR as Babel ships it (JPY 0, USD 2, KWD 3).
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Annotated, Any

from babel import Locale
from babel.core import get_global
from babel.numbers import format_decimal, get_currency_precision, get_currency_symbol
from pydantic import AfterValidator, BaseModel, ConfigDict, StrictStr

MAX_MINOR = 10**15 - 1  # below 2**53, so every JSON reader and CEL agree on it
_AMOUNT = re.compile(r"(0|[1-9][0-9]*)(\.[0-9]+)?")
_THOUSANDS = re.compile(r"[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]+)?")
_MINOR = re.compile(r"[1-9][0-9]*")
# every currency that is legal tender somewhere today, by CLDR's territory table
_CURRENT = {
    code
    for rows in get_global("territory_currencies").values()
    for code, _start, end, tender in rows
    if tender and not end
}


class MoneyError(ValueError):
    """What was given is not an amount of money; the message says what one looks like."""


def currency_code(value: object) -> str:
    """The ISO code in capitals. Raises MoneyError for anything that is not a currency in use."""
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z]{3}", value) or value.upper() not in _CURRENT:
        raise MoneyError("is not a currency in use; give its ISO 4217 code, such as USD")
    return value.upper()


def exponent(currency: str) -> int:
    """Decimal places of the currency: 0 for JPY, 2 for USD, 3 for KWD."""
    return int(get_currency_precision(currency_code(currency)))


@cache
def of_places() -> dict[int, list[str]]:
    """The currencies in use by their decimal places."""
    found: dict[int, list[str]] = {}
    for code in sorted(_CURRENT):
        found.setdefault(exponent(code), []).append(code)
    return found


@dataclass(frozen=True, slots=True, order=False)
class Money:
    """A positive or zero amount: `minor` whole units of the currency's smallest coin."""

    minor: int
    currency: str

    def __post_init__(self) -> None:
        if type(self.minor) is not int or not 0 <= self.minor <= MAX_MINOR:
            raise MoneyError(f"is not a whole number of minor units from 0 to {MAX_MINOR}")
        object.__setattr__(self, "currency", currency_code(self.currency))

    @property
    def decimal(self) -> Decimal:
        return Decimal(self.minor).scaleb(-exponent(self.currency))

    def plain(self) -> str:
        """For machines and retyping: `1200.00`."""
        return f"{self.decimal:.{exponent(self.currency)}f}"

    def display(self, *, locale: str = "en_US") -> str:
        """For people: `$1,200.00`; the code is shown beside it, never instead of it."""
        places = exponent(self.currency)
        pattern = "#,##0" + ("." + "0" * places if places else "")
        number = format_decimal(self.decimal, format=pattern, locale=Locale.parse(locale))
        symbol = get_currency_symbol(self.currency, locale=locale)
        return f"{symbol}{number}" if len(symbol) <= 2 else f"{symbol} {number}"

    def __str__(self) -> str:
        """With the code, once: some currencies have no sign of their own."""
        shown = self.display()
        return shown if self.currency in shown else f"{shown} {self.currency}"


def parse_amount(*, text: str, currency: str) -> Money:
    """Read what a person typed: plain ASCII digits with a point, `1200` or `1200.00`.

    Raises MoneyError for signs, exponents, separators, other digits, too many places, zero and excess.
    """
    code = currency_code(currency)
    places = exponent(code)
    if not isinstance(text, str) or not _AMOUNT.fullmatch(text) or not text.isascii():
        raise MoneyError(f"is not an amount; write digits with a point, such as {Decimal(1200):.{places}f}")
    number = Decimal(text)
    if len(text.partition(".")[2]) > places:
        raise MoneyError(f"has more decimal places than {code} has ({places})")
    minor = int(number.scaleb(places))
    if not 0 < minor <= MAX_MINOR:
        raise MoneyError("must be more than zero" if minor == 0 else "is larger than any amount handled here")
    return Money(minor, code)


def parse_shown(*, text: str, currency: str) -> Money:
    """The same for an amount that may be written as pages show it: `1,200.00`, `$1,200.00` or `1,200.00 USD`, with the
    sign or code of this very currency. A comma that parts no thousands is refused, as it may mean a point; so is one
    before the last three digits where the currency has three places itself."""
    code = currency_code(currency)
    said = text.strip()
    if said[-3:].upper() == code or said[:3].upper() == code:
        said = (said[:-3] if said[-3:].upper() == code else said[3:]).strip()
    said = said.removeprefix(get_currency_symbol(code, locale="en_US")).strip()
    grouped = _THOUSANDS.fullmatch(said) and ("." in said or exponent(code) != 3)
    return parse_amount(text=said.replace(",", "") if grouped else said, currency=code)


def parse_minor(*, text: str, currency: str) -> Money:
    """Read whole minor units written as text (`"120000"`), the form amounts have inside actions. Raises MoneyError."""
    if not isinstance(text, str) or not text.isascii() or not _MINOR.fullmatch(text) or int(text) > MAX_MINOR:
        raise MoneyError('is not a count of minor units; write positive digits only, such as "120000"')
    return Money(int(text), currency_code(currency))


def _check_minor(value: str) -> str:
    parse_minor(text=value, currency="USD")
    return value


MinorText = Annotated[StrictStr, AfterValidator(_check_minor)]
CurrencyText = Annotated[StrictStr, AfterValidator(lambda value: currency_code(value))]


class Strict(BaseModel):
    """Base of what comes in from outside: nothing unknown, nothing silently converted, nothing changed later."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    def plain_dict(self) -> dict[str, Any]:
        return self.model_dump(mode="json")
