"""Billing through the official library: objects, money, paging, revisions and refusals."""

from typing import Any

import pytest
import stripe

from tests.sandbox import places
from tests.sandbox.places import Place
from tests.sandbox_process import SandboxProcess


def test_a_customer_is_created_read_changed_and_listed(place: Place) -> None:
    v1 = place.billing().v1
    made = v1.customers.create({"name": "Northwind", "email": f"{place.number}@example.com", "metadata": {"a": "1"}})
    v1.customers.update(made.id, {"name": "Northwind Ltd", "metadata": {"a": "", "b": "2"}})
    read = v1.customers.retrieve(made.id)
    assert (read.name, read.metadata.to_dict()) == ("Northwind Ltd", {"b": "2"})
    assert [found.id for found in v1.customers.list({"email": f"{place.number}@example.com"}).data] == [made.id]


def test_an_invoice_goes_from_draft_with_lines_to_open_and_void(place: Place) -> None:
    v1 = place.billing().v1
    draft = v1.invoices.create({"customer": place.customer, "currency": "usd", "days_until_due": 30})
    v1.invoice_items.create({"customer": place.customer, "invoice": draft.id, "amount": 5000, "description": "Seats"})
    added = v1.invoices.add_lines(draft.id, {"lines": [{"amount": 700, "description": "Support"}]})
    assert (added.total, [line.amount for line in added.lines.data]) == (5700, [5000, 700])
    opened = v1.invoices.finalize_invoice(draft.id)
    assert (opened.status, opened.amount_due, opened.amount_remaining) == ("open", 5700, 5700)
    assert opened.number and opened.livemode is False and opened.due_date
    with pytest.raises(stripe.InvalidRequestError) as refused:
        v1.invoices.add_lines(draft.id, {"lines": [{"amount": 1, "description": "late"}]})
    assert refused.value.code == "invoice_not_editable"
    assert v1.invoices.void_invoice(draft.id).status == "void"
    assert v1.invoices.retrieve(draft.id).total == 5700


def test_a_credit_note_lowers_what_is_due_and_is_found_by_its_metadata(place: Place) -> None:
    note = place.credit(120_000, identity=f"{place.number}/credit", memo="Outage", reason="product_unsatisfactory")
    invoice = place.billing().v1.invoices.retrieve(place.invoice)
    assert (invoice.pre_payment_credit_notes_amount, invoice.amount_remaining) == (120_000, 1_080_000)
    assert invoice.total == 1_200_000
    assert (note.type, note.status, note.currency) == ("pre_payment", "issued", "usd")
    assert note.metadata["operation_identity"] == f"{place.number}/credit"
    [row] = place.effects(f"{place.number}/credit")
    assert (row["operation"], row["amount_minor"], row["currency"]) == ("billing.credit_notes.create", 120_000, "usd")
    assert row["objects"]["invoice_number"] == place.number
    assert row["wire_key"] == f"{place.number}/credit:0"


def test_pages_of_credit_notes_are_newest_first_and_complete(place: Place) -> None:
    made = [place.credit(100, identity=f"{place.number}/{n}").id for n in range(7)]
    v1 = place.billing().v1
    first = v1.credit_notes.list({"invoice": place.invoice, "limit": 3})
    assert [note.id for note in first.data] == made[::-1][:3] and first.has_more
    second = v1.credit_notes.list({"invoice": place.invoice, "limit": 3, "starting_after": first.data[-1].id})
    assert [note.id for note in second.data] == made[::-1][3:6] and second.has_more
    everything = [note.id for note in v1.credit_notes.list({"invoice": place.invoice, "limit": 2}).auto_paging_iter()]
    assert everything == made[::-1]
    back = v1.credit_notes.list({"invoice": place.invoice, "limit": 2, "ending_before": second.data[0].id})
    assert [note.id for note in back.data] == [note.id for note in first.data[1:]]


def test_credits_cannot_exceed_the_invoice(place: Place) -> None:
    place.credit(1_000_000, identity=f"{place.number}/a")
    with pytest.raises(stripe.InvalidRequestError) as refused:
        place.credit(200_001, identity=f"{place.number}/b")
    assert refused.value.http_status == 400 and refused.value.param == "amount"
    assert place.effects(f"{place.number}/b") == []
    place.credit(200_000, identity=f"{place.number}/c")
    assert place.billing().v1.invoices.retrieve(place.invoice).status == "paid"


def test_what_is_credited_after_payment_must_be_accounted_for(place: Place) -> None:
    place.sandbox.pay(place.number)
    with pytest.raises(stripe.InvalidRequestError) as refused:
        place.credit(5000, identity=f"{place.number}/a", credit_amount=4000)
    assert refused.value.param == "credit_amount" and place.effects(f"{place.number}/a") == []
    note = place.credit(5000, identity=f"{place.number}/b", credit_amount=2000, refund_amount=3000)
    assert (note.type, note.post_payment_amount, note.pre_payment_amount) == ("post_payment", 5000, 0)
    invoice = place.billing().v1.invoices.retrieve(place.invoice)
    assert (invoice.post_payment_credit_notes_amount, invoice.amount_paid) == (5000, 1_200_000)


def test_lines_of_a_credit_note_make_its_amount(place: Place) -> None:
    v1 = place.billing().v1
    line = v1.invoices.retrieve(place.invoice).lines.data[0].id
    lines: Any = [
        {"type": "custom_line_item", "description": "Outage", "quantity": 2, "unit_amount": 300},
        {"type": "invoice_line_item", "invoice_line_item": line, "amount": 50},
    ]
    note = v1.credit_notes.create({"invoice": place.invoice, "lines": lines})
    assert (note.amount, [item.amount for item in note.lines.data]) == (650, [600, 50])


def test_a_voided_credit_note_gives_its_amount_back(place: Place) -> None:
    note = place.credit(1_200_000, identity=f"{place.number}/a")
    with pytest.raises(stripe.InvalidRequestError):
        place.billing().v1.credit_notes.void_credit_note(note.id)  # the invoice counts as paid now
    other = places.settle(place.sandbox)
    part = other.credit(1000, identity=f"{other.number}/a")
    assert other.billing().v1.credit_notes.void_credit_note(part.id).status == "void"
    assert other.billing().v1.invoices.retrieve(other.invoice).amount_remaining == 1_200_000


def test_a_revision_replaces_the_invoice_and_keeps_its_credits(place: Place) -> None:
    place.credit(100_000, identity=f"{place.number}/a")
    v1 = place.billing().v1
    draft = v1.invoices.create({"from_invoice": {"action": "revision", "invoice": place.invoice}})
    line = draft.lines.data[0].id
    v1.invoices.update_lines(draft.id, {"lines": [{"id": line, "amount": 900_000}]})
    assert v1.invoices.retrieve(place.invoice).latest_revision is None
    revision = v1.invoices.finalize_invoice(draft.id)
    original = v1.invoices.retrieve(place.invoice)
    assert (original.status, original.latest_revision, original.total) == ("void", revision.id, 1_200_000)
    assert revision.from_invoice is not None and revision.from_invoice.invoice == place.invoice
    assert (revision.total, revision.amount_remaining, revision.number) == (900_000, 800_000, f"{place.number}-R1")
    assert len(v1.credit_notes.list({"invoice": place.invoice}).data) == 1
    with pytest.raises(stripe.InvalidRequestError):
        place.credit(1, identity=f"{place.number}/b")  # a void invoice takes no credit


def test_corrections_chain_and_cannot_go_below_what_is_credited(place: Place, sandbox: SandboxProcess) -> None:
    place.credit(100_000, identity=f"{place.number}/a")
    first = sandbox.correct(place.number, total_minor=1_000_000)
    second = sandbox.correct(place.number, total_minor=800_000)
    v1 = place.billing().v1
    assert v1.invoices.retrieve(place.invoice).latest_revision == second["id"]
    assert v1.invoices.retrieve(first["id"]).status == "void"
    assert (second["number"], second["amount_remaining"]) == (f"{place.number}-R2", 700_000)
    listed = [invoice.id for invoice in v1.invoices.list({"customer": place.customer}).auto_paging_iter()]
    assert listed == [second["id"], first["id"], place.invoice]
    effects = sandbox.ledger(operation="billing.invoices.correct", object=place.customer)
    assert [row["amount_minor"] for row in effects] == [1_000_000, 800_000]
    with pytest.raises(Exception, match="credited on this invoice already"):
        sandbox.correct(place.number, total_minor=99_999)
    assert v1.invoices.retrieve(second["id"]).status == "open"


@pytest.mark.parametrize(("currency", "amount"), [("jpy", 1200), ("usd", 120_000), ("kwd", 1_200_000)])
def test_amounts_are_minor_units_of_any_currency(sandbox: SandboxProcess, currency: str, amount: int) -> None:
    place = places.settle(sandbox, total_minor=amount * 10, currency=currency)
    note = place.credit(amount, identity=f"{place.number}/a")
    assert (note.currency, note.amount) == (currency, amount)
    assert place.effects(f"{place.number}/a")[0]["currency"] == currency


def test_errors_have_stripes_shape(place: Place) -> None:
    v1 = place.billing().v1
    with pytest.raises(stripe.InvalidRequestError) as missing:
        v1.invoices.retrieve("in_none")
    assert (missing.value.http_status, missing.value.code) == (404, "resource_missing")
    assert missing.value.request_id is not None
    with pytest.raises(stripe.InvalidRequestError) as unknown:
        place.credit(1, identity=f"{place.number}/a", colour="red")
    assert (unknown.value.http_status, unknown.value.param) == (400, "colour")
    for amount in ("12.5", "-1", "0", "1e3", ""):
        with pytest.raises(stripe.InvalidRequestError) as wrong:
            place.credit(amount, identity=f"{place.number}/a")  # type: ignore[arg-type]  # what a wrong caller sends
        assert wrong.value.param == "amount"
    stranger = stripe.StripeClient("sk_test_wrong", base_addresses={"api": place.sandbox.url}, max_network_retries=0)
    with pytest.raises(stripe.AuthenticationError):
        stranger.v1.invoices.retrieve(place.invoice)
    assert place.effects(f"{place.number}/a") == []


def test_an_invoice_is_found_by_its_number(place: Place) -> None:
    found = place.billing().v1.invoices.search({"query": f'number:"{place.number}"'})
    assert [invoice.id for invoice in found.data] == [place.invoice]


def test_credit_notes_are_listed_by_the_time_of_their_making(place: Place) -> None:
    notes = place.billing().v1.credit_notes
    made = notes.create({"invoice": place.invoice, "amount": 100})

    def listed(**created: int) -> list[str]:
        return [one.id for one in notes.list({"invoice": place.invoice, "created": created}).data]

    at = made.created
    assert listed(gte=at, lt=at + 1) == listed(gt=at - 1, lte=at) == [made.id]
    assert listed(gt=at) == listed(lt=at) == []
    assert [one.id for one in notes.list({"created": at, "invoice": place.invoice}).data] == [made.id]
    with pytest.raises(stripe.InvalidRequestError, match="since"):
        listed(since=at)


def test_long_invoices_embed_ten_lines_and_list_all(place: Place) -> None:
    v1 = place.billing().v1
    draft = v1.invoices.create({"customer": place.customer, "currency": "usd"})
    lines: Any = [{"amount": n, "description": str(n)} for n in range(1, 13)]
    shown = v1.invoices.add_lines(draft.id, {"lines": lines})
    assert len(shown.lines.data) == 10 and shown.lines.has_more
    assert [line.amount for line in v1.invoices.line_items.list(draft.id).auto_paging_iter()] == list(range(1, 13))
