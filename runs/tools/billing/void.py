"""Voids a credit note through the official library, and finds out whether it was ours.

Voiding takes no metadata, so the credit note itself does not say who voided it. Billing's own event does: it keeps the
idempotency key of the request that caused it, which is the operation's identity and its epoch.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import stripe

from runs.money import Money
from runs.tools.base import Ambiguous, Contract, Lookup, Reading, Record, Told
from runs.tools.billing.client import Doc, client, pages, plain, reading, reference_of, sending
from runs.tools.billing.contract import VOID_CREDIT
from runs.tools.billing.invoices import chain_of, moment
from runs.tools.http import Connection

SOURCE = "billing"
AROUND = 120  # seconds by which an event's time may differ from that of what it tells
NOBODY = ""  # no event says who voided it


def to_record(*, note: Doc, effect: dict[str, str], identity: str, voided_by: str) -> Record:
    """What billing has recorded, compared with what was asked for. KeyError, TypeError: it is no credit note."""
    if note["object"] != "credit_note":
        raise TypeError("not a credit note")
    found = {
        "credit_note_id": (effect["credit_note_id"], str(note["id"])),
        "amount_minor": (effect["amount_minor"], str(note["amount"])),
        "currency": (effect["currency"], str(note["currency"]).upper()),
        "customer": (effect["customer"], str(note["customer"])),
        "identity": (identity, voided_by),
        "status": ("void", str(note["status"])),
    }
    return Record(
        reference=f"void of {reference_of(note=note)}",
        identity=voided_by,
        at=moment(note["voided_at"]),
        mismatch={name: pair for name, pair in found.items() if pair[0] != pair[1]},
        raw=note,
    )


def voided_by(billing: stripe.StripeClient, *, note: Doc) -> str:
    """The identity of the operation that voided the note; NOBODY while no event tells, and the bare key of whoever did
    it otherwise than by an operation of ours."""
    at = int(note["voided_at"])
    period = {"gte": at - AROUND, "lte": at + AROUND}
    events, _ = pages(billing.v1.events.list, {"type": "credit_note.voided", "created": period})
    for event in events:
        if event["data"]["object"]["id"] == note["id"]:
            key = str((event["request"] or {}).get("idempotency_key") or "nobody here")
            return key.rpartition(":")[0] or key
    return NOBODY


class VoidCredit:
    """`billing.void_credit`. One send is one request. See `runs.tools.base.Reverser`."""

    contract: ClassVar[Contract] = VOID_CREDIT

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def send(self, *, effect: dict[str, str], identity: str, wire_key: str) -> Record:
        """See `runs.tools.base.Tool`."""
        with sending(), client(self._connection) as billing:
            voiding = billing.v1.credit_notes.void_credit_note
            note = plain(voiding(effect["credit_note_id"], {}, {"idempotency_key": wire_key}))
        try:
            return to_record(note=note, effect=effect, identity=identity, voided_by=identity)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise Ambiguous("Billing's answer is not a credit note.", raw={"answer": str(note)[:4000]}) from error

    def look_up(self, *, effect: dict[str, str], identity: str) -> Lookup:
        """The credit note, and who voided it. While it stands nothing has happened; nor has it, under this identity,
        when somebody else has voided it."""
        with reading(), client(self._connection) as billing:
            note = plain(billing.v1.credit_notes.retrieve(effect["credit_note_id"]))
            if note["status"] != "void":
                return Lookup(records=(), pages=1, raw={"credit_note": note["id"], "status": note["status"]})
            by = voided_by(billing, note=note)
            if by not in (identity, NOBODY):
                return Lookup(records=(), pages=2, raw={"credit_note": note["id"], "status": "void", "voided_by": by})
            return Lookup(records=(to_record(note=note, effect=effect, identity=identity, voided_by=by),), pages=2)

    def read(self, *, effect: dict[str, str]) -> list[Reading]:
        """The credit note with the state of its invoice. See `runs.tools.base.Reverser`."""
        named = effect["credit_note"]
        with reading(f"Credit note {named}"), client(self._connection) as billing:
            note = plain(billing.v1.credit_notes.retrieve(effect["credit_note_id"]))
            newest = chain_of(billing, invoice_id=str(note["invoice"]))[-1]
            invoice = plain(billing.v1.invoices.retrieve(newest))
            by = voided_by(billing, note=note) if note["status"] == "void" else ""
            return [_reading(note=note, invoice=invoice, effect=effect, by=by)]

    def objection(self, *, effect: dict[str, str], readings: Mapping[str, Any], identity: str) -> str:
        """See `runs.tools.base.Reverser`."""
        if "credit_note" not in readings:
            return f"credit note {effect['credit_note']} can no longer be read"
        note = readings["credit_note"].content
        for name in ("amount_minor", "currency", "customer"):
            if note[name] != effect[name]:
                return f"credit note {effect['credit_note']} is no longer the one that was to be voided: {name} differs"
        if note["status"] == "void":
            return "" if note["voided_by"] == identity else f"{effect['credit_note']} is void at billing already"
        if note["invoice_status"] != "open":
            standing = note["invoice_status"]
            return f"invoice {effect['invoice']} is {standing}, and billing voids a credit note of an open invoice only"
        return ""

    def told(self, *, effect: dict[str, str]) -> Told:
        """See `runs.tools.base.Reverser`."""
        amount = Money(int(effect["amount_minor"]), effect["currency"])
        named, whom, invoice = effect["credit_note"], effect["account_name"], effect["invoice"]
        rows = (
            ("amount", "Amount taken back", str(amount)),
            ("account", "Account", f"{whom} ({effect['account']})"),
            ("customer", "Billed as", effect["customer"]),
            ("credit_note", "Credit note", named),
            ("credit_note_id", "Billing’s own number", effect["credit_note_id"]),
            ("invoice", "Invoice", invoice),
            ("invoice_id", "Billing’s number of the invoice", effect["invoice_id"]),
            ("given_for", "Given for", f"incident {effect['incident']}, ticket {effect['ticket']}"),
            ("reverses", "Made by the operation", effect["reverses"]),
        )
        return Told(
            ask=f"Void {amount.display()} credit {named} of {whom}",
            lead=f"Billing voids credit note {named}. {whom} then owes {amount.display()} more on invoice {invoice}, as"
            " before the credit. A voided credit note stays void.",
            about=f"credit {named}",
            customer=whom,
            rows=rows,
        )


def _reading(*, note: Doc, invoice: Doc, effect: dict[str, str], by: str) -> Reading:
    named = effect["credit_note"]
    content: dict[str, Any] = {
        "id": str(note["id"]),
        "number": reference_of(note=note),
        "amount_minor": str(int(note["amount"])),
        "currency": str(note["currency"]).upper(),
        "customer": str(note["customer"]),
        "status": str(note["status"]),
        "voided_by": by,
        "account_name": effect["account_name"],
        "invoice": str(note["invoice"]),
        "invoice_status": str(invoice["status"]),
    }
    amount = Money(int(content["amount_minor"]), content["currency"])
    bound = {name: content[name] for name in ("id", "amount_minor", "currency", "customer")}
    return Reading(
        kind="credit_note",
        source=SOURCE,
        locator=named,
        version="1",  # a credit note is never edited; what may change of it is looked at, not bound
        title=f"Credit note {named}",
        summary=f"{amount}, {content['status']}; its invoice is {content['invoice_status']}",
        authoritative=True,
        content=content,
        bound=bound,
    )
