"""The ``/_sandbox`` API: what a test or a page does to the outside world itself, not through its systems."""

import json
import os
import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agentops.sandbox import courier, execute, faults, fields, keys, modes, moments, refusals, tampering, wire, world
from agentops.sandbox.billing import common, invoice_calls, invoices, revisions
from agentops.sandbox.pipeline import body, response
from agentops.sandbox.store import Store
from agentops.sandbox.wire import Answer, Doc, Operation, Refusal

Endpoint = Callable[[Request], Awaitable[Response]]
Action = Callable[["Control", sqlite3.Connection, Request, Doc], Doc]


def _control_operation(name: str) -> Operation:
    """An operation of this API, so that its effects and events have a name that faults can match."""

    def unreachable(*args: object) -> Answer:
        raise NotImplementedError(f"{name} is not called through the pipeline")

    return Operation(name=name, method="POST", path="", handler=unreachable, traits=frozenset({"write"}))


CORRECT = _control_operation("billing.invoices.correct")
PAY = _control_operation("billing.invoices.pay_by_customer")
TOUCH = _control_operation("helpdesk.tickets.touch")
EDIT = _control_operation("helpdesk.records.edit")
LOAD = _control_operation("sandbox.world.load")
OPERATIONS = (CORRECT, PAY, TOUCH, EDIT)


def page_limits(*, request: Request) -> tuple[int, int]:
    """``?after=<seq>&limit=<1..1000>`` of the control lists (oldest first)."""
    params = dict(request.query_params)
    after = fields.integer(params=params, name="after", low=0, high=2**53, default=0)
    return after, fields.integer(params=params, name="limit", low=1, high=1000, default=1000)


def same_origin(*, request: Request) -> None:
    """Refuse what a web page from elsewhere sends through someone's browser to this machine."""
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        raise Refusal(status=403, code="other_origin", message="Requests from other web pages are refused.")


class Control:
    """The actions behind the routes, each one transaction; shared with the admin page."""

    def __init__(self, *, store: Store, operations: tuple[Operation, ...], wake: Callable[[], None]) -> None:
        self.store = store
        self.operations = operations
        self._wake = wake

    def endpoint(self, action: Action) -> Endpoint:
        """Turn an action into a route's endpoint with JSON in and out."""

        async def handle(request: Request) -> Response:
            try:
                same_origin(request=request)
                given = wire.json_object(raw=await body(request=request))
                answer = Answer(body=await run_in_threadpool(self.run, action, request, given))
            except Refusal as refusal:
                answer = refusals.answer(system="sandbox", refusal=refusal)
            return response(answer=answer)

        return handle

    def run(self, action: Action, request: Request, given: Doc) -> Doc:
        """Run one action in its transaction."""
        with self.store.write() as db:
            result = action(self, db, request, given)
        self._wake()
        return result


def health(control: Control, db: sqlite3.Connection, request: Request, given: Doc) -> Doc:
    """GET health: answers once the store can be written."""
    return {"ok": True, "pid": os.getpid(), "at": moments.iso(at=moments.now())}


def list_faults(control: Control, db: sqlite3.Connection, request: Request, given: Doc) -> Doc:
    """GET faults, also those used up."""
    return {"data": [faults.shown(row=row) for row in db.execute("SELECT * FROM faults ORDER BY seq")]}


def add_faults(control: Control, db: sqlite3.Connection, request: Request, given: Doc) -> Doc:
    """POST faults: one (see faults.add) or ``{"faults": [one, …]}``; all or none."""
    specs = fields.items(params=given, name="faults") if "faults" in given else [given]
    return {"data": [faults.add(db=db, spec=spec, operations=control.operations) for spec in specs]}


def remove_faults(control: Control, db: sqlite3.Connection, request: Request, given: Doc) -> Doc:
    """DELETE faults, or faults?seq=3: nothing more is injected."""
    seq = request.query_params.get("seq")
    if seq is None:
        return {"removed": db.execute("DELETE FROM faults").rowcount}
    number = fields.integer(params={"seq": seq}, name="seq", low=1, high=2**53)
    return {"removed": db.execute("DELETE FROM faults WHERE seq = ?", (number,)).rowcount}


def list_modes(control: Control, db: sqlite3.Connection, request: Request, given: Doc) -> Doc:
    """GET modes: what a page needs to offer them."""
    return {"data": [_mode(mode=mode, operations=control.operations) for mode in modes.MODES.values()]}


def _mode(*, mode: modes.Mode, operations: tuple[Operation, ...]) -> Doc:
    specs = {
        name: {"kind": spec.kind, "default": spec.default, "help": spec.help} for name, spec in mode.parameters.items()
    }
    return {
        "name": mode.name,
        "explanation": mode.explanation,
        "applies_to": mode.applies_to,
        "operations": [operation.name for operation in operations if mode.applies_to in operation.traits],
        "on_events": mode.on_events,
        "parameters": specs,
    }


def _filtered(*, table: str, after: int, request: Request) -> tuple[str, list[Any]]:
    """The statement, still open at its end, and its parameters."""
    query = f"SELECT * FROM {table} WHERE seq > ?"
    params: list[Any] = [after]
    for name in ("identity", "operation", "wire_key", "system"):
        if name in request.query_params:
            query += f" AND {name} = ?"
            params.append(request.query_params[name])
    return query, params


def read_ledger(control: Control, db: sqlite3.Connection, request: Request, given: Doc) -> Doc:
    """GET ledger, by ``identity``, ``operation``, ``wire_key``, ``object`` (any business id) and ``after``."""
    after, limit = page_limits(request=request)
    query, params = _filtered(table="ledger", after=after, request=request)
    if "object" in request.query_params:
        query += " AND EXISTS (SELECT 1 FROM json_each(objects) AS named WHERE named.value = ?)"
        params.append(request.query_params["object"])
    rows = db.execute(f"{query} ORDER BY seq LIMIT ?", [*params, limit])
    return {"data": [_row(row=row, parsed=("objects", "payload")) for row in rows]}


def read_requests(control: Control, db: sqlite3.Connection, request: Request, given: Doc) -> Doc:
    """GET requests, by ``operation``, ``identity`` and ``after``; ``status`` is "no answer" when none was given."""
    after, limit = page_limits(request=request)
    query, params = _filtered(table="requests", after=after, request=request)
    rows = db.execute(f"{query} ORDER BY seq LIMIT ?", [*params, limit])
    return {"data": [request_row(row=row) for row in rows]}


def request_row(*, row: sqlite3.Row) -> Doc:
    """A logged request as the API lists it."""
    entry = _row(row=row, parsed=("params",))
    entry["status"] = "no answer" if entry["status"] is None else entry["status"]
    return {**entry, "effect": bool(entry["effect"]), "replayed": bool(entry["replayed"])}


def _row(*, row: sqlite3.Row, parsed: tuple[str, ...]) -> Doc:
    entry: dict[str, Any] = dict(row)
    for name in parsed:
        entry[name] = json.loads(entry[name])
    return {**entry, "at": moments.iso(at=entry["at"])}


def read_events(control: Control, db: sqlite3.Connection, request: Request, given: Doc) -> Doc:
    """GET events: the deliveries, with their attempts."""
    after, limit = page_limits(request=request)
    rows = db.execute("SELECT * FROM deliveries WHERE id > ? ORDER BY id LIMIT ?", (after, limit))
    return {"data": [courier.listed(row=row) for row in rows]}


def load_world(control: Control, db: sqlite3.Connection, request: Request, given: Doc) -> Doc:
    """POST world (see world.py)."""
    return world.load(tx=execute.synthetic(db=db, operation=LOAD), world=given)


def read_world(control: Control, db: sqlite3.Connection, request: Request, given: Doc) -> Doc:
    """GET world: every plan, account, incident, invoice, ticket and credit note as it is now."""
    tx = execute.synthetic(db=db, operation=LOAD)
    kinds = ("plan", "account", "incident", "ticket", "credit_note", "comment", "draft")
    parts: Doc = {f"{kind}s": tx.where(kind=kind, match={}) for kind in kinds}
    return {**parts, "invoices": [invoices.shown(doc=doc) for doc in tx.where(kind="invoice", match={})]}


def correct(control: Control, db: sqlite3.Connection, request: Request, given: Doc) -> Doc:
    """POST invoices/{id or number}/correct ``{"total_minor": 900000, "reason": "…"}``: returns the revision."""
    fields.only(params=given, allowed=("total_minor", "reason"))
    total = fields.integer(params=given, name="total_minor", low=0, high=common.MAX_AMOUNT)
    reason = fields.text(params=given, name="reason", longest=500)
    tx = execute.synthetic(db=db, operation=CORRECT)
    revision = revisions.correct(tx=tx, key=request.path_params["invoice"], total_minor=total, reason=reason)
    return invoices.shown(doc=revision)


def pay(control: Control, db: sqlite3.Connection, request: Request, given: Doc) -> Doc:
    """POST invoices/{id or number}/pay: the customer pays what remains."""
    fields.only(params=given, allowed=())
    tx = execute.synthetic(db=db, operation=PAY)
    invoice = revisions.latest(tx=tx, key=request.path_params["invoice"])
    invoice_calls.pay_rest(tx=tx, invoice=invoice)
    return invoices.shown(doc=invoice)


def touch(control: Control, db: sqlite3.Connection, request: Request, given: Doc) -> Doc:
    """POST tickets/{id}/touch: somebody else edits it; returns it with its new version."""
    fields.only(params=given, allowed=())
    tx = execute.synthetic(db=db, operation=TOUCH)
    ticket = tampering.touch(tx=tx, ticket_id=request.path_params["ticket"])
    tx.effect(objects={"ticket": ticket["id"], "account": ticket["account"]}, payload={"version": ticket["version"]})
    return ticket


def edit(control: Control, db: sqlite3.Connection, request: Request, given: Doc) -> Doc:
    """POST records ``{"kind": "incident", "id": "INC-1", "set": {"ended_at": "…"}}``: somebody at the help desk changes
    a plan, an account or an incident; returns it."""
    fields.only(params=given, allowed=("kind", "id", "set"))
    kind = fields.choice(params=given, name="kind", options=tampering.EDITED)
    if kind is None:
        raise fields.refuse(param="kind", message=f"kind is one of {', '.join(tampering.EDITED)}.")
    tx = execute.synthetic(db=db, operation=EDIT)
    changes = fields.group(params=given, name="set")
    doc = tampering.edit(tx=tx, kind=kind, id=fields.needed(params=given, name="id"), changes=changes)
    tx.effect(objects={kind: doc["id"]}, payload=changes)
    return doc


def settings(control: Control, db: sqlite3.Connection, request: Request, given: Doc) -> Doc:
    """POST settings ``{"webhook_url": "http://…" or null, "key_retention_seconds": 86400}``; returns all."""
    fields.only(params=given, allowed=("webhook_url", "key_retention_seconds"))
    if "webhook_url" in given:
        url = fields.text(params=given, name="webhook_url", longest=2000) or ""
        if url and urlsplit(url).scheme not in ("http", "https"):
            raise fields.refuse(param="webhook_url", message="webhook_url must start with http:// or https://.")
        save_setting(db=db, name="webhook_url", value=url)
    if "key_retention_seconds" in given:
        seconds = given["key_retention_seconds"]
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= 10**9:
            raise fields.refuse(param="key_retention_seconds", message="key_retention_seconds must be 0 to 10^9.")
        save_setting(db=db, name="key_retention_seconds", value=str(seconds))
    row = db.execute("SELECT value FROM settings WHERE name = 'webhook_url'").fetchone()
    return {"webhook_url": row["value"] or None if row else None, "key_retention_seconds": keys.retention(db=db)}


def age_keys(control: Control, db: sqlite3.Connection, request: Request, given: Doc) -> Doc:
    """POST keys/age ``{"seconds": 3600}``: all keys are that much older."""
    fields.only(params=given, allowed=("seconds",))
    seconds = fields.integer(params=given, name="seconds", low=1, high=10**9)
    return {"aged": db.execute("UPDATE keys SET created_at = created_at - ?", (seconds,)).rowcount}


def save_setting(*, db: sqlite3.Connection, name: str, value: str) -> None:
    """Store one setting."""
    db.execute("INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)", (name, value))


def routes(*, control: Control) -> list[Route]:
    """The literal table of the control API."""
    table: tuple[tuple[str, str, Action], ...] = (
        ("GET", "health", health),
        ("GET", "faults", list_faults),
        ("POST", "faults", add_faults),
        ("DELETE", "faults", remove_faults),
        ("GET", "modes", list_modes),
        ("GET", "ledger", read_ledger),
        ("GET", "requests", read_requests),
        ("GET", "events", read_events),
        ("GET", "world", read_world),
        ("POST", "world", load_world),
        ("POST", "invoices/{invoice}/correct", correct),
        ("POST", "invoices/{invoice}/pay", pay),
        ("POST", "tickets/{ticket}/touch", touch),
        ("POST", "records", edit),
        ("POST", "keys/age", age_keys),
        ("GET", "settings", settings),
        ("POST", "settings", settings),
    )
    return [Route(f"/_sandbox/{path}", control.endpoint(action), methods=[method]) for method, path, action in table]
