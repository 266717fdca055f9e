"""Credit notes: what is given back on a finalized invoice, while it is open or after it was paid."""

from decimal import Decimal, InvalidOperation

from agentops.sandbox import fields, moments, refusals
from agentops.sandbox.billing import common, invoices, revisions
from agentops.sandbox.transaction import Transaction, visible
from agentops.sandbox.wire import Answer, Call, Doc

_REASONS = ("duplicate", "fraudulent", "order_change", "product_unsatisfactory")
_FINAL = ("open", "paid", "uncollectible", "void")
_PAID_OUT = ("credit_amount", "refund_amount", "out_of_band_amount")
_PARAMS = ("invoice", "amount", "lines", "memo", "reason", "metadata", "effective_at", "email_type", *_PAID_OUT)
_LINE_PARAMS = (
    "type",
    "invoice_line_item",
    "amount",
    "quantity",
    "unit_amount",
    "unit_amount_decimal",
    "description",
    "metadata",
)


def create(tx: Transaction, call: Call) -> Answer:
    """POST /v1/credit_notes.

    The amount first lowers what remains to be paid; the excess must be matched by ``credit_amount``,
    ``refund_amount`` and ``out_of_band_amount`` together. All credits of an invoice stay within its total.
    """
    params = call.params
    common.only(params=params, allowed=_PARAMS)
    invoice = invoices.get(tx=tx, id=fields.needed(params=params, name="invoice"), in_path=False)
    metadata = common.metadata(params=params)
    reason = fields.choice(params=params, name="reason", options=_REASONS)
    note_lines = _lines(params=params, invoice=invoice)
    amount = _amount(params=params, note_lines=note_lines)
    invoices.need_status(invoice=invoice, allowed=("open", "paid"), verb="credit")
    credited = invoice["pre_payment_credit_notes_amount"] + invoice["post_payment_credit_notes_amount"]
    if amount > invoice["total"] - credited:
        message = (
            f"The credit note amount ({amount}) is greater than what can still be credited on this invoice "
            f"({invoice['total'] - credited} of {invoice['total']})."
        )
        raise refusals.state(code="amount_too_large", param="amount", message=message)
    before_payment = min(amount, invoice["amount_remaining"])
    given = _paid_out(params=params, needed=amount - before_payment)
    note = _note(tx=tx, invoice=invoice, amount=amount, before_payment=before_payment, given=given)
    note["lines"]["data"] = note_lines
    note.update({"metadata": metadata, "reason": reason, "memo": fields.text(params=params, name="memo")})
    tx.insert(kind="credit_note", doc=note)
    _apply(tx=tx, invoice=invoice, before_payment=before_payment, after_payment=amount - before_payment)
    tx.effect(objects=_objects(note=note, invoice=invoice), amount_minor=amount, currency=note["currency"])
    tx.emit(type="credit_note.created", doc=note)
    return Answer(body=visible(doc=note))


def _amount(*, params: Doc, note_lines: list[Doc]) -> int:
    by_lines = sum(item["amount"] for item in note_lines)
    if not note_lines:
        return fields.integer(params=params, name="amount", low=1, high=common.MAX_AMOUNT)
    amount = fields.integer(params=params, name="amount", low=1, high=common.MAX_AMOUNT, default=by_lines)
    if amount != by_lines or by_lines < 1:
        raise fields.refuse(
            param="lines", message=f"The lines sum to {by_lines}, which must be the amount and positive."
        )
    return amount


def _lines(*, params: Doc, invoice: Doc) -> list[Doc]:
    return [_line(params=item, invoice=invoice) for item in fields.items(params=params, name="lines")]


def _line(*, params: Doc, invoice: Doc) -> Doc:
    fields.only(params=params, allowed=_LINE_PARAMS)
    kind = fields.choice(params=params, name="type", options=("custom_line_item", "invoice_line_item"))
    source = fields.text(params=params, name="invoice_line_item")
    if kind == "invoice_line_item":
        if source not in [item["id"] for item in invoice["_lines"]]:
            raise refusals.missing(kind="line_item", id=source or "", param="lines[invoice_line_item]", in_path=False)
    elif kind is None or source:
        raise fields.refuse(
            param="lines[type]", message="A line is a custom_line_item, or an invoice_line_item with its id."
        )
    quantity = fields.integer(params=params, name="quantity", low=1, high=1_000_000, default=1)
    return {
        "id": moments.new_id(prefix="cnli"),
        "object": "credit_note_line_item",
        "amount": _line_amount(params=params, quantity=quantity),
        "description": fields.text(params=params, name="description"),
        "discount_amount": 0,
        "discount_amounts": [],
        "invoice_line_item": source,
        "livemode": False,
        "quantity": quantity,
        "tax_rates": [],
        "taxes": [],
        "type": kind,
        "unit_amount": None,
        "unit_amount_decimal": None,
    }


def _line_amount(*, params: Doc, quantity: int) -> int:
    if "amount" in params:
        return fields.integer(params=params, name="amount", low=0, high=common.MAX_AMOUNT)
    text = fields.text(params=params, name="unit_amount_decimal", longest=30)
    if text is None:
        return quantity * fields.integer(params=params, name="unit_amount", low=0, high=common.MAX_AMOUNT)
    try:
        total = Decimal(text) * quantity
    except InvalidOperation:
        raise fields.refuse(param="unit_amount_decimal", message=f"Invalid decimal: {text!r}.") from None
    if not total.is_finite() or total != int(total) or not 0 <= total <= common.MAX_AMOUNT:
        raise fields.refuse(param="unit_amount_decimal", message="Times quantity it must be a whole minor amount.")
    return int(total)


def _paid_out(*, params: Doc, needed: int) -> Doc:
    given = {
        name: fields.integer(params=params, name=name, low=0, high=common.MAX_AMOUNT, default=0) for name in _PAID_OUT
    }
    if sum(given.values()) != needed:
        message = (
            f"The sum of credit_amount, refund_amount and out_of_band_amount ({sum(given.values())}) must equal "
            f"the part of the credit note beyond what remains to be paid ({needed})."
        )
        raise refusals.state(code="parameter_invalid", param="credit_amount", message=message)
    return given


def _note(*, tx: Transaction, invoice: Doc, amount: int, before_payment: int, given: Doc) -> Doc:
    id = moments.new_id(prefix="cn")
    now = int(moments.now())
    refunded = given["refund_amount"]
    refund = {"amount_refunded": refunded, "refund": moments.new_id(prefix="re"), "type": "refund"}
    type = "pre_payment" if before_payment == amount else "mixed" if before_payment else "post_payment"
    return {
        "id": id,
        "object": "credit_note",
        "amount": amount,
        "amount_shipping": 0,
        "created": now,
        "currency": invoice["currency"],
        "customer": invoice["customer"],
        "customer_balance_transaction": moments.new_id(prefix="cbtxn") if given["credit_amount"] else None,
        "discount_amount": 0,
        "discount_amounts": [],
        "effective_at": now,
        "invoice": invoice["id"],
        "lines": {**common.list_body(data=[], more=False, url=f"/v1/credit_notes/{id}/lines")},
        "livemode": False,
        "memo": None,
        "metadata": {},
        "number": f"{invoice['number']}-CN-{tx.next_number(name='credit_note:' + invoice['id']):02d}",
        "out_of_band_amount": given["out_of_band_amount"] or None,
        "pdf": "",
        "post_payment_amount": amount - before_payment,
        "pre_payment_amount": before_payment,
        "pretax_credit_amounts": [],
        "reason": None,
        "refunds": [refund] if refunded else [],
        "shipping_cost": None,
        "status": "issued",
        "subtotal": amount,
        "subtotal_excluding_tax": amount,
        "total": amount,
        "total_excluding_tax": amount,
        "total_taxes": [],
        "type": type,
        "voided_at": None,
    }


def _apply(*, tx: Transaction, invoice: Doc, before_payment: int, after_payment: int) -> None:
    """Move the invoice's amounts; an open invoice with nothing left to pay counts as paid."""
    before = invoices.shown(doc=invoice)
    invoice["pre_payment_credit_notes_amount"] += before_payment
    invoice["post_payment_credit_notes_amount"] += after_payment
    invoices.settle(invoice=invoice)
    invoices.save(tx=tx, invoice=invoice, event="invoice.updated", before=before)
    if invoice["status"] == "open" and invoice["amount_remaining"] == 0:
        invoices.mark_paid(tx=tx, invoice=invoice, amount=0)


def _objects(*, note: Doc, invoice: Doc) -> Doc:
    return {"credit_note": note["id"], **invoices.objects(invoice=invoice)}


def _get(*, tx: Transaction, call: Call) -> Doc:
    id = call.ids["credit_note"]
    note = tx.find(kind="credit_note", id=id)
    if note is None:
        raise refusals.missing(kind="credit_note", id=id)
    return note


def retrieve(tx: Transaction, call: Call) -> Answer:
    """GET /v1/credit_notes/{credit_note}"""
    common.only(params=call.params, allowed=())
    return Answer(body=visible(doc=_get(tx=tx, call=call)))


def update(tx: Transaction, call: Call) -> Answer:
    """POST /v1/credit_notes/{credit_note}: memo and metadata."""
    common.only(params=call.params, allowed=("memo", "metadata"))
    note = _get(tx=tx, call=call)
    if "memo" in call.params:
        note["memo"] = fields.text(params=call.params, name="memo")
    note["metadata"] = common.metadata(params=call.params, current=note["metadata"])
    tx.replace(kind="credit_note", doc=note)
    tx.effect(objects={"credit_note": note["id"], "invoice": note["invoice"], "customer": note["customer"]})
    tx.emit(type="credit_note.updated", doc=note)
    return Answer(body=visible(doc=note))


def listed(tx: Transaction, call: Call) -> Answer:
    """GET /v1/credit_notes, by ``invoice``, ``customer`` and ``created``; not by metadata, as in Stripe."""
    return common.listing(tx=tx, kind="credit_note", filters=("invoice", "customer"), by_time=True)


def void(tx: Transaction, call: Call) -> Answer:
    """POST /v1/credit_notes/{credit_note}/void: only while the invoice (or its latest revision) is open."""
    common.only(params=call.params, allowed=())
    note = _get(tx=tx, call=call)
    _void(tx=tx, note=note, allowed=("open",), payload=None)
    return Answer(body=visible(doc=note))


def void_by_billing(tx: Transaction, id: str, *, told: bool = True) -> None:
    """Billing takes back a credit note it had accepted, whatever state the invoice is in; void already: nothing."""
    note = tx.find(kind="credit_note", id=id)
    if note is not None and note["status"] != "void":
        _void(tx=tx, note=note, allowed=_FINAL, payload={"cause": "billing could not complete it"}, told=told)


def issue_by_billing(tx: Transaction, id: str, *, told: bool = True) -> None:
    """Billing completes a credit note that it had only taken on."""
    note = tx.find(kind="credit_note", id=id)
    if note is not None and note["status"] == "pending":
        note["status"] = "issued"
        tx.replace(kind="credit_note", doc=note)
        if told:
            tx.emit(type="credit_note.updated", doc=note)


def _void(*, tx: Transaction, note: Doc, allowed: tuple[str, ...], payload: Doc | None, told: bool = True) -> None:
    if note["status"] == "void":
        raise refusals.state(code="resource_already_void", message="This credit note is void already.")
    invoice = revisions.latest(tx=tx, key=note["invoice"])
    invoices.need_status(invoice=invoice, allowed=allowed, verb="void a credit note of")
    note["status"] = "void"
    note["voided_at"] = int(moments.now())
    tx.replace(kind="credit_note", doc=note)
    if invoice["status"] == "paid" and invoice["amount_paid"] == 0:
        # It counted as paid only because credits covered it.
        invoice["status"] = "open"
        invoice["status_transitions"]["paid_at"] = None
    _apply(
        tx=tx,
        invoice=invoice,
        before_payment=-note["pre_payment_amount"],
        after_payment=-note["post_payment_amount"],
    )
    tx.effect(
        objects=_objects(note=note, invoice=invoice),
        amount_minor=note["amount"],
        currency=note["currency"],
        payload=payload,
    )
    if told:
        tx.emit(type="credit_note.voided", doc=note)
