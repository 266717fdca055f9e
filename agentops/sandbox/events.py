"""Billing's events: made with the change they tell of, queued for delivery in the same transaction."""

import copy
import json
from typing import Any

from agentops.sandbox import faults, moments
from agentops.sandbox.transaction import EventSink, Transaction, visible
from agentops.sandbox.wire import Doc, Operation

# If the call that was to deliver its own events dies, the background thread does after this long.
_WAIT_SECONDS = 30.0
API_VERSION = "2026-10-28.endive"


def sink(*, operation: Operation) -> EventSink:
    """The event sink of calls of ``operation``."""

    def record(tx: Transaction, type: str, doc: Doc, previous: Doc | None) -> None:
        event = _event(tx=tx, type=type, doc=visible(doc=doc), previous=previous)
        tx.insert(kind="event", doc=event)
        row = tx.db.execute("SELECT value FROM settings WHERE name = 'webhook_url'").fetchone()
        if row is None or not row["value"]:
            return
        fault = faults.take(db=tx.db, operation=operation, call=tx.call, event_type=type)
        _queue(tx=tx, event=event, url=row["value"], fault=fault)

    return record


def _event(*, tx: Transaction, type: str, doc: Doc, previous: Doc | None) -> Doc:
    data: Doc = {"object": doc}
    if previous is not None:
        data["previous_attributes"] = previous
    return {
        "id": moments.new_id(prefix="evt"),
        "object": "event",
        "api_version": API_VERSION,
        "created": int(moments.now()),
        "data": data,
        "livemode": False,
        "pending_webhooks": 1,
        "request": {"id": None, "idempotency_key": tx.call.wire_key},
        "type": type,
    }


def _queue(*, tx: Transaction, event: Doc, url: str, fault: faults.Fault | None) -> None:
    mode = fault.mode if fault else None
    params = fault.params if fault else {}
    signing = "wrong" if mode == "events_wrong_signature" else "valid"
    delay = (
        params["seconds"] if mode in ("events_delay", "events_reorder") else _WAIT_SECONDS if tx.events_wait else 0.0
    )
    held = mode == "events_reorder"
    for _ in range(params["copies"] if mode == "events_duplicate" else 1):
        _deliver(tx=tx, event=event, url=url, signing=signing, mode=mode, delay=delay, held=held)
    if mode == "events_forged":
        fake = _forged(event=event)
        _deliver(tx=tx, event=fake, url=url, signing="valid" if params["signed"] else "wrong", mode=mode)


def _deliver(
    *, tx: Transaction, event: Doc, url: str, signing: str, mode: str | None, delay: float = 0.0, held: bool = False
) -> None:
    tx.db.execute(
        "INSERT INTO deliveries (event, type, request_seq, url, body, signing, fault, held, due_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            event["id"],
            event["type"],
            tx.request_seq,
            url,
            json.dumps(event),
            signing,
            mode,
            held,
            moments.now() + delay,
        ),
    )


def _forged(*, event: Doc) -> Doc:
    """Right in shape, true in nothing: another event id, another object, twice the money."""
    fake = copy.deepcopy(event)
    fake["id"] = moments.new_id(prefix="evt")
    thing: dict[str, Any] = fake["data"]["object"]
    thing["id"] = moments.new_id(prefix=str(thing["id"]).partition("_")[0])
    for name in ("amount", "total", "subtotal", "amount_due", "amount_remaining"):
        if isinstance(thing.get(name), int):
            thing[name] *= 2
    return fake
