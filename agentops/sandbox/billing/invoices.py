"""The invoice document: its lines, its amounts and its states."""

from typing import Any

from agentops.sandbox import moments, refusals
from agentops.sandbox.billing import common
from agentops.sandbox.transaction import Transaction, visible
from agentops.sandbox.wire import Doc

# Stripe embeds only the first lines of an invoice; the rest must be listed.
_EMBEDDED_LINES = 10


def blank(*, id: str, customer: Doc, currency: str, created: int) -> Doc:
    """A new draft without lines."""
    return {
        "id": id,
        "object": "invoice",
        "account_country": "US",
        "account_name": "Sandbox",
        "amount_due": 0,
        "amount_overpaid": 0,
        "amount_paid": 0,
        "amount_remaining": 0,
        "amount_shipping": 0,
        "attempt_count": 0,
        "attempted": False,
        "auto_advance": False,
        "automatic_tax": {"enabled": False, "liability": None, "status": None},
        "billing_reason": "manual",
        "collection_method": "send_invoice",
        "created": created,
        "currency": currency,
        "customer": customer["id"],
        "customer_email": customer["email"],
        "customer_name": customer["name"],
        "default_tax_rates": [],
        "description": None,
        "discounts": [],
        "due_date": None,
        "effective_at": None,
        "ending_balance": None,
        "footer": None,
        "from_invoice": None,
        "issuer": {"type": "self"},
        "latest_revision": None,
        "livemode": False,
        "metadata": {},
        "number": None,
        "parent": None,
        "payment_settings": {"default_mandate": None, "payment_method_options": None, "payment_method_types": None},
        "period_end": created,
        "period_start": created,
        "post_payment_credit_notes_amount": 0,
        "pre_payment_credit_notes_amount": 0,
        "starting_balance": 0,
        "status": "draft",
        "status_transitions": dict.fromkeys(("finalized_at", "marked_uncollectible_at", "paid_at", "voided_at")),
        "subtotal": 0,
        "subtotal_excluding_tax": 0,
        "total": 0,
        "total_discount_amounts": [],
        "total_excluding_tax": 0,
        "total_taxes": [],
        "webhooks_delivered_at": None,
        "_lines": [],
    }


def line(*, invoice: Doc, amount: int, description: str | None, quantity: int = 1, metadata: Doc | None = None) -> Doc:
    """A line item; ``amount`` is its total in minor units."""
    return {
        "id": moments.new_id(prefix="il"),
        "object": "line_item",
        "amount": amount,
        "currency": invoice["currency"],
        "description": description,
        "discount_amounts": [],
        "discountable": True,
        "discounts": [],
        "invoice": invoice["id"],
        "livemode": False,
        "metadata": metadata or {},
        "parent": None,
        "period": {"start": invoice["period_start"], "end": invoice["period_end"]},
        "pretax_credit_amounts": [],
        "pricing": None,
        "quantity": quantity,
        "subtotal": amount,
        "taxes": [],
    }


def settle(*, invoice: Doc) -> None:
    """Work out every amount from the lines, the credit notes and what was paid."""
    total = sum(item["amount"] for item in invoice["_lines"])
    invoice["total"] = invoice["subtotal"] = total
    invoice["total_excluding_tax"] = invoice["subtotal_excluding_tax"] = total
    invoice["amount_due"] = max(0, total - invoice["pre_payment_credit_notes_amount"])
    invoice["amount_remaining"] = max(0, invoice["amount_due"] - invoice["amount_paid"])


def shown(*, doc: Doc) -> Doc:
    """The invoice as the API gives it, with its first lines."""
    url = f"/v1/invoices/{doc['id']}/lines"
    lines = common.list_body(data=doc["_lines"][:_EMBEDDED_LINES], more=len(doc["_lines"]) > _EMBEDDED_LINES, url=url)
    return {**visible(doc=doc), "lines": {**lines, "total_count": len(doc["_lines"])}}


def get(*, tx: Transaction, id: str, in_path: bool = True) -> Doc:
    """The invoice. Raises Refusal when there is none."""
    invoice = tx.find(kind="invoice", id=id)
    if invoice is None:
        raise refusals.missing(kind="invoice", id=id, param="id" if in_path else "invoice", in_path=in_path)
    return invoice


def need_draft(*, invoice: Doc) -> None:
    """Refuse to change what was finalized: it is corrected by a revision or a credit note."""
    if invoice["status"] != "draft":
        message = (
            f"Invoice {invoice['number']} is {invoice['status']} and can no longer be edited. "
            "Revise it (from_invoice) or issue a credit note."
        )
        raise refusals.state(code="invoice_not_editable", message=message)


def need_status(*, invoice: Doc, allowed: tuple[str, ...], verb: str) -> None:
    """Refuse when the invoice is in none of the ``allowed`` states."""
    if invoice["status"] not in allowed:
        message = f"You can only {verb} an invoice that is {' or '.join(allowed)}; this one is {invoice['status']}."
        raise refusals.state(code="invoice_not_editable", message=message)


def save(*, tx: Transaction, invoice: Doc, event: str, before: Doc | None = None) -> None:
    """Store a new state and send ``event`` with what changed since ``before`` (as given by ``shown``)."""
    tx.replace(kind="invoice", doc=invoice)
    after = shown(doc=invoice)
    previous: dict[str, Any] | None = None
    if before is not None:
        previous = {name: before[name] for name in before if before[name] != after[name]}
    tx.emit(type=event, doc=after, previous=previous)


def objects(*, invoice: Doc) -> Doc:
    """The business objects a ledger row about this invoice names."""
    return {"invoice": invoice["id"], "invoice_number": invoice["number"], "customer": invoice["customer"]}


def mark_paid(*, tx: Transaction, invoice: Doc, amount: int) -> None:
    """Record a payment of ``amount`` minor units that settles the invoice, with its events."""
    before = shown(doc=invoice)
    invoice["amount_paid"] += amount
    invoice["status"] = "paid"
    invoice["attempted"] = True
    invoice["status_transitions"]["paid_at"] = int(moments.now())
    settle(invoice=invoice)
    save(tx=tx, invoice=invoice, event="invoice.updated", before=before)
    tx.emit(type="invoice.paid", doc=shown(doc=invoice))


def void(*, tx: Transaction, invoice: Doc) -> None:
    """Void a finalized invoice, with its event."""
    need_status(invoice=invoice, allowed=("open", "uncollectible"), verb="void")
    invoice["status"] = "void"
    invoice["status_transitions"]["voided_at"] = int(moments.now())
    save(tx=tx, invoice=invoice, event="invoice.voided")
