"""The literal table of billing's operations."""

import sqlite3
from functools import partial

from agentops.sandbox import execute
from agentops.sandbox.billing import common, credit_notes, customers, invoice_calls, lines
from agentops.sandbox.courier import Job
from agentops.sandbox.refusals import missing
from agentops.sandbox.transaction import Transaction
from agentops.sandbox.wire import Answer, Call, Handler, Operation


def _event(tx: Transaction, call: Call) -> Answer:
    """GET /v1/events/{event}"""
    event = tx.find(kind="event", id=call.ids["event"])
    if event is None:
        raise missing(kind="event", id=call.ids["event"])
    return Answer(body=event)


def _events(tx: Transaction, call: Call) -> Answer:
    """GET /v1/events, by ``type`` and ``created``"""
    return common.listing(tx=tx, kind="event", filters=("type",), by_time=True)


def _operation(name: str, method: str, path: str, handler: Handler, *traits: str) -> Operation:
    kind = {"any", "write"} if method == "POST" else {"any", "read"}
    return Operation(
        name=f"billing.{name}", method=method, path=f"/v1/{path}", handler=handler, traits=frozenset({*kind, *traits})
    )


# A fixed path comes before the path with an id that would also match it.
OPERATIONS = (
    _operation("customers.create", "POST", "customers", customers.create),
    _operation("customers.list", "GET", "customers", customers.listed, "list"),
    _operation("customers.retrieve", "GET", "customers/{customer}", customers.retrieve),
    _operation("customers.update", "POST", "customers/{customer}", customers.update),
    _operation("invoice_items.create", "POST", "invoiceitems", lines.create_item),
    _operation("invoice_items.list", "GET", "invoiceitems", lines.list_items, "list"),
    _operation("invoices.create", "POST", "invoices", invoice_calls.create),
    _operation("invoices.list", "GET", "invoices", invoice_calls.listed, "list"),
    _operation("invoices.search", "GET", "invoices/search", invoice_calls.search, "list"),
    _operation("invoices.retrieve", "GET", "invoices/{invoice}", invoice_calls.retrieve),
    _operation("invoices.update", "POST", "invoices/{invoice}", invoice_calls.update),
    _operation("invoices.finalize", "POST", "invoices/{invoice}/finalize", invoice_calls.finalize),
    _operation("invoices.void", "POST", "invoices/{invoice}/void", invoice_calls.void),
    _operation("invoices.pay", "POST", "invoices/{invoice}/pay", invoice_calls.pay),
    _operation("invoices.add_lines", "POST", "invoices/{invoice}/add_lines", lines.add),
    _operation("invoices.update_lines", "POST", "invoices/{invoice}/update_lines", lines.update_many),
    _operation("invoices.remove_lines", "POST", "invoices/{invoice}/remove_lines", lines.remove),
    _operation("invoices.list_lines", "GET", "invoices/{invoice}/lines", lines.listed, "list"),
    _operation("invoices.update_line", "POST", "invoices/{invoice}/lines/{line}", lines.update_one),
    _operation("credit_notes.create", "POST", "credit_notes", credit_notes.create, "amount", "account", "credit"),
    _operation("credit_notes.list", "GET", "credit_notes", credit_notes.listed, "list"),
    _operation("credit_notes.retrieve", "GET", "credit_notes/{credit_note}", credit_notes.retrieve),
    _operation("credit_notes.update", "POST", "credit_notes/{credit_note}", credit_notes.update),
    _operation("credit_notes.void", "POST", "credit_notes/{credit_note}/void", credit_notes.void),
    _operation("events.list", "GET", "events", _events, "list"),
    _operation("events.retrieve", "GET", "events/{event}", _event),
)

BY_NAME = {operation.name: operation for operation in OPERATIONS}


def _void_credit_note(db: sqlite3.Connection, target: str, *, told: bool = True) -> None:
    tx = execute.synthetic(db=db, operation=BY_NAME["billing.credit_notes.void"])
    credit_notes.void_by_billing(tx, target, told=told)


def _issue_credit_note(db: sqlite3.Connection, target: str, *, told: bool = True) -> None:
    tx = execute.synthetic(db=db, operation=BY_NAME["billing.credit_notes.update"])
    credit_notes.issue_by_billing(tx, target, told=told)


# What billing does by itself, later (see courier.py).
JOBS: dict[str, Job] = {
    "void_credit_note": _void_credit_note,
    "void_credit_note_untold": partial(_void_credit_note, told=False),
    "issue_credit_note": _issue_credit_note,
    "issue_credit_note_untold": partial(_issue_credit_note, told=False),
}
