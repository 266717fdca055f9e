"""Lines of drafts, and invoice items that wait for an invoice."""

from decimal import Decimal, InvalidOperation

from agentops.sandbox import fields, moments, refusals
from agentops.sandbox.billing import common, customers, invoices
from agentops.sandbox.transaction import Transaction, visible
from agentops.sandbox.wire import Answer, Call, Doc

_LINE_FIELDS = ("amount", "description", "metadata", "quantity")


def _draft(*, tx: Transaction, call: Call) -> Doc:
    invoice = invoices.get(tx=tx, id=call.ids["invoice"])
    invoices.need_draft(invoice=invoice)
    return invoice


def _stored(*, tx: Transaction, invoice: Doc) -> Answer:
    invoices.settle(invoice=invoice)
    if invoice["total"] < 0:
        raise fields.refuse(param="lines", message="The lines of an invoice cannot sum to less than zero.")
    tx.replace(kind="invoice", doc=invoice)
    tx.effect(objects=invoices.objects(invoice=invoice), amount_minor=invoice["total"], currency=invoice["currency"])
    return Answer(body=invoices.shown(doc=invoice))


def _given(*, call: Call, allowed: tuple[str, ...]) -> list[Doc]:
    common.only(params=call.params, allowed=("lines", "invoice_metadata"))
    given = fields.items(params=call.params, name="lines")
    if not given:
        raise fields.refuse(param="lines", code="parameter_missing", message="Missing required param: lines.")
    for item in given:
        fields.only(params=item, allowed=allowed)
    return given


def _change(*, target: Doc, params: Doc) -> None:
    if "amount" in params:
        bound = common.MAX_AMOUNT
        target["amount"] = target["subtotal"] = fields.integer(params=params, name="amount", low=-bound, high=bound)
    if "description" in params:
        target["description"] = fields.text(params=params, name="description")
    if "quantity" in params:
        target["quantity"] = fields.integer(params=params, name="quantity", low=1, high=1_000_000)
    target["metadata"] = common.metadata(params=params, current=target["metadata"])


def _find(*, invoice: Doc, id: str) -> Doc:
    for item in invoice["_lines"]:
        if item["id"] == id:
            found: Doc = item
            return found
    raise refusals.missing(kind="line_item", id=id, param="line_item")


def add(tx: Transaction, call: Call) -> Answer:
    """POST /v1/invoices/{invoice}/add_lines: ``lines[0][amount]``, ``description``, ``quantity``, ``metadata``."""
    invoice = _draft(tx=tx, call=call)
    for item in _given(call=call, allowed=_LINE_FIELDS):
        if "amount" not in item:
            raise fields.refuse(param="lines[amount]", message="Each line needs an amount in minor units.")
        created = invoices.line(invoice=invoice, amount=0, description=None)
        _change(target=created, params=item)
        invoice["_lines"].append(created)
    return _stored(tx=tx, invoice=invoice)


def update_many(tx: Transaction, call: Call) -> Answer:
    """POST /v1/invoices/{invoice}/update_lines: ``lines[0][id]`` and what changes."""
    invoice = _draft(tx=tx, call=call)
    for item in _given(call=call, allowed=("id", *_LINE_FIELDS)):
        _change(target=_find(invoice=invoice, id=fields.needed(params=item, name="id")), params=item)
    return _stored(tx=tx, invoice=invoice)


def remove(tx: Transaction, call: Call) -> Answer:
    """POST /v1/invoices/{invoice}/remove_lines: ``lines[0][id]``."""
    invoice = _draft(tx=tx, call=call)
    for item in _given(call=call, allowed=("id", "behavior")):
        invoice["_lines"].remove(_find(invoice=invoice, id=fields.needed(params=item, name="id")))
    return _stored(tx=tx, invoice=invoice)


def update_one(tx: Transaction, call: Call) -> Answer:
    """POST /v1/invoices/{invoice}/lines/{line}"""
    common.only(params=call.params, allowed=_LINE_FIELDS)
    invoice = _draft(tx=tx, call=call)
    target = _find(invoice=invoice, id=call.ids["line"])
    _change(target=target, params=call.params)
    _stored(tx=tx, invoice=invoice)
    return Answer(body=target)


def listed(tx: Transaction, call: Call) -> Answer:
    """GET /v1/invoices/{invoice}/lines, in the order of the invoice."""
    common.only(params=call.params, allowed=("limit", "starting_after"))
    invoice = invoices.get(tx=tx, id=call.ids["invoice"])
    limit = fields.integer(params=call.params, name="limit", low=1, high=100, default=10)
    rest = invoice["_lines"]
    after = fields.text(params=call.params, name="starting_after")
    if after:
        rest = rest[rest.index(_find(invoice=invoice, id=after)) + 1 :]
    return Answer(body=common.list_body(data=rest[:limit], more=len(rest) > limit, url=call.path))


def create_item(tx: Transaction, call: Call) -> Answer:
    """POST /v1/invoiceitems: a line for ``invoice`` (a draft), or for the customer's next invoice."""
    params = call.params
    allowed = ("customer", "invoice", "currency", "unit_amount_decimal", *_LINE_FIELDS)
    common.only(params=params, allowed=allowed)
    customer = customers.get(tx=tx, id=fields.needed(params=params, name="customer"), in_path=False)
    quantity = fields.integer(params=params, name="quantity", low=1, high=1_000_000, default=1)
    item: Doc = {
        "id": moments.new_id(prefix="ii"),
        "object": "invoiceitem",
        "amount": _item_amount(params=params, quantity=quantity),
        "currency": common.currency(params=params, default=customer["currency"] or "usd"),
        "customer": customer["id"],
        "date": int(moments.now()),
        "description": fields.text(params=params, name="description"),
        "invoice": None,
        "livemode": False,
        "metadata": common.metadata(params=params),
        "quantity": quantity,
    }
    target = fields.text(params=params, name="invoice")
    if target:
        invoice = invoices.get(tx=tx, id=target, in_path=False)
        invoices.need_draft(invoice=invoice)
        _attach(invoice=invoice, item=item)
        tx.replace(kind="invoice", doc=invoice)
    tx.insert(kind="invoiceitem", doc=item)
    tx.effect(
        objects={"invoiceitem": item["id"], "customer": customer["id"], "invoice": item["invoice"]},
        amount_minor=item["amount"],
        currency=item["currency"],
    )
    return Answer(body=visible(doc=item))


def _item_amount(*, params: Doc, quantity: int) -> int:
    text = fields.text(params=params, name="unit_amount_decimal", longest=30)
    if text is None:
        return fields.integer(params=params, name="amount", low=-common.MAX_AMOUNT, high=common.MAX_AMOUNT)
    try:
        amount = Decimal(text) * quantity
    except InvalidOperation:
        raise fields.refuse(param="unit_amount_decimal", message=f"Invalid decimal: {text[:30]!r}.") from None
    if not amount.is_finite() or amount != int(amount) or abs(amount) > common.MAX_AMOUNT:
        raise fields.refuse(param="unit_amount_decimal", message="Times quantity it must be a whole minor amount.")
    return int(amount)


def _attach(*, invoice: Doc, item: Doc) -> None:
    if item["currency"] != invoice["currency"] or item["customer"] != invoice["customer"]:
        raise fields.refuse(param="invoice", message="The invoice has another customer or currency than the item.")
    item["invoice"] = invoice["id"]
    invoice["_lines"].append(
        invoices.line(
            invoice=invoice,
            amount=item["amount"],
            description=item["description"],
            quantity=item["quantity"],
            metadata=item["metadata"],
        )
    )
    invoices.settle(invoice=invoice)


def attach_pending(*, tx: Transaction, invoice: Doc) -> None:
    """Move the customer's waiting items in the invoice's currency onto a draft, oldest first."""
    for item in reversed(tx.where(kind="invoiceitem", match={"customer": invoice["customer"]})):
        if item["invoice"] is None and item["currency"] == invoice["currency"]:
            _attach(invoice=invoice, item=item)
            tx.replace(kind="invoiceitem", doc=item)


def list_items(tx: Transaction, call: Call) -> Answer:
    """GET /v1/invoiceitems, by ``customer`` and ``invoice``."""
    return common.listing(tx=tx, kind="invoiceitem", filters=("customer", "invoice"))
