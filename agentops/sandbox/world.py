"""Loading a world: the accounts, plans, incidents, invoices and tickets that exist before anything happens.

The document (all parts optional, each a list; what exists already, by id, is left exactly as it is)::

    {"plans":     [{"id": "business", "name": "Business",
                    "sla": {"version": "2026-02", "tiers": [{"below": "99.9", "percent": "10"}]}}],
     "accounts":  [{"id": "ACC-1", "name": "Example Co", "billing_customer": "cus_example", "plan": "business",
                    "standing": "good"}],
     "incidents": [{"id": "INC-1", "version": 5, "final": true, "title": "…", "started_at": "2026-10-22T13:14:00Z",
                    "ended_at": null, "affected": ["ACC-1"]}],
     "invoices":  [{"number": "INV-1", "account": "ACC-1", "currency": "usd", "total_minor": 1200000,
                    "period_start": "2026-10-01", "period_end": "2026-11-01", "due": "2026-11-30", "status": "open",
                    "lines": [{"description": "…", "amount_minor": 1200000}]}],
     "tickets":   [{"id": "CS-1", "account": "ACC-1", "incident": "INC-1", "subject": "…", "body": "…",
                    "status": "open", "priority": "high", "assignee": null, "tags": [], "version": 1,
                    "messages": [{"from": "…", "at": "…", "body": "…"}]}]}

Money is integer minor units; percentages are decimal texts; times are ISO 8601 (UTC without an offset).
An invoice's ``id`` may be given; otherwise it is ``in_`` and the letters and digits of its number in lower case.
``status`` is draft, open, paid or void; ``lines`` default to one line of ``total_minor`` and must sum to it.
Further names on accounts, incidents and plans are kept as they are. Loading is no effect: the ledger stays as it was.
"""

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from agentops.sandbox import fields, moments
from agentops.sandbox.billing import common, customers, invoices
from agentops.sandbox.helpdesk import tickets
from agentops.sandbox.transaction import Transaction
from agentops.sandbox.wire import Doc, Refusal

_PARTS = ("plans", "accounts", "incidents", "invoices", "tickets")
_LONGEST = 100_000


def load(*, tx: Transaction, world: Doc) -> Doc:
    """Load the parts that are new. Returns ``{"created": {part: n}, "kept": {part: n}}``.

    Raises Refusal naming part, position and field; then nothing of the document is loaded.
    """
    fields.only(params=world, allowed=_PARTS)
    created = dict.fromkeys(_PARTS, 0)
    kept = dict.fromkeys(_PARTS, 0)
    for part in _PARTS:
        for position, item in enumerate(fields.items(params=world, name=part, longest=_LONGEST)):
            try:
                (created if _LOADERS[part](tx, item) else kept)[part] += 1
            except Refusal as refusal:
                refusal.param = f"{part}[{position}].{refusal.param or 'id'}"
                raise
    return {"created": created, "kept": kept}


def invoice_id(*, number: str) -> str:
    """The id of a world's invoice that gives none: ``INV-2041`` is ``in_inv2041``."""
    return "in_" + re.sub(r"[^a-z0-9]", "", number.lower())


def _moment(*, params: Doc, name: str, required: bool = True) -> int | None:
    value = fields.text(params=params, name=name, required=required, longest=40)
    if value is None:
        return None
    try:
        return moments.epoch(text=value)
    except ValueError:
        raise fields.refuse(param=name, message=f"{name} must be an ISO 8601 date or time, got {value!r}.") from None


def _known(*, tx: Transaction, kind: str, params: Doc, name: str) -> str:
    id = fields.needed(params=params, name=name)
    if tx.find(kind=kind, id=id) is None:
        raise fields.refuse(param=name, message=f"There is no {kind} {id!r:.80}: put it into the world before this.")
    return id


def _new(*, tx: Transaction, kind: str, params: Doc) -> str | None:
    """The id when nothing has it yet."""
    id = fields.needed(params=params, name="id", longest=100)
    return id if tx.find(kind=kind, id=id) is None else None


def _plan(tx: Transaction, item: Doc) -> bool:
    if _new(tx=tx, kind="plan", params=item) is None:
        return False
    doc = {"object": "plan", "name": item["id"], **item}
    _fit_plan(tx, doc)
    tx.insert(kind="plan", doc=doc)
    return True


def _fit_plan(tx: Transaction, doc: Doc) -> None:
    sla = fields.group(params=doc, name="sla")
    doc["version"] = fields.needed(params=sla, name="version", longest=100)
    for tier in fields.items(params=sla, name="tiers"):
        for name in ("below", "percent"):
            _percentage(text=fields.needed(params=tier, name=name, longest=20), name=f"sla.tiers.{name}")


def _percentage(*, text: str, name: str) -> None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or not 0 <= number <= 100:
        raise fields.refuse(param=name, message=f"{name} must be decimal text from 0 to 100, got {text!r}.")


def _account(tx: Transaction, item: Doc) -> bool:
    if _new(tx=tx, kind="account", params=item) is None:
        return False
    doc = {"object": "account", "standing": "good", "version": 1, **item}
    _fit_account(tx, doc)
    tx.insert(kind="account", doc=doc)
    return True


def _fit_account(tx: Transaction, doc: Doc) -> None:
    name = fields.needed(params=doc, name="name", longest=300)
    customer = fields.needed(params=doc, name="billing_customer", longest=100)
    _known(tx=tx, kind="plan", params=doc, name="plan")
    if tx.find(kind="customer", id=customer) is None:
        metadata = {"account": doc["id"]}
        tx.insert(kind="customer", doc=customers.blank(id=customer, name=name, metadata=metadata))


def _incident(tx: Transaction, item: Doc) -> bool:
    if _new(tx=tx, kind="incident", params=item) is None:
        return False
    doc = {"object": "incident", "version": 1, "final": False, "ended_at": None, "affected": [], **item}
    _fit_incident(tx, doc)
    tx.insert(kind="incident", doc=doc)
    return True


def _fit_incident(tx: Transaction, doc: Doc) -> None:
    fields.needed(params=doc, name="title", longest=1000)
    start = _moment(params=doc, name="started_at")
    end = _moment(params=doc, name="ended_at", required=False)
    if start is not None and end is not None and end < start:
        raise fields.refuse(param="ended_at", message="ended_at is before started_at.")
    if not isinstance(doc["final"], bool) or not isinstance(doc["affected"], list):
        raise fields.refuse(param="final", message="final is true or false and affected a list of account ids.")
    doc["version"] = fields.integer(params=doc, name="version", low=1, high=10**9)


def _invoice(tx: Transaction, item: Doc) -> bool:
    number = fields.needed(params=item, name="number", longest=26)
    id = fields.text(params=item, name="id", longest=100) or invoice_id(number=number)
    if tx.find(kind="invoice", id=id) is not None:
        return False
    account = tx.find(kind="account", id=_known(tx=tx, kind="account", params=item, name="account")) or {}
    customer = customers.get(tx=tx, id=account["billing_customer"])
    currency = common.currency(params=item)
    start, end = (_moment(params=item, name=name) or 0 for name in ("period_start", "period_end"))
    invoice = invoices.blank(id=id, customer=customer, currency=currency, created=end or start)
    invoice.update({"number": number, "period_start": start, "period_end": end, "effective_at": end})
    invoice["due_date"] = _moment(params=item, name="due", required=False)
    invoice["metadata"] = {"account": account["id"]}
    invoice["_lines"] = _invoice_lines(invoice=invoice, item=item)
    status = fields.choice(params=item, name="status", options=("draft", "open", "paid", "void")) or "open"
    invoice["status"] = status
    stamps = {"open": (), "draft": (), "paid": ("paid_at",), "void": ("voided_at",)}[status]
    for stamp in (*stamps, *(() if status == "draft" else ("finalized_at",))):
        invoice["status_transitions"][stamp] = end
    invoice["amount_paid"] = sum(line["amount"] for line in invoice["_lines"]) if status == "paid" else 0
    invoices.settle(invoice=invoice)
    tx.insert(kind="invoice", doc=invoice)
    return True


def _invoice_lines(*, invoice: Doc, item: Doc) -> list[Doc]:
    total = fields.integer(params=item, name="total_minor", low=0, high=common.MAX_AMOUNT)
    given = fields.items(params=item, name="lines") or [{"description": item["number"], "amount_minor": total}]
    lines = [
        invoices.line(
            invoice=invoice,
            amount=fields.integer(params=line, name="amount_minor", low=-common.MAX_AMOUNT, high=common.MAX_AMOUNT),
            description=fields.text(params=line, name="description"),
        )
        for line in given
    ]
    if sum(line["amount"] for line in lines) != total:
        raise fields.refuse(param="lines", message=f"The lines must sum to total_minor ({total}).")
    return lines


def _ticket(tx: Transaction, item: Doc) -> bool:
    id = _new(tx=tx, kind="ticket", params=item)
    if id is None:
        return False
    account = _known(tx=tx, kind="account", params=item, name="account")
    ticket = tickets.blank(id=id, account=account, subject=fields.needed(params=item, name="subject", longest=1000))
    fields.only(params=item, allowed=tuple(ticket))
    fields.choice(params=item, name="status", options=tickets.STATUSES)
    fields.choice(params=item, name="priority", options=tickets.PRIORITIES)
    fields.text(params=item, name="body", longest=200_000)
    if fields.text(params=item, name="incident"):
        _known(tx=tx, kind="incident", params=item, name="incident")
    for name, wanted in (("messages", list), ("tags", list), ("fields", dict)):
        if not isinstance(item.get(name, wanted()), wanted):
            raise fields.refuse(param=name, message=f"{name} must be a {wanted.__name__}.")
    ticket.update(item)
    ticket["version"] = fields.integer(params=ticket, name="version", low=1, high=10**9)
    tx.insert(kind="ticket", doc=ticket)
    return True


# what a record that may be changed later has to be, whoever wrote it: refused where it is not, and made whole
FIT: dict[str, Callable[[Transaction, Doc], None]] = {
    "plan": _fit_plan,
    "account": _fit_account,
    "incident": _fit_incident,
}
_LOADERS: dict[str, Callable[[Transaction, Doc], Any]] = {
    "plans": _plan,
    "accounts": _account,
    "incidents": _incident,
    "invoices": _invoice,
    "tickets": _ticket,
}
