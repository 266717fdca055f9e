"""Billing: revisions, pages, differing records, and what is read from it."""

import datetime as dt
from typing import Any

import pytest
import stripe

from runs.tools.base import NoSuchThing, Reading, Refused, Unreachable
from runs.tools.billing.live import CreateCredit
from runs.tools.billing.sources import read_credits, read_invoice
from tests import sandbox_process
from tests.outside import Outside
from tests.tools.test_conformance import CASES

INCIDENT = dt.datetime(2026, 10, 22, 13, 14, tzinfo=dt.UTC)


def official(outside: Outside) -> stripe.StripeClient:
    return stripe.StripeClient(sandbox_process.API_KEY, base_addresses={"api": outside.process.url})


def invoice_of(outside: Outside, parts: dict[str, Any], at: dt.datetime = INCIDENT) -> Reading:
    return read_invoice(connection=outside.billing, customer=parts["account"]["billing_customer"], at=at)


def effect_for(parts: dict[str, Any], **changes: str) -> dict[str, str]:
    return {**CASES["create_credit"].effect(parts), **changes}


def test_what_was_sent_is_on_the_wire_to_the_last_field(outside: Outside) -> None:
    effect = effect_for(outside.customer())
    CreateCredit(outside.billing).send(effect=effect, identity="i/wire", wire_key="i/wire:0")
    [request] = outside.process.requests(identity="i/wire")
    assert request["params"] == {
        "invoice": effect["invoice_id"],
        "amount": "120000",
        "memo": effect["memo"],
        "reason": "product_unsatisfactory",
        "metadata": {
            "operation_identity": "i/wire",
            "account": effect["account"],
            "invoice": effect["invoice"],
            "invoice_version": "1",
            "reason": "sla_breach",
            "ticket": effect["ticket"],
            "incident": effect["incident"],
        },
    }
    [row] = outside.process.ledger(identity="i/wire")
    assert (row["amount_minor"], row["currency"]) == (120_000, "usd")


@pytest.mark.parametrize(
    ("currency", "total", "amount"),
    [("jpy", 5000, "500"), ("krw", 1000, "1000"), ("kwd", 12_340, "1234"), ("bhd", 10, "1"), ("eur", 10_000, "1000")],
)
def test_minor_units_of_every_exponent_reach_billing(outside: Outside, currency: str, total: int, amount: str) -> None:
    parts = outside.customer(invoice_currency=currency, invoice_total_minor=total)
    effect = effect_for(parts, amount_minor=amount, currency=currency.upper())
    identity = f"i/{currency}"
    assert CreateCredit(outside.billing).send(effect=effect, identity=identity, wire_key=identity).mismatch == {}
    [row] = outside.process.ledger(identity=identity)
    assert (row["amount_minor"], row["currency"]) == (int(amount), currency)


def test_another_amount_is_a_mismatch_in_answer_and_lookup(outside: Outside) -> None:
    effect = effect_for(outside.customer())
    outside.process.faults({"mode": "wrong_amount", "operation": "billing.credit_notes.create"})
    tool = CreateCredit(outside.billing)
    made = tool.send(effect=effect, identity="i/amount", wire_key="i/amount:0")
    assert made.mismatch == {"amount_minor": ("120000", "120100")}
    [found] = tool.look_up(effect=effect, identity="i/amount").records
    assert found.mismatch == made.mismatch


def test_a_voided_credit_is_found_and_said_to_be_void(outside: Outside) -> None:
    effect = effect_for(outside.customer())
    tool = CreateCredit(outside.billing)
    made = tool.send(effect=effect, identity="i/void", wire_key="i/void:0")
    official(outside).v1.credit_notes.void_credit_note(made.raw["id"])
    [found] = tool.look_up(effect=effect, identity="i/void").records
    assert found.mismatch == {"status": ("issued", "void")} and found.void and not made.void


def test_more_than_is_left_and_replaced_invoices_are_refused(outside: Outside) -> None:
    parts = outside.customer()
    tool = CreateCredit(outside.billing)
    with pytest.raises(Refused) as raised:
        tool.send(effect=effect_for(parts, amount_minor="1200001"), identity="i/much", wire_key="i/much:0")
    assert raised.value.code == "amount_too_large"
    outside.process.correct(parts["invoice"]["number"], total_minor=900_000)
    with pytest.raises(Refused):
        tool.send(effect=effect_for(parts), identity="i/replaced", wire_key="i/replaced:0")
    assert (
        outside.process.ledger(operation="billing.credit_notes.create", object=parts["account"]["billing_customer"])
        == []
    )


@pytest.mark.parametrize("corrections", [1, 3])
def test_a_lookup_reads_every_revision(outside: Outside, corrections: int) -> None:
    parts = outside.customer()
    first = effect_for(parts)
    tool = CreateCredit(outside.billing)
    identity = f"i/chain{corrections}"
    made = tool.send(effect=first, identity=identity, wire_key=identity)
    for step in range(corrections):
        outside.process.correct(parts["invoice"]["number"], total_minor=1_100_000 - step)
    newest = invoice_of(outside, parts)
    assert newest.version == str(corrections + 1)
    for invoice_id in newest.content["revisions"]:  # from whichever revision the operation was made on
        found = tool.look_up(effect={**first, "invoice_id": invoice_id}, identity=identity)
        assert [record.reference for record in found.records] == [made.reference]
        assert found.records[0].mismatch == {}
        assert found.raw["invoices"] == newest.content["revisions"]


def test_a_lookup_reads_all_pages(outside: Outside) -> None:
    parts = outside.customer()
    effect = effect_for(parts, amount_minor="1")
    tool = CreateCredit(outside.billing)
    made = tool.send(effect=effect, identity="i/pages", wire_key="i/pages:0")
    billing = official(outside)
    for _ in range(120):  # newer ones push ours to the second page
        billing.v1.credit_notes.create({"invoice": effect["invoice_id"], "amount": 1})
    found = tool.look_up(effect=effect, identity="i/pages")
    assert (found.pages, found.raw["credit_notes_read"]) == (2, 121)
    assert [record.reference for record in found.records] == [made.reference]
    credits = read_credits(connection=outside.billing, invoice=invoice_of(outside, parts))
    assert (len(credits.content["credits"]), credits.content["total_minor"]) == (121, "121")
    assert credits.bound == {}


def test_a_paid_invoice_is_credited_to_the_balance(outside: Outside) -> None:
    parts = outside.customer(invoice_status="paid")
    tool = CreateCredit(outside.billing)
    with pytest.raises(Refused):
        tool.send(effect=effect_for(parts), identity="i/unpaid", wire_key="i/unpaid:0")
    made = tool.send(effect=effect_for(parts, balance_minor="120000"), identity="i/paid", wire_key="i/paid:0")
    assert made.mismatch == {}
    assert (made.raw["post_payment_amount"], made.raw["pre_payment_amount"]) == (120_000, 0)
    assert len(outside.process.ledger(identity="i/paid")) == 1


def test_an_invoice_is_read_with_its_version_and_correction(outside: Outside) -> None:
    parts = outside.customer()
    before = invoice_of(outside, parts)
    assert (before.kind, before.locator, before.version) == ("invoice", parts["invoice"]["number"], "1")
    assert before.content["total_minor"] == "1200000"
    assert (before.content["currency"], before.content["due"]) == ("USD", "2026-11-30")
    assert before.content["corrected_at"] == before.content["corrected_reason"] == ""
    outside.process.correct(parts["invoice"]["number"], total_minor=900_000, reason="four seats removed")
    after = invoice_of(outside, parts)
    assert (after.locator, after.version, after.content["total_minor"]) == (before.locator, "2", "900000")
    assert after.content["corrected_reason"] == "four seats removed"
    assert after.content["corrected_at"].endswith("Z")
    assert "four seats removed" in after.summary
    assert after.content["revisions"] == [before.content["id"], after.content["id"]]
    assert after.content["digest"] != before.content["digest"]


def test_our_own_credit_changes_nothing_that_is_bound_and_a_payment_does(outside: Outside) -> None:
    parts = outside.customer()
    before = invoice_of(outside, parts)
    CreateCredit(outside.billing).send(effect=effect_for(parts), identity="i/own", wire_key="i/own:0")
    after = invoice_of(outside, parts)
    assert after.content["credited_minor"] == "120000"
    assert (after.bound, after.version) == (before.bound, before.version)
    assert before.bound
    outside.process.pay(parts["invoice"]["number"])
    assert invoice_of(outside, parts).bound != before.bound


def test_a_credit_of_everything_changes_nothing_that_is_bound(outside: Outside) -> None:
    parts = outside.customer()
    before = invoice_of(outside, parts)
    effect = effect_for(parts, amount_minor="1200000")
    CreateCredit(outside.billing).send(effect=effect, identity="i/all", wire_key="i/all:0")
    after = invoice_of(outside, parts)
    assert after.content["status"] == "paid"
    assert after.bound == before.bound


def test_lines_count_beyond_those_that_are_embedded(outside: Outside) -> None:
    lines = [{"description": f"Seat {number}", "amount_minor": 100} for number in range(30)]
    other = [
        *lines[:-2],
        {"description": "Seat 28", "amount_minor": 50},
        {"description": "Seat 29", "amount_minor": 150},
    ]
    digests = {
        invoice_of(outside, outside.customer(invoice_lines=rows, invoice_total_minor=3000)).content["digest"]
        for rows in (lines, other)
    }
    assert len(digests) == 2


def test_drafts_and_other_months_are_not_the_invoice(outside: Outside) -> None:
    parts = outside.customer(invoice_status="draft")
    with pytest.raises(NoSuchThing):
        invoice_of(outside, parts)
    parts = outside.customer()
    for at in (dt.datetime(2026, 9, 30, 23, 59, tzinfo=dt.UTC), dt.datetime(2026, 11, 1, tzinfo=dt.UTC)):
        with pytest.raises(NoSuchThing):
            invoice_of(outside, parts, at)
    assert invoice_of(outside, parts, dt.datetime(2026, 10, 1, tzinfo=dt.UTC)).locator == parts["invoice"]["number"]


def test_two_invoices_for_one_time_are_not_guessed_between(outside: Outside) -> None:
    parts = outside.customer()
    twin = {**parts["invoice"], "number": parts["invoice"]["number"] + "B"}
    outside.process.world({"invoices": [twin]})
    with pytest.raises(NoSuchThing, match="all cover it"):
        invoice_of(outside, parts)
    official(outside).v1.invoices.void_invoice("in_" + twin["number"].lower().replace("-", ""))
    assert invoice_of(outside, parts).locator == parts["invoice"]["number"]


def test_many_invoices_are_read_on_all_pages(outside: Outside) -> None:
    parts = outside.customer()
    later = [
        {**parts["invoice"], "number": f"{parts['invoice']['number']}-{number}", "period_start": "2027-01-01",
         "period_end": "2027-02-01"}
        for number in range(130)
    ]  # fmt: skip
    outside.process.world({"invoices": later})
    assert invoice_of(outside, parts).locator == parts["invoice"]["number"]


@pytest.mark.parametrize("mode", ["lookup_error", "reset_without_effect", "cut_body", "overloaded"])
def test_a_source_that_fails_is_unreachable(outside: Outside, mode: str) -> None:
    parts = outside.customer()
    invoice = invoice_of(outside, parts)
    outside.process.faults({"mode": mode, "operation": "billing.invoices.list"})
    with pytest.raises(Unreachable):
        invoice_of(outside, parts)
    outside.process.faults({"mode": mode, "operation": "billing.credit_notes.list"})
    with pytest.raises(Unreachable):
        read_credits(connection=outside.billing, invoice=invoice)
