"""From ticket to drafted credit, for customers of many currencies: the amount is that of an independent calculation,
the same on the card, in the action, on the wire and in the ledger."""

import datetime as dt
from decimal import ROUND_HALF_UP, Decimal

import pytest

from agentops.workflows.base import Draft
from runs.tools.registry import tool
from tests.outside import TIERS, Outside
from tests.workflows.cases import CREDIT, asked, gathered, judged

# currency, invoice total in minor units, period's first day and the day after its last, start and end of the outage,
# and the amount as people write it
TICKETS = [
    ("usd", 1_200_000, "2026-10-01", "2026-11-01", "2026-10-22T13:14:00Z", "2026-10-22T16:48:00Z", "$1,200.00"),
    ("eur", 10_000, "2026-10-01", "2026-11-01", "2026-10-05T00:00:00Z", "2026-10-05T01:00:00Z", "€10.00"),
    ("jpy", 5_000, "2026-09-01", "2026-10-01", "2026-09-10T10:00:00Z", "2026-09-10T12:00:00Z", "¥500"),
    ("krw", 10_005, "2026-09-01", "2026-10-01", "2026-09-10T10:00:00Z", "2026-09-10T12:00:00Z", "₩1,001"),
    ("kwd", 12_340, "2026-10-01", "2026-11-01", "2026-10-05T00:00:00Z", "2026-10-05T03:00:00Z", "KWD 1.234"),
    ("bhd", 10, "2026-10-01", "2026-11-01", "2026-10-05T00:00:00Z", "2026-10-05T03:00:00Z", "BHD 0.001"),
    ("gbp", 99_999, "2026-02-01", "2026-03-01", "2026-02-10T00:00:00Z", "2026-02-10T00:30:00Z", "£50.00"),
    ("gbp", 99_999, "2026-02-01", "2026-03-01", "2026-02-10T00:00:00Z", "2026-02-12T00:00:00Z", "£250.00"),
    ("usd", 45_050, "2026-10-01", "2026-11-01", "2026-10-01T00:00:00Z", "2026-10-01T00:44:00Z", "$22.53"),
    ("usd", 45_050, "2026-10-01", "2026-11-01", "2026-10-01T00:00:00Z", "2026-10-01T00:45:00Z", "$45.05"),
    ("chf", 7, "2026-10-01", "2026-11-01", "2026-10-05T00:00:00Z", "2026-10-05T23:00:00Z", "CHF 0.02"),
    ("inr", 123_456_789, "2024-02-01", "2024-03-01", "2024-02-28T22:00:00Z", "2024-03-01T02:00:00Z", "₹308,641.97"),
    ("vnd", 2_000_001, "2026-10-01", "2026-11-01", "2026-10-22T13:14:30Z", "2026-10-22T16:48:29Z", "₫200,000"),
    (
        "usd",
        1_200_000,
        "2026-10-15",
        "2026-11-15",
        "2026-10-31T22:00:00-05:00",
        "2026-11-01T01:00:00-05:00",
        "$1,200.00",
    ),
]


def minutes_between(one: str, other: str) -> int:
    return int((dt.datetime.fromisoformat(other) - dt.datetime.fromisoformat(one)).total_seconds() // 60)


def expected(row: tuple[str, int, str, str, str, str, str]) -> int:
    """Decimal, by hand; written without the product's code."""
    _, total, first, after, started, ended, _ = row
    first, after = f"{first}T00:00:00+00:00", f"{after}T00:00:00+00:00"
    ends = min(dt.datetime.fromisoformat(ended), dt.datetime.fromisoformat(after)).isoformat()
    down, length = minutes_between(started, ends), minutes_between(first, after)
    percent = max(Decimal(t["percent"]) for t in TIERS if Decimal(100) * (length - down) / length < Decimal(t["below"]))
    return int((Decimal(total) * percent / 100).to_integral_value(ROUND_HALF_UP))


@pytest.mark.parametrize("row", TICKETS, ids=lambda row: f"{row[0]} {row[6]}")
def test_the_amount_is_what_the_facts_give_everywhere(
    outside: Outside, row: tuple[str, int, str, str, str, str, str]
) -> None:
    currency, total, first, after, started, ended, shown = row
    parts = outside.customer(
        invoice_currency=currency, invoice_total_minor=total, invoice_period_start=first, invoice_period_end=after,
        incident_started_at=started, incident_ended_at=ended,
    )  # fmt: skip
    facts = gathered(parts)
    turn = asked(parts, facts)
    assert turn.answer is not None
    draft = judged(parts, facts, turn.answer)
    assert isinstance(draft, Draft)
    amount = expected(row)
    assert draft.action.effect["amount_minor"] == str(amount)
    assert draft.action.effect["currency"] == currency.upper()
    assert draft.workings["agrees"] is True
    assert draft.workings["credit"] == {"amount_minor": str(amount), "currency": currency.upper()}
    card = CREDIT.card(action=draft.action, facts=facts)
    with_code = shown if currency.upper() in shown else f"{shown} {currency.upper()}"
    assert card.rows[0].value == with_code
    assert shown in card.ask
    assert shown in card.lead
    identity = f"w/{parts['ticket']['id']}"
    made = tool(draft.action.tool).send(effect=draft.action.effect, identity=identity, wire_key=identity)
    assert made.mismatch == {}
    [effect] = outside.process.ledger(identity=identity)
    assert (effect["amount_minor"], effect["currency"]) == (amount, currency)


def test_there_are_enough_of_them() -> None:
    assert len(TICKETS) >= 12
    assert {"jpy", "krw", "kwd", "bhd", "eur", "usd"} <= {row[0] for row in TICKETS}


def test_a_currency_without_a_sign_is_named_once(outside: Outside) -> None:
    parts = outside.customer(invoice_currency="kwd")
    facts = gathered(parts)
    turn = asked(parts, facts)
    assert turn.answer is not None
    draft = judged(parts, facts, turn.answer)
    assert isinstance(draft, Draft)
    for row in CREDIT.card(action=draft.action, facts=facts).rows:
        assert row.value.count("KWD") <= 1, row
    assert facts["invoice"].summary.count("KWD") == 1
