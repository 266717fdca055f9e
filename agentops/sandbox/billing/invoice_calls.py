"""The invoice endpoints."""

import re

from agentops.sandbox import fields, moments
from agentops.sandbox.billing import common, customers, invoices, lines, revisions
from agentops.sandbox.transaction import Transaction
from agentops.sandbox.wire import Answer, Call, Doc

_DRAFT_FIELDS = (
    "auto_advance",
    "collection_method",
    "days_until_due",
    "description",
    "due_date",
    "footer",
    "metadata",
    "number",
)
_FINAL_FIELDS = ("auto_advance", "metadata")
_STATUSES = ("draft", "open", "paid", "uncollectible", "void")
_QUERY = re.compile(r'(number|customer|status)\s*:\s*"([^"]{1,200})"')


def create(tx: Transaction, call: Call) -> Answer:
    """POST /v1/invoices: a draft, empty or (``from_invoice``) a revision of a finalized invoice."""
    params = call.params
    common.only(
        params=params,
        allowed=(*_DRAFT_FIELDS, "customer", "currency", "from_invoice", "pending_invoice_items_behavior"),
    )
    source = fields.group(params=params, name="from_invoice")
    if source:
        if params.get("customer"):
            raise fields.refuse(param="customer", message="A revision keeps its customer: leave customer out.")
        fields.choice(params=source, name="action", options=("revision",))
        original = fields.needed(params=source, name="invoice")
        invoice = revisions.draft(tx=tx, original=invoices.get(tx=tx, id=original, in_path=False))
    else:
        customer = customers.get(tx=tx, id=fields.needed(params=params, name="customer"), in_path=False)
        currency = common.currency(params=params, default=customer["currency"] or "usd")
        invoice = invoices.blank(
            id=moments.new_id(prefix="in"), customer=customer, currency=currency, created=int(moments.now())
        )
        tx.insert(kind="invoice", doc=invoice)
        behavior = fields.choice(params=params, name="pending_invoice_items_behavior", options=("include", "exclude"))
        if behavior == "include":
            lines.attach_pending(tx=tx, invoice=invoice)
    _edit(invoice=invoice, params=params, tx=tx)
    tx.replace(kind="invoice", doc=invoice)
    tx.effect(objects=invoices.objects(invoice=invoice), amount_minor=invoice["total"], currency=invoice["currency"])
    return Answer(body=invoices.shown(doc=invoice))


def _edit(*, tx: Transaction, invoice: Doc, params: Doc) -> None:
    """Apply the fields a draft takes."""
    for name in ("description", "footer"):
        if name in params:
            invoice[name] = fields.text(params=params, name=name)
    if "number" in params:
        number = fields.text(params=params, name="number", longest=26)
        if number and any(found["id"] != invoice["id"] for found in tx.where(kind="invoice", match={"number": number})):
            raise fields.refuse(param="number", message=f"The invoice number {number} is taken; choose another.")
        invoice["number"] = number
    if "auto_advance" in params:
        invoice["auto_advance"] = fields.choice(params=params, name="auto_advance", options=("true", "false")) == "true"
    method = fields.choice(params=params, name="collection_method", options=("charge_automatically", "send_invoice"))
    invoice["collection_method"] = method or invoice["collection_method"]
    if "due_date" in params:
        invoice["due_date"] = fields.integer(params=params, name="due_date", low=0, high=2**33)
    elif "days_until_due" in params:
        days = fields.integer(params=params, name="days_until_due", low=0, high=3650)
        invoice["due_date"] = invoice["created"] + days * 86400
    invoice["metadata"] = common.metadata(params=params, current=invoice["metadata"])


def retrieve(tx: Transaction, call: Call) -> Answer:
    """GET /v1/invoices/{invoice}"""
    common.only(params=call.params, allowed=())
    return Answer(body=invoices.shown(doc=invoices.get(tx=tx, id=call.ids["invoice"])))


def update(tx: Transaction, call: Call) -> Answer:
    """POST /v1/invoices/{invoice}: all fields of a draft, only metadata and auto_advance afterwards."""
    common.only(params=call.params, allowed=_DRAFT_FIELDS)
    invoice = invoices.get(tx=tx, id=call.ids["invoice"])
    if any(name not in _FINAL_FIELDS for name in call.params if name not in common.EVERYWHERE):
        invoices.need_draft(invoice=invoice)
    before = invoices.shown(doc=invoice)
    _edit(tx=tx, invoice=invoice, params=call.params)
    invoices.save(tx=tx, invoice=invoice, event="invoice.updated", before=before)
    tx.effect(objects=invoices.objects(invoice=invoice))
    return Answer(body=invoices.shown(doc=invoice))


def listed(tx: Transaction, call: Call) -> Answer:
    """GET /v1/invoices, by ``customer`` and ``status``."""
    fields.choice(params=call.params, name="status", options=_STATUSES)
    return common.listing(tx=tx, kind="invoice", filters=("customer", "status"), shape=invoices.shown)


def search(tx: Transaction, call: Call) -> Answer:
    """GET /v1/invoices/search: clauses like ``number:"INV-1"`` on number, customer and status, joined by AND."""
    common.only(params=call.params, allowed=("query", "limit", "page"))
    query = fields.needed(params=call.params, name="query", longest=500)
    match: dict[str, str] = {}
    for clause in re.split(r"\s+AND\s+", query.strip()):
        found = _QUERY.fullmatch(clause.strip())
        if found is None:
            message = f'Cannot read {clause[:80]!r}: write clauses like number:"INV-1" on number, customer or status.'
            raise fields.refuse(param="query", message=message)
        match[found[1]] = found[2]
    limit = fields.integer(params=call.params, name="limit", low=1, high=100, default=10)
    hits = [invoices.shown(doc=doc) for doc in tx.where(kind="invoice", match=match)]
    body = common.list_body(data=hits[:limit], more=len(hits) > limit, url=call.path)
    return Answer(body={**body, "object": "search_result", "next_page": None})


def finalize(tx: Transaction, call: Call) -> Answer:
    """POST /v1/invoices/{invoice}/finalize"""
    common.only(params=call.params, allowed=("auto_advance",))
    invoice = invoices.get(tx=tx, id=call.ids["invoice"])
    revisions.finalize(tx=tx, invoice=invoice)
    replaces = (invoice["from_invoice"] or {}).get("invoice")
    tx.effect(
        objects={**invoices.objects(invoice=invoice), "replaces": replaces},
        amount_minor=invoice["total"],
        currency=invoice["currency"],
    )
    return Answer(body=invoices.shown(doc=invoice))


def void(tx: Transaction, call: Call) -> Answer:
    """POST /v1/invoices/{invoice}/void"""
    common.only(params=call.params, allowed=())
    invoice = invoices.get(tx=tx, id=call.ids["invoice"])
    invoices.void(tx=tx, invoice=invoice)
    tx.effect(objects=invoices.objects(invoice=invoice), amount_minor=invoice["total"], currency=invoice["currency"])
    return Answer(body=invoices.shown(doc=invoice))


def pay(tx: Transaction, call: Call) -> Answer:
    """POST /v1/invoices/{invoice}/pay: settles what remains."""
    common.only(params=call.params, allowed=("paid_out_of_band",))
    invoice = invoices.get(tx=tx, id=call.ids["invoice"])
    pay_rest(tx=tx, invoice=invoice)
    return Answer(body=invoices.shown(doc=invoice))


def pay_rest(*, tx: Transaction, invoice: Doc) -> None:
    """Pay what remains of an open invoice, with ledger row and events. Raises Refusal in any other state."""
    invoices.need_status(invoice=invoice, allowed=("open", "uncollectible"), verb="pay")
    amount = invoice["amount_remaining"]
    invoices.mark_paid(tx=tx, invoice=invoice, amount=amount)
    tx.effect(objects=invoices.objects(invoice=invoice), amount_minor=amount, currency=invoice["currency"])
