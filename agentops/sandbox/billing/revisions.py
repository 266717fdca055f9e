"""Correcting a finalized invoice: a revision replaces it, as in Stripe's post-finalization editing.

Credit notes stay with the invoice they were issued on. What they credited counts against the revision too, so the
customer keeps what was granted and nobody can credit the same money twice.
"""

import copy
import re

from agentops.sandbox import moments, refusals
from agentops.sandbox.billing import customers, invoices
from agentops.sandbox.transaction import Transaction
from agentops.sandbox.wire import Doc

_COPIED = (
    "auto_advance",
    "collection_method",
    "description",
    "due_date",
    "footer",
    "metadata",
    "period_end",
    "period_start",
    "pre_payment_credit_notes_amount",
)


def latest(*, tx: Transaction, key: str) -> Doc:
    """The newest finalized state of the invoice with this id or number. Raises Refusal (404) when there is none."""
    found = tx.find(kind="invoice", id=key)
    if found is None:
        numbered = tx.where(kind="invoice", match={"number": key})
        if not numbered:
            raise refusals.missing(kind="invoice", id=key)
        found = numbered[0]
    revision = found["latest_revision"]
    return invoices.get(tx=tx, id=revision) if revision else found


def draft(*, tx: Transaction, original: Doc) -> Doc:
    """A draft that will replace ``original`` when it is finalized; stored."""
    invoices.need_status(invoice=original, allowed=("open", "uncollectible"), verb="revise")
    customer = customers.get(tx=tx, id=original["customer"], in_path=False)
    revision = invoices.blank(
        id=moments.new_id(prefix="in"),
        customer=customer,
        currency=original["currency"],
        created=int(moments.now()),
    )
    revision.update({name: copy.deepcopy(original[name]) for name in _COPIED})
    revision["from_invoice"] = {"action": "revision", "invoice": original["id"]}
    revision["_lines"] = [
        {**copy.deepcopy(item), "id": moments.new_id(prefix="il"), "invoice": revision["id"]}
        for item in original["_lines"]
    ]
    invoices.settle(invoice=revision)
    tx.insert(kind="invoice", doc=revision)
    return revision


def finalize(*, tx: Transaction, invoice: Doc) -> None:
    """Open a draft; if it is a revision, void what it replaces and point the whole chain at it. Sends the events."""
    invoices.need_draft(invoice=invoice)
    if not invoice["_lines"]:
        message = "This invoice has no lines, so there is nothing to finalize. Add lines first."
        raise refusals.state(code="invoice_no_customer_line_items", message=message)
    original = _replaced(tx=tx, invoice=invoice)
    if original:
        # Credits may have been issued on the original after this draft was made from it.
        invoice["pre_payment_credit_notes_amount"] = original["pre_payment_credit_notes_amount"]
    invoices.settle(invoice=invoice)
    credited = invoice["pre_payment_credit_notes_amount"]
    if invoice["total"] < credited:
        message = f"{credited} is credited on this invoice already; its total cannot be {invoice['total']}."
        raise refusals.state(code="invoice_not_editable", message=message)
    now = int(moments.now())
    invoice["number"] = invoice["number"] or _number(tx=tx, invoice=invoice, original=original)
    invoice["status"] = "open"
    invoice["effective_at"] = invoice["status_transitions"]["finalized_at"] = now
    invoices.save(tx=tx, invoice=invoice, event="invoice.finalized")
    if original:
        invoices.void(tx=tx, invoice=original)
        _point_chain(tx=tx, original=original, revision=invoice)
    if invoice["amount_remaining"] == 0:
        invoices.mark_paid(tx=tx, invoice=invoice, amount=0)


def _replaced(*, tx: Transaction, invoice: Doc) -> Doc | None:
    if not invoice["from_invoice"]:
        return None
    original = invoices.get(tx=tx, id=invoice["from_invoice"]["invoice"])
    invoices.need_status(invoice=original, allowed=("open", "uncollectible"), verb="revise")
    return original


def _point_chain(*, tx: Transaction, original: Doc, revision: Doc) -> None:
    """``latest_revision`` names the newest finalized revision on every earlier invoice of the chain."""
    here: Doc | None = original
    while here:
        before = invoices.shown(doc=here)
        here["latest_revision"] = revision["id"]
        invoices.save(tx=tx, invoice=here, event="invoice.updated", before=before)
        here = invoices.get(tx=tx, id=here["from_invoice"]["invoice"]) if here["from_invoice"] else None


def _number(*, tx: Transaction, invoice: Doc, original: Doc | None) -> str:
    if original is None:
        customer = customers.get(tx=tx, id=invoice["customer"])
        return f"{customer['invoice_prefix']}-{tx.next_number(name='invoice:' + customer['id']):04d}"
    base, _, count = re.fullmatch(r"(.*?)(-R(\d+))?", original["number"]).groups()  # type: ignore[union-attr]  # always matches
    return f"{base}-R{int(count or 0) + 1}"


def correct(*, tx: Transaction, key: str, total_minor: int, reason: str | None) -> Doc:
    """Finance corrects an invoice to ``total_minor`` (minor units), by revision. Returns the revision.

    ``key`` is the id or number of any invoice of the chain. Raises Refusal as revising and finalizing do.
    """
    original = latest(tx=tx, key=key)
    revision = draft(tx=tx, original=original)
    revision["description"] = reason
    difference = total_minor - original["total"]
    largest = max(revision["_lines"], key=lambda item: int(item["amount"]), default=None)
    if largest is None or largest["amount"] + difference < 0:
        revision["_lines"] = [invoices.line(invoice=revision, amount=total_minor, description="Corrected total")]
    else:
        largest["amount"] += difference
        largest["subtotal"] = largest["amount"]
    finalize(tx=tx, invoice=revision)
    tx.effect(
        objects={
            **invoices.objects(invoice=revision),
            "replaces": original["id"],
            "replaced_number": original["number"],
        },
        amount_minor=revision["total"],
        currency=revision["currency"],
        payload={"total_minor": total_minor, "reason": reason, "old_total_minor": original["total"]},
    )
    return revision
