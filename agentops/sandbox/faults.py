"""The queue of faults: each call, and each event, uses up the first one that fits it."""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from agentops.sandbox import fields, modes
from agentops.sandbox.wire import Call, Doc, Operation

_MATCHABLE = ("identity", "wire_key", "invoice", "credit_note", "customer", "ticket", "event_type")


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault taken for one call or event."""

    seq: int
    mode: str
    params: Doc


def add(*, db: sqlite3.Connection, spec: Doc, operations: Iterable[Operation]) -> Doc:
    """Queue one fault and return it as listed.

    ``spec``: ``{"mode": "execute_and_timeout", "operation": "billing.credit_notes.create", "match": {"invoice": …},
    "times": 1, "params": {"seconds": 5}}``; ``operation`` is a pattern with ``*`` (default all), ``times`` null means
    until it is removed (default 1). Raises Refusal naming the field, also when no operation fits mode and pattern.
    """
    fields.only(params=spec, allowed=("mode", "operation", "match", "times", "params"))
    name = fields.needed(params=spec, name="mode")
    if name not in modes.MODES:
        raise fields.refuse(param="mode", message=f"Unknown mode {name!r:.60}. Known: {', '.join(modes.MODES)}.")
    mode = modes.MODES[name]
    pattern = fields.text(params=spec, name="operation", longest=200) or "*"
    fitting = [op.name for op in operations if mode.applies_to in op.traits and fnmatchcase(op.name, pattern)]
    if not fitting:
        raise fields.refuse(
            param="operation",
            message=f"No operation fits {pattern!r:.60} and mode {name}, for {mode.applies_to} operations.",
        )
    match = fields.group(params=spec, name="match")
    for key, value in match.items():
        if key not in _MATCHABLE or not isinstance(value, str) or not value:
            raise fields.refuse(param=f"match.{key}", message=f"match takes text for {', '.join(_MATCHABLE)}.")
    times = None
    if spec.get("times", 1) is not None:
        times = fields.integer(params=spec, name="times", low=1, high=1_000_000, default=1)
    params = modes.parameters(mode=mode, given=fields.group(params=spec, name="params"))
    cursor = db.execute(
        "INSERT INTO faults (operation, mode, match, params, remaining) VALUES (?, ?, ?, ?, ?)",
        (pattern, name, json.dumps(match), json.dumps(params), times),
    )
    row = db.execute("SELECT * FROM faults WHERE seq = ?", (cursor.lastrowid,)).fetchone()
    return shown(row=row)


def shown(*, row: sqlite3.Row) -> Doc:
    """A queued fault as the API lists it; ``remaining`` null is unlimited."""
    return {
        "seq": row["seq"],
        "mode": row["mode"],
        "operation": row["operation"],
        "match": json.loads(row["match"]),
        "params": json.loads(row["params"]),
        "remaining": row["remaining"],
        "used": row["used"],
        "active": row["remaining"] is None or row["remaining"] > 0,
    }


def take(*, db: sqlite3.Connection, operation: Operation, call: Call, event_type: str | None = None) -> Fault | None:
    """Use up the first fault that fits: a mode of calls, or, with ``event_type``, a mode of events."""
    facts: dict[str, set[str]] | None = None
    for row in db.execute("SELECT * FROM faults WHERE remaining IS NULL OR remaining > 0 ORDER BY seq").fetchall():
        mode = modes.MODES[row["mode"]]
        if mode.on_events != (event_type is not None) or mode.applies_to not in operation.traits:
            continue
        if not fnmatchcase(operation.name, row["operation"]):
            continue
        if facts is None:
            facts = _facts(db=db, call=call, event_type=event_type)
        if all(value in facts[key] for key, value in json.loads(row["match"]).items()):
            db.execute("UPDATE faults SET used = used + 1, remaining = remaining - 1 WHERE seq = ?", (row["seq"],))
            return Fault(seq=row["seq"], mode=row["mode"], params=json.loads(row["params"]))
    return None


def _facts(*, db: sqlite3.Connection, call: Call, event_type: str | None) -> dict[str, set[str]]:
    """What a match can be compared with. An invoice is known by its id and by its number."""
    facts = {
        "identity": {call.identity or ""},
        "wire_key": {call.wire_key or ""},
        "event_type": {event_type or ""},
    }
    for kind in ("invoice", "credit_note", "customer", "ticket"):
        facts[kind] = {str(call.ids.get(kind) or call.params.get(kind) or "")}
    for note in list(facts["credit_note"]):
        facts["invoice"] |= _values(db=db, kind="credit_note", key=note, names=("invoice",))
    for invoice in list(facts["invoice"]):
        facts["invoice"] |= _values(db=db, kind="invoice", key=invoice, names=("number",))
        facts["customer"] |= _values(db=db, kind="invoice", key=invoice, names=("customer",))
    return facts


def _values(*, db: sqlite3.Connection, kind: str, key: str, names: tuple[str, ...]) -> set[str]:
    row = db.execute("SELECT doc FROM objects WHERE kind = ? AND id = ?", (kind, key)).fetchone() if key else None
    doc = json.loads(row["doc"]) if row else {}
    return {str(doc[name]) for name in names if doc.get(name)}
