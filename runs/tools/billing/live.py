"""Creates a credit note through the official library, and finds it again by the identity in its metadata."""

from typing import Any, ClassVar

from runs.tools.base import Ambiguous, Contract, Lookup, Record
from runs.tools.billing.client import Doc, client, pages, plain, reading, reference_of, sending
from runs.tools.billing.contract import CREATE_CREDIT
from runs.tools.billing.invoices import chain_of, moment
from runs.tools.http import Connection

# billing knows four reasons; ours is in the metadata beside it
_REASONS = {"sla_breach": "product_unsatisfactory"}
_NOTED = ("account", "invoice", "invoice_version", "reason", "ticket", "incident")


def parameters(*, effect: dict[str, str], identity: str) -> dict[str, Any]:
    """The call's parameters: a function of effect and identity alone, so that a repeat is the same to the byte."""
    asked: dict[str, Any] = {
        "invoice": effect["invoice_id"],
        "amount": int(effect["amount_minor"]),
        "memo": effect["memo"],
        "reason": _REASONS[effect["reason"]],
        "metadata": {"operation_identity": identity, **{name: effect[name] for name in _NOTED}},
    }
    if effect["balance_minor"] != "0":
        asked["credit_amount"] = int(effect["balance_minor"])
    return asked


def to_record(*, note: Doc, effect: dict[str, str], identity: str, invoice_ids: tuple[str, ...]) -> Record:
    """What billing has recorded, compared with what was asked for. KeyError, TypeError: it is no credit note."""
    if note["object"] != "credit_note":
        raise TypeError("not a credit note")
    noted = note["metadata"]
    found = {
        "amount_minor": (effect["amount_minor"], str(note["amount"])),
        "currency": (effect["currency"], str(note["currency"]).upper()),
        "customer": (effect["customer"], str(note["customer"])),
        "identity": (identity, str(noted.get("operation_identity", ""))),
        "status": ("issued", str(note["status"])),
    }
    pending = note["status"] == "pending"
    if pending:  # neither as sent nor otherwise: it is still to come
        del found["status"]
    if note["invoice"] not in invoice_ids:
        found["invoice"] = (effect["invoice_id"], str(note["invoice"]))
    return Record(
        reference=reference_of(note=note),
        also=(str(note["id"]),),
        identity=str(noted.get("operation_identity", "")),
        at=moment(note["created"]),
        void=note["status"] == "void",
        pending=pending,
        mismatch={name: pair for name, pair in found.items() if pair[0] != pair[1]},
        raw=note,
    )


class CreateCredit:
    """`billing.create_credit`. One send is one request."""

    contract: ClassVar[Contract] = CREATE_CREDIT

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def send(self, *, effect: dict[str, str], identity: str, wire_key: str) -> Record:
        """See `runs.tools.base.Tool`."""
        asked: Any = parameters(effect=effect, identity=identity)
        with sending(), client(self._connection) as billing:
            note = plain(billing.v1.credit_notes.create(asked, {"idempotency_key": wire_key}))
        try:
            return to_record(note=note, effect=effect, identity=identity, invoice_ids=(effect["invoice_id"],))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise Ambiguous("Billing's answer is not a credit note.", raw={"answer": str(note)[:4000]}) from error

    def look_up(self, *, effect: dict[str, str], identity: str) -> Lookup:
        """All credit notes of all revisions of the invoice, on all pages: billing cannot be asked by metadata."""
        records: list[Record] = []
        read = count = 0
        with reading(), client(self._connection) as billing:
            ids = chain_of(billing, invoice_id=effect["invoice_id"])
            for invoice_id in ids:
                notes, turned = pages(billing.v1.credit_notes.list, {"invoice": invoice_id})
                read, count = read + turned, count + len(notes)
                records += [
                    to_record(note=note, effect=effect, identity=identity, invoice_ids=ids)
                    for note in notes
                    if note["metadata"].get("operation_identity") == identity
                ]
        return Lookup(records=tuple(records), pages=read, raw={"invoices": list(ids), "credit_notes_read": count})
