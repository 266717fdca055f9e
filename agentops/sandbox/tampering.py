"""The fault modes that change what happens, not whether an answer arrives."""

from agentops.sandbox import fields, moments, refusals, world
from agentops.sandbox.faults import Fault
from agentops.sandbox.transaction import Transaction
from agentops.sandbox.wire import Answer, Doc, Refusal


def before(*, tx: Transaction, fault: Fault) -> None:
    """Bend the call before its handler sees it. Raises Refusal when there is nothing to bend it to."""
    if fault.mode == "wrong_amount":
        tx.call.params = _other_amount(params=tx.call.params, fault=fault)
    elif fault.mode == "wrong_account" and "ticket" in tx.call.ids:
        tx.call.ids = {**tx.call.ids, "ticket": _other_ticket(tx=tx, target=fault.params["target"])}
    elif fault.mode == "wrong_account":
        tx.call.params = {**tx.call.params, "invoice": _other_invoice(tx=tx, target=fault.params["target"])}
    elif fault.mode == "precondition":
        touch(tx=tx, ticket_id=tx.call.ids["ticket"])


def after(*, tx: Transaction, fault: Fault, answer: Answer) -> None:
    """Plan what billing will do later by itself."""
    if fault.mode == "accepted_then_failed_event":
        tx.db.execute(
            "INSERT INTO jobs (due_at, kind, target) VALUES (?, 'void_credit_note', ?)",
            (moments.now() + fault.params["seconds"], answer.body["id"]),
        )
    elif fault.mode == "accepted_outcome_later":
        note = tx.find(kind="credit_note", id=str(answer.body["id"]))
        assert note is not None
        note["status"] = answer.body["status"] = "pending"
        tx.replace(kind="credit_note", doc=note)
        told = "" if fault.params["told"] else "_untold"
        kind = f"{'issue' if fault.params['stands'] else 'void'}_credit_note{told}"
        tx.db.execute(
            "INSERT INTO jobs (due_at, kind, target) VALUES (?, ?, ?)",
            (moments.now() + fault.params["seconds"], kind, note["id"]),
        )


def touch(*, tx: Transaction, ticket_id: str) -> Doc:
    """Somebody else edits the ticket: its version moves on. Raises Refusal (404) when there is no such ticket."""
    ticket = tx.find(kind="ticket", id=ticket_id)
    if ticket is None:
        raise refusals.missing(kind="ticket", id=ticket_id)
    ticket["version"] += 1
    ticket["updated_at"] = moments.iso(at=moments.now())
    tx.replace(kind="ticket", doc=ticket)
    return ticket


EDITED = tuple(world.FIT)
_FIXED = ("id", "object", "version")
_MAY_BE_NULL = ("ended_at",)


def edit(*, tx: Transaction, kind: str, id: str, changes: Doc) -> Doc:
    """Somebody changes what stands in one of the help desk's records; its version moves on where it has one.

    Raises Refusal (404) when there is no such record, (400) naming a field that it does not have, of another type, or
    that a world could not be loaded with.
    """
    doc = tx.find(kind=kind, id=id)
    if doc is None:
        raise refusals.missing(kind=kind, id=id)
    for name, value in changes.items():
        if name not in doc or name in _FIXED:
            can = ", ".join(sorted(set(doc) - set(_FIXED)))
            raise fields.refuse(param=f"set.{name}", message=f"A {kind} has no {name} to be set; it has {can}.")
        nothing = None in (doc[name], value) and name in _MAY_BE_NULL
        if not nothing and type(doc[name]) is not type(value):
            message = f"{name} of {kind} {id} is {doc[name]!r:.80}: give a value of that type."
            raise fields.refuse(param=f"set.{name}", message=message)
    doc.update(changes)
    try:
        world.FIT[kind](tx, doc)
    except Refusal as refusal:
        refusal.param = f"set.{refusal.param}"
        raise
    if isinstance(doc.get("version"), int):
        doc["version"] += 1
    tx.replace(kind=kind, doc=doc)
    return doc


def _other_amount(*, params: Doc, fault: Fault) -> Doc:
    """The parameters of a credit note with another amount; what was to be paid out moves with it."""
    asked = params.get("amount")
    if not isinstance(asked, str) or not asked.isdecimal():
        raise refusals.server_error(status=500)
    chosen = fault.params["amount_minor"]
    amount = int(asked) + fault.params["delta_minor"] if chosen is None else chosen
    bent = {**params, "amount": str(amount)}
    for name in ("credit_amount", "refund_amount", "out_of_band_amount"):
        if str(params.get(name, "")).isdecimal():
            bent[name] = str(int(params[name]) + amount - int(asked))
            break
    return bent


def _other_invoice(*, tx: Transaction, target: str | None) -> str:
    if target:
        for match in ({"id": target}, {"number": target}):
            found = tx.where(kind="invoice", match=match)
            if found:
                return str(found[0]["id"])
        raise _nowhere(what=f"an invoice {target!r:.80}")
    asked = tx.find(kind="invoice", id=str(tx.call.params.get("invoice", ""))) or {}
    for invoice in tx.where(kind="invoice", match={"status": "open"}):
        if invoice["customer"] != asked.get("customer") and invoice["currency"] == asked.get("currency"):
            return str(invoice["id"])
    raise _nowhere(what="an open invoice of another customer in the same currency")


def _other_ticket(*, tx: Transaction, target: str | None) -> str:
    asked = tx.find(kind="ticket", id=tx.call.ids["ticket"]) or {}
    for ticket in tx.where(kind="ticket", match={"id": target} if target else {}):
        if target or ticket["account"] != asked.get("account"):
            return str(ticket["id"])
    raise _nowhere(what="a ticket of another account")


def _nowhere(*, what: str) -> Refusal:
    return Refusal(status=500, code="api_error", message=f"The fault wrong_account needs {what}; the world has none.")
