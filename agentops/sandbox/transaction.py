"""What a handler may do: read and write documents, record effects, send events; all in one database transaction."""

import json
import operator
import sqlite3
from collections.abc import Callable
from typing import Any

from agentops.sandbox import moments
from agentops.sandbox.wire import Call, Doc, Refusal

EventSink = Callable[["Transaction", str, Doc, Doc | None], None]


def visible(*, doc: Doc) -> Doc:
    """A document as callers see it: names with a leading underscore are the sandbox's own."""
    return {name: value for name, value in doc.items() if not name.startswith("_")}


class Transaction:
    """One call's access to the store. ``as_of`` (epoch seconds) makes reads answer as they would have at that time.

    ``events_wait``: the events of this call are delivered by the call itself, not by the background thread.
    """

    def __init__(
        self,
        *,
        db: sqlite3.Connection,
        call: Call,
        request_seq: int | None,
        event_sink: EventSink,
        as_of: float | None = None,
        events_wait: bool = False,
    ) -> None:
        self.db = db
        self.call = call
        self.request_seq = request_seq
        self.effects = 0
        self.events_wait = events_wait
        self._event_sink = event_sink
        self._as_of = as_of

    def find(self, *, kind: str, id: str) -> Doc | None:
        """One document, or None."""
        if self._as_of is None:
            row = self.db.execute("SELECT doc FROM objects WHERE kind = ? AND id = ?", (kind, id)).fetchone()
        else:
            row = self.db.execute(
                "SELECT doc FROM object_versions WHERE kind = ? AND id = ? AND at <= ? ORDER BY seq DESC LIMIT 1",
                (kind, id, self._as_of),
            ).fetchone()
        return json.loads(row["doc"]) if row else None

    def insert(self, *, kind: str, doc: Doc) -> None:
        """Store a new document under its own id. Raises sqlite3.IntegrityError if the id exists."""
        text = json.dumps(doc)
        cursor = self.db.execute("INSERT INTO objects (kind, id, doc) VALUES (?, ?, ?)", (kind, doc["id"], text))
        self._remember(object_seq=cursor.lastrowid, kind=kind, id=doc["id"], text=text)

    def replace(self, *, kind: str, doc: Doc) -> None:
        """Store a new state of a document that exists."""
        text = json.dumps(doc)
        row = self.db.execute(
            "UPDATE objects SET doc = ? WHERE kind = ? AND id = ? RETURNING seq", (text, kind, doc["id"])
        ).fetchone()
        self._remember(object_seq=row["seq"], kind=kind, id=doc["id"], text=text)

    def _remember(self, *, object_seq: int | None, kind: str, id: str, text: str) -> None:
        self.db.execute(
            "INSERT INTO object_versions (object_seq, kind, id, at, doc) VALUES (?, ?, ?, ?, ?)",
            (object_seq, kind, id, moments.now(), text),
        )

    def where(self, *, kind: str, match: dict[str, Any]) -> list[Doc]:
        """All documents whose top-level fields equal ``match``, newest first."""
        return [json.loads(row["doc"]) for row in self._rows(kind=kind, match=match)]

    def page(
        self,
        *,
        kind: str,
        match: dict[str, Any],
        limit: int,
        after: str | None,
        before: str | None = None,
        created: dict[str, int] | None = None,
    ) -> tuple[list[Doc], bool]:
        """One page, newest first, and whether more follow in the direction of reading.

        ``after`` and ``before`` are ids of documents of this kind; raises Refusal when there is none with that id.
        ``created`` bounds the documents' own times: gt, gte, lt, lte or eq, in seconds.
        """
        rows = self._rows(kind=kind, match=match)
        for name, seconds in (created or {}).items():
            holds = getattr(operator, {"gte": "ge", "lte": "le"}.get(name, name))
            rows = [row for row in rows if holds(json.loads(row["doc"])["created"], seconds)]
        seqs = {
            name: self._seq(kind=kind, id=value, name=name)
            for name, value in (("starting_after", after), ("ending_before", before))
            if value
        }
        if after:
            rows = [row for row in rows if row["seq"] < seqs["starting_after"]]
        if before:
            rows = [row for row in rows if row["seq"] > seqs["ending_before"]]
            chosen = rows[-limit:]
        else:
            chosen = rows[:limit]
        return [json.loads(row["doc"]) for row in chosen], len(rows) > limit

    def _seq(self, *, kind: str, id: str, name: str) -> int:
        row = self.db.execute("SELECT seq FROM objects WHERE kind = ? AND id = ?", (kind, id)).fetchone()
        if row is None:
            message = f"No such {kind}: '{id[:80]}'; {name} takes the id of an object from the list."
            raise Refusal(status=400, code="resource_missing", param=name, message=message)
        return int(row["seq"])

    def _rows(self, *, kind: str, match: dict[str, Any]) -> list[sqlite3.Row]:
        # Field names come from handlers, never from callers, so they may be part of the statement (and use an index).
        conditions = "".join(f" AND json_extract(doc, '$.{name}') = ?" for name in match)
        params: list[Any] = [kind]
        if self._as_of is None:
            source = "objects WHERE kind = ?"
        else:
            latest = (
                "SELECT object_seq AS seq, doc, MAX(seq) FROM object_versions"
                " WHERE kind = ? AND at <= ? GROUP BY object_seq"
            )
            source = f"({latest}) WHERE 1 = 1"
            params.append(self._as_of)
        statement = f"SELECT seq, doc FROM {source}{conditions} ORDER BY seq DESC"
        return self.db.execute(statement, [*params, *match.values()]).fetchall()

    def next_number(self, *, name: str) -> int:
        """The next value of a named counter, from 1."""
        row = self.db.execute(
            "INSERT INTO settings (name, value) VALUES (?, '1') "
            "ON CONFLICT (name) DO UPDATE SET value = CAST(value AS INTEGER) + 1 RETURNING value",
            (f"counter:{name}",),
        ).fetchone()
        return int(row["value"])

    def effect(
        self,
        *,
        objects: Doc,
        amount_minor: int | None = None,
        currency: str | None = None,
        payload: Doc | None = None,
        operation: str | None = None,
        identity: str | None = None,
    ) -> None:
        """Append one row to the ledger: something in the world has changed.

        ``operation`` and ``identity`` default to the call's own. Names with a null value are left out of ``objects``.
        """
        name = operation or self.call.operation
        self.effects += 1
        self.db.execute(
            "INSERT INTO ledger (at, system, operation, objects, amount_minor, currency, identity, wire_key, payload)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                moments.now(),
                name.split(".", 1)[0],
                name,
                json.dumps({key: value for key, value in objects.items() if value is not None}),
                amount_minor,
                currency,
                identity or self.call.identity,
                self.call.wire_key,
                json.dumps(self.call.params if payload is None else payload),
            ),
        )

    def emit(self, *, type: str, doc: Doc, previous: Doc | None = None) -> None:
        """Make an event about ``doc`` and queue its delivery; both become visible when the transaction commits."""
        self._event_sink(self, type, doc, previous)
