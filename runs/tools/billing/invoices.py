"""Invoices as billing keeps them: finalised ones are never edited, a correction is a new revision of the chain."""

import datetime as dt
from dataclasses import dataclass

import stripe

from runs.canonical import digest
from runs.tools.billing.client import Doc, pages, plain

MAX_CHAIN = 100


@dataclass(frozen=True, slots=True)
class Chain:
    """All finalised states of one invoice, oldest first; people know it by the first one's number."""

    revisions: tuple[Doc, ...]

    @property
    def number(self) -> str:
        return str(self.revisions[0]["number"])

    @property
    def newest(self) -> Doc:
        return self.revisions[-1]

    @property
    def version(self) -> str:
        return str(len(self.revisions))

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(str(invoice["id"]) for invoice in self.revisions)


def moment(seconds: object) -> dt.datetime | None:
    """Billing's times are whole seconds since 1970."""
    return dt.datetime.fromtimestamp(seconds, dt.UTC) if type(seconds) is int else None


def replaced(invoice: Doc) -> str:
    """The id of the invoice that this one is a revision of, empty when it is the first."""
    origin = invoice.get("from_invoice")
    return str(origin["invoice"]) if isinstance(origin, dict) and origin.get("action") == "revision" else ""


def chains(invoices: list[Doc]) -> list[Chain]:
    """Sort a customer's invoices into chains; drafts are left out, for they may still become anything."""
    final = {str(item["id"]): item for item in invoices if item["status"] != "draft"}
    successors = {replaced(item): item for item in final.values() if replaced(item)}
    found = []
    for item in final.values():
        if replaced(item) in final:
            continue
        revisions = [item]
        while (following := successors.get(str(revisions[-1]["id"]))) is not None and len(revisions) < MAX_CHAIN:
            revisions.append(following)
        found.append(Chain(tuple(revisions)))
    return found


def chain_of(client: stripe.StripeClient, *, invoice_id: str) -> tuple[str, ...]:
    """The ids of all states of the invoice, found by walking from state to state."""
    here = plain(client.v1.invoices.retrieve(invoice_id))
    newest = here.get("latest_revision")
    ids = [str(newest)] if newest else [str(here["id"])]
    for _ in range(MAX_CHAIN):
        item = here if ids[-1] == here["id"] else plain(client.v1.invoices.retrieve(ids[-1]))
        earlier = replaced(item)
        if not earlier:
            return tuple(reversed(ids))
        ids.append(earlier)
    raise ValueError("a chain of revisions that does not end")


def all_lines(client: stripe.StripeClient, *, invoice: Doc) -> list[Doc]:
    """Every line; billing embeds only the first few."""
    embedded = invoice["lines"]
    if not embedded["has_more"]:
        return list(embedded["data"])
    found, _ = pages(lambda params: client.v1.invoices.line_items.list(str(invoice["id"]), params), {})
    return found


def content_digest(*, invoice: Doc, lines: list[Doc]) -> str:
    """Of what an invoice says: customer, currency, lines, total, void. What credit notes move is left out."""
    return digest(
        {
            "customer": str(invoice["customer"]),
            "currency": str(invoice["currency"]),
            "total": str(invoice["total"]),
            "void": invoice["status"] == "void",
            "lines": [
                {
                    "amount": str(line["amount"]),
                    "description": str(line.get("description") or ""),
                    "quantity": str(line.get("quantity") or ""),
                }
                for line in lines
            ],
        }
    )
