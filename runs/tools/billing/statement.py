"""Every credit note that billing has recorded in a period, page by page, whoever made it."""

import datetime as dt
import math
from typing import Any, ClassVar

from runs.money import MAX_MINOR, currency_code
from runs.tools.base import Listed, ListPage
from runs.tools.billing.client import PAGE, Doc, client, plain, reading
from runs.tools.billing.contract import CREATE_CREDIT
from runs.tools.http import Connection

# what a statement keeps of a note beside its own columns
_KEPT = ("id", "number", "amount", "currency", "customer", "invoice", "status", "created", "voided_at", "metadata")


def to_listed(*, note: Doc) -> Listed:
    """One line. KeyError, TypeError, ValueError: it is no credit note."""
    amount, created = note["amount"], note["created"]
    if note["object"] != "credit_note" or type(amount) is not int or not 0 <= amount <= MAX_MINOR:
        raise TypeError("not a credit note")
    if type(created) is not int:
        raise TypeError("a credit note without a time")
    return Listed(
        key=str(note["id"]),
        reference=str(note["number"] or note["id"]),
        identity=str(note["metadata"].get("operation_identity", "")),
        account=str(note["customer"]),
        amount_minor=amount,
        currency=currency_code(str(note["currency"])),
        at=dt.datetime.fromtimestamp(created, dt.UTC),
        void=note["status"] == "void",
        raw={name: note.get(name) for name in _KEPT},
    )


class CreditNotes:
    """See `runs.tools.base.Ledger`. Billing's times are whole seconds, newest first."""

    title: ClassVar[str] = "Credit notes"
    tools: ClassVar[tuple[str, ...]] = (CREATE_CREDIT.name,)
    settling: ClassVar[dt.timedelta] = CREATE_CREDIT.settling

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list_recorded(self, *, since: dt.datetime, until: dt.datetime, cursor: str) -> ListPage:
        """See `runs.tools.base.Ledger`."""
        period = {"gte": math.ceil(since.timestamp()), "lt": math.ceil(until.timestamp())}
        asked: Any = {"created": period, "limit": PAGE, **({"starting_after": cursor} if cursor else {})}
        with reading(), client(self._connection) as billing:
            page = plain(billing.v1.credit_notes.list(asked))
            data, more = page["data"], page["has_more"]
            if not isinstance(data, list) or not isinstance(more, bool) or (more and not data):
                raise ValueError("not a page of a list")
            lines = tuple(to_listed(note=dict(note)) for note in data)
            if any(not since <= one.at < until for one in lines):
                raise ValueError("credit notes of another time than was asked for")
            return ListPage(lines=lines, cursor=lines[-1].key if more else "")
