"""What is read from billing: a customer's invoice for a time, and the credit notes already on it."""

import datetime as dt
from typing import Any

from runs.money import Money
from runs.tools.base import NoSuchThing, Reading
from runs.tools.billing.client import Doc, client, pages, reading, reference_of
from runs.tools.billing.invoices import Chain, all_lines, chains, content_digest, moment
from runs.tools.http import Connection

SOURCE = "billing"


def amount_text(*, minor: str, currency: str) -> str:
    """For people, with the code; an invoice's total may be below zero, which no amount handled here is."""
    number = int(minor)
    return str(Money(number, currency)) if number >= 0 else f"−{Money(-number, currency)}"


def read_invoice(*, connection: Connection, customer: str, at: dt.datetime) -> Reading:
    """The invoice of billing's customer whose period contains `at`, as it is now.

    The locator is the number people know, the version the place in the chain of revisions. Content, all text but
    `revisions` (ids, oldest first): number, id, version, customer, currency, total_minor, paid_minor, remaining_minor,
    credited_minor, status, due, period_start, period_end, corrected_at, corrected_reason, digest. Raises Unreachable,
    and NoSuchThing when there is none or more than one.
    """
    with reading(f"Billing's customer {customer}"), client(connection) as billing:
        found, _ = pages(billing.v1.invoices.list, {"customer": customer})
        chain = _the_one(chains(found), customer=customer, at=at)
        return _reading(chain=chain, lines=all_lines(billing, invoice=chain.newest))


def _the_one(found: list[Chain], *, customer: str, at: dt.datetime) -> Chain:
    covering = [chain for chain in found if _covers(chain.newest, at)]
    valid = [chain for chain in covering if chain.newest["status"] != "void"] or covering[-1:]
    if len(valid) == 1:
        return valid[0]
    if not valid:
        raise NoSuchThing(f"An invoice of {customer} for {at:%Y-%m-%d}")
    numbers = " and ".join(sorted(chain.number for chain in valid)[:5])
    raise NoSuchThing(f"A single invoice of {customer} for {at:%Y-%m-%d} ({numbers} all cover it)")


def _covers(invoice: Doc, at: dt.datetime) -> bool:
    start, end = moment(invoice["period_start"]), moment(invoice["period_end"])
    return start is not None and end is not None and start <= at < end


def _date(seconds: object, shape: str) -> str:
    at = moment(seconds)
    return f"{at:{shape}}" if at else ""


def _reading(*, chain: Chain, lines: list[Doc]) -> Reading:
    invoice = chain.newest
    corrected = len(chain.revisions) > 1
    credited = int(invoice["pre_payment_credit_notes_amount"]) + int(invoice["post_payment_credit_notes_amount"])
    stamp = "%Y-%m-%dT%H:%M:%SZ"
    content: dict[str, Any] = {
        "number": chain.number,
        "id": str(invoice["id"]),
        "version": chain.version,
        "customer": str(invoice["customer"]),
        "currency": str(invoice["currency"]).upper(),
        "total_minor": str(int(invoice["total"])),
        "paid_minor": str(int(invoice["amount_paid"])),
        "remaining_minor": str(int(invoice["amount_remaining"])),
        "credited_minor": str(credited),
        "status": str(invoice["status"]),
        "due": _date(invoice["due_date"], "%Y-%m-%d"),
        "period_start": _date(invoice["period_start"], stamp),
        "period_end": _date(invoice["period_end"], stamp),
        "corrected_at": _date(invoice["status_transitions"]["finalized_at"], stamp) if corrected else "",
        "corrected_reason": str(invoice["description"] or "") if corrected else "",
        "revisions": list(chain.ids),
        "digest": content_digest(invoice=invoice, lines=lines),
    }
    bound = {name: content[name] for name in ("id", "customer", "currency", "total_minor", "paid_minor", "digest")}
    return Reading(
        kind="invoice",
        source=SOURCE,
        locator=chain.number,
        version=chain.version,
        title=f"Invoice {chain.number}",
        summary=_summary(content),
        authoritative=True,
        content=content,
        bound=bound,
    )


def _summary(content: dict[str, Any]) -> str:
    parts = [
        f"Total {amount_text(minor=content['total_minor'], currency=content['currency'])}",
        content["status"],
        *([f"due {content['due']}"] if content["due"] else []),
    ]
    text = ", ".join(parts)
    if content["corrected_at"]:
        why = f" (“{content['corrected_reason'][:200]}”)" if content["corrected_reason"] else ""
        text += f"; corrected {content['corrected_at']}{why}"
    return text


def read_credits(*, connection: Connection, invoice: Reading) -> Reading:
    """All credit notes on the invoice's revisions. `content["credits"]`: reference, amount_minor, currency, status, at,
    identity, ticket, incident, all text. Nothing of it is bound: our own effect shows up here. Raises Unreachable."""
    notes: list[Doc] = []
    with reading(), client(connection) as billing:
        for invoice_id in invoice.content["revisions"]:
            found, _ = pages(billing.v1.credit_notes.list, {"invoice": invoice_id})
            notes += found
        credits = [_credit(note) for note in notes]
    given = [item for item in credits if item["status"] != "void"]
    total = sum(int(item["amount_minor"]) for item in given)
    currency = invoice.content["currency"]
    said = f"{len(given)} in force, {amount_text(minor=str(total), currency=currency)} in all" if given else "None yet"
    return Reading(
        kind="credits",
        source=SOURCE,
        locator=invoice.locator,
        version=str(len(credits)),
        title=f"Credits on {invoice.locator}",
        summary=said,
        authoritative=True,
        content={"credits": credits, "total_minor": str(total), "currency": currency},
        bound={},
    )


def _credit(note: Doc) -> dict[str, str]:
    noted = note["metadata"]
    return {
        "reference": reference_of(note=note),
        "amount_minor": str(int(note["amount"])),
        "currency": str(note["currency"]).upper(),
        "status": str(note["status"]),
        "at": _date(note["created"], "%Y-%m-%dT%H:%M:%SZ"),
        "identity": str(noted.get("operation_identity", "")),
        "ticket": str(noted.get("ticket", "")),
        "incident": str(noted.get("incident", "")),
    }
