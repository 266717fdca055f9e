"""Amounts in every exponent, and what is none of them, at the entrances that money has."""

import pytest
from pydantic import TypeAdapter, ValidationError

from runs.money import MAX_MINOR, MinorText, Money, MoneyError, exponent, parse_amount, parse_minor, parse_shown

GOOD = [
    ("500", "JPY", 500, "¥500"),
    ("1000", "KRW", 1000, "₩1,000"),
    ("1.234", "KWD", 1234, "KWD 1.234"),
    ("0.001", "BHD", 1, "BHD 0.001"),
    ("10.00", "EUR", 1000, "€10.00"),
    ("10", "EUR", 1000, "€10.00"),
    ("19.99", "USD", 1999, "$19.99"),
]
BAD = ["-5", "0", "0.00", "NaN", "Infinity", "1e2", "1_000", "١٢", "", " 1", "1 ", "+1", "1,000.00", "500.50 JPY", "1.",
       ".5", "00.5", "1\n", "９", "1" * 20]  # fmt: skip


@pytest.mark.parametrize(("text", "currency", "minor", "shown"), GOOD)
def test_what_is_written_is_what_is_counted_and_shown(text: str, currency: str, minor: int, shown: str) -> None:
    money = parse_amount(text=text, currency=currency)
    assert money == Money(minor, currency)
    assert money.display().replace("\xa0", " ") == shown
    assert parse_amount(text=money.plain(), currency=currency) == money
    assert parse_minor(text=str(minor), currency=currency) == money


@pytest.mark.parametrize("currency", ["JPY", "USD", "KWD"])
@pytest.mark.parametrize("text", BAD)
def test_what_is_no_amount_is_refused(text: str, currency: str) -> None:
    with pytest.raises(MoneyError):
        parse_amount(text=text, currency=currency)
    if not (text.isascii() and text.isdigit() and int(text) <= MAX_MINOR and text[0] != "0"):
        with pytest.raises(MoneyError):
            parse_minor(text=text, currency=currency)
        with pytest.raises(ValidationError):
            TypeAdapter(MinorText).validate_python(text)


@pytest.mark.parametrize(("text", "currency"), [("500.5", "JPY"), ("1.2345", "KWD"), ("0.001", "EUR")])
def test_more_places_than_the_currency_has_are_refused(text: str, currency: str) -> None:
    with pytest.raises(MoneyError, match=f"decimal places than {currency} has"):
        parse_amount(text=text, currency=currency)


@pytest.mark.parametrize("currency", ["", "US", "USDT", "XXX", "ABC", "DEM", "ＵＳＤ", "12A"])
def test_what_is_no_currency_is_refused(currency: str) -> None:
    with pytest.raises(MoneyError, match="ISO 4217"):
        exponent(currency)


@pytest.mark.parametrize("minor", [True, 1.0, "1", -1, MAX_MINOR + 1, None])
def test_minor_units_are_whole_numbers(minor: object) -> None:
    with pytest.raises(MoneyError):
        Money(minor, "USD")  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize("text", ["1200", "1,200.00", " $1,200.00 ", "1,200.00 USD", "usd 1200.0", "$1200"])
def test_an_amount_as_pages_show_it_is_read(text: str) -> None:
    assert parse_shown(text=text, currency="USD") == Money(120_000, "USD")


@pytest.mark.parametrize("text", ["12,50", "1,2,3", "1,20", ",100", "€1200", "1200 EUR", "1.200,00", "$-5", "USD", ""])
def test_an_amount_that_may_mean_another_is_refused(text: str) -> None:
    with pytest.raises(MoneyError):
        parse_shown(text=text, currency="USD")


def test_a_comma_before_three_digits_may_mean_a_point_where_there_are_three_places() -> None:
    assert parse_shown(text="1,250.000", currency="KWD") == Money(1_250_000, "KWD")
    with pytest.raises(MoneyError, match="with a point"):
        parse_shown(text="1,250", currency="KWD")
