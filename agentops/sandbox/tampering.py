"""The fault modes that change what happens, not whether an answer arrives."""

from agentops.sandbox import moments, refusals
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
