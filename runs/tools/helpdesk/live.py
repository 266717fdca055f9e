"""Changes tickets and drafts replies, and finds both again by their identity."""

import datetime as dt
from typing import ClassVar

from runs.tools.base import Ambiguous, Contract, Lookup, Record, Unreachable
from runs.tools.helpdesk.client import Doc, path, read_all, write
from runs.tools.helpdesk.contract import DRAFT_REPLY, UPDATE_TICKET
from runs.tools.http import Connection


def moment(text: object) -> dt.datetime | None:
    """The help desk's times are ISO 8601 with a zone."""
    try:
        at = dt.datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return at if at.tzinfo else None


def differing(pairs: dict[str, tuple[str, object]]) -> dict[str, tuple[str, str]]:
    """Of sent and recorded values those that are not the same."""
    return {name: (sent, str(found)) for name, (sent, found) in pairs.items() if sent != str(found)}


class UpdateTicket:
    """`helpdesk.update_ticket`. One send is one request; the version travels as its precondition."""

    contract: ClassVar[Contract] = UPDATE_TICKET

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def send(self, *, effect: dict[str, str], identity: str, wire_key: str) -> Record:
        """See `runs.tools.base.Tool`."""
        ticket = write(
            self._connection,
            method="PATCH",
            to=path("tickets", effect["ticket"]),
            body={"status": effect["status"], "resolution": effect["resolution"]},
            identity=identity,
            wire_key=wire_key,
            if_match=effect["ticket_version"],
        )
        try:
            wanted = {name: (effect[name], ticket[name]) for name in ("status", "resolution")}
            wanted["ticket"] = (effect["ticket"], ticket["id"])
            reference, at = _reference(str(ticket["id"]), ticket["version"]), moment(ticket["updated_at"])
            return Record(reference=reference, identity=identity, at=at, mismatch=differing(wanted), raw=ticket)
        except (KeyError, ValueError) as error:
            raise Ambiguous("The help desk's answer is not a ticket.", raw={"answer": str(ticket)[:4000]}) from error

    def look_up(self, *, effect: dict[str, str], identity: str) -> Lookup:
        """The ticket's recorded changes under the identity."""
        of = path("tickets", effect["ticket"], "changes")
        found, turned = read_all(self._connection, of=of, params={"identity": identity})
        records = tuple(_change(change, effect=effect) for change in found if change.get("identity") == identity)
        return Lookup(records=records, pages=turned, raw={"changes_read": len(found)})


def _reference(ticket: str, version: object) -> str:
    return f"{ticket} v{version}"


def _change(change: Doc, *, effect: dict[str, str]) -> Record:
    try:
        made = change["changes"]
        # a change lists only what it altered: a field that had the value already is not in it
        wanted = {name: (effect[name], made[name][1]) for name in ("status", "resolution") if name in made}
        wanted["ticket"] = (effect["ticket"], change["ticket"])
        return Record(
            reference=_reference(str(change["ticket"]), change["to_version"]),
            identity=str(change["identity"]),
            at=moment(change["at"]),
            mismatch=differing(wanted),
            raw=change,
        )
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise Unreachable("The help desk's list of changes cannot be read.") from error


class DraftReply:
    """`helpdesk.draft_reply`. One send is one request."""

    contract: ClassVar[Contract] = DRAFT_REPLY
    _fields = ("ticket", "subject", "body")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def send(self, *, effect: dict[str, str], identity: str, wire_key: str) -> Record:
        """See `runs.tools.base.Tool`."""
        draft = write(
            self._connection,
            method="POST",
            to=path("tickets", effect["ticket"], "drafts"),
            body={"subject": effect["subject"], "body": effect["body"]},
            identity=identity,
            wire_key=wire_key,
        )
        try:
            return written(draft, effect=effect, fields=self._fields)
        except (KeyError, ValueError) as error:
            raise Ambiguous("The help desk's answer is not a draft.", raw={"answer": str(draft)[:4000]}) from error

    def look_up(self, *, effect: dict[str, str], identity: str) -> Lookup:
        """The ticket's drafts under the identity."""
        return look_up_written(
            self._connection, listing="drafts", fields=self._fields, effect=effect, identity=identity
        )


def written(doc: Doc, *, effect: dict[str, str], fields: tuple[str, ...]) -> Record:
    """What was written on a ticket, its `fields` compared with the effect's. Raises KeyError on anything else."""
    return Record(
        reference=str(doc["id"]),
        identity=str(doc["identity"] or ""),
        at=moment(doc["created_at"]),
        mismatch=differing({name: (effect[name], doc[name]) for name in fields}),
        raw=doc,
    )


def look_up_written(
    connection: Connection, *, listing: str, fields: tuple[str, ...], effect: dict[str, str], identity: str
) -> Lookup:
    """Everything of that sort on the ticket under the identity, over all pages. Raises Unreachable."""
    of = path("tickets", effect["ticket"], listing)
    found, turned = read_all(connection, of=of, params={"identity": identity})
    try:
        records = tuple(written(doc, effect=effect, fields=fields) for doc in found if doc["identity"] == identity)
    except (KeyError, TypeError, ValueError) as error:
        raise Unreachable(f"The help desk's list of {listing} cannot be read.") from error
    return Lookup(records=records, pages=turned, raw={f"{listing}_read": len(found)})
