"""From a call to its answer: key, fault, effect and log in one transaction."""

import json
import sqlite3
from dataclasses import replace
from email.utils import formatdate

from agentops.sandbox import events, faults, keys, moments, refusals, tampering
from agentops.sandbox.store import Store
from agentops.sandbox.transaction import Transaction
from agentops.sandbox.wire import Answer, Call, Operation, Refusal

# Modes whose connection ends without an answer: the log must not claim a status.
SILENT = frozenset({"execute_and_timeout", "timeout_without_effect", "execute_then_reset", "reset_without_effect"})


def begin(
    *, store: Store, operation: Operation, call: Call, refusal: Refusal | None
) -> tuple[int, faults.Fault | None]:
    """Log that the call arrived and take its fault. A call refused at the door takes none."""
    with store.write() as db:
        fault = None if refusal else faults.take(db=db, operation=operation, call=call)
        cursor = db.execute(
            "INSERT INTO requests (at, system, operation, method, path, params, wire_key, identity, fault, status)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                moments.now(),
                call.system,
                operation.name,
                call.method,
                call.path,
                json.dumps(call.params),
                call.wire_key,
                call.identity,
                fault.mode if fault else None,
                refusal.status if refusal else None,
            ),
        )
        assert cursor.lastrowid is not None
        return cursor.lastrowid, fault


def claim(*, store: Store, call: Call, operation: Operation, seconds: float) -> None:
    """Hold the call's key for a slow call that has done nothing yet. Raises Refusal as ``keys.stored_answer`` does."""
    if not call.wire_key or "write" not in operation.traits:
        return
    with store.write() as db:
        if keys.stored_answer(db=db, call=call) is None:
            keys.hold(db=db, call=call, seconds=seconds)


def release(*, store: Store, call: Call, request_seq: int, status: int, owns_key: bool) -> None:
    """A slow call is over: log its status and, if the key was its own, free it."""
    with store.write() as db:
        if call.wire_key and owns_key:
            keys.release(db=db, call=call)
        db.execute("UPDATE requests SET status = ? WHERE seq = ?", (status, request_seq))


def perform(
    *,
    store: Store,
    operation: Operation,
    call: Call,
    request_seq: int,
    fault: faults.Fault | None,
    claimed: bool = False,
    running_seconds: float = 0.0,
) -> Answer:
    """Carry the call out once and return the answer meant for the wire.

    ``claimed``: this call holds its key already. ``running_seconds``: the key counts as in use for so long afterwards.
    """
    mode = fault.mode if fault else "ok"
    with store.write() as db:
        tx = Transaction(
            db=db,
            call=call,
            request_seq=request_seq,
            event_sink=events.sink(operation=operation),
            as_of=moments.now() - fault.params["seconds"] if fault and mode == "lookup_stale" else None,
            events_wait=mode == "event_before_response",
        )
        if claimed and call.wire_key:
            keys.release(db=db, call=call)
        answer = _answer(tx=tx, operation=operation, fault=fault, running_seconds=running_seconds)
        replayed = "Idempotent-Replayed" in answer.headers
        status = None if mode in SILENT or running_seconds else answer.status
        db.execute(
            "UPDATE requests SET effect = ?, replayed = ?, status = ? WHERE seq = ?",
            (tx.effects > 0, replayed, status, request_seq),
        )
    return answer


def _answer(*, tx: Transaction, operation: Operation, fault: faults.Fault | None, running_seconds: float) -> Answer:
    call = tx.call
    mode = fault.mode if fault else "ok"
    keyed = bool(call.wire_key) and "write" in operation.traits and mode != "keys_ignored"
    forced = _forced(operation=operation, call=call, fault=fault)
    error_is_kept = fault is not None and _error_kept(fault=fault)
    try:
        if mode in ("same_key_running", "param_mismatch", "overloaded"):
            assert forced is not None
            return forced
        stored = keys.stored_answer(db=tx.db, call=call) if keyed else None
        if stored is not None:
            return forced or stored
        if forced is not None and mode != "execute_then_5xx":
            if keyed and error_is_kept:
                keys.keep(db=tx.db, call=call, answer=forced, retain_seconds=None)
            return forced
        answer, kept = _run(tx=tx, operation=operation, fault=fault)
    except Refusal as refusal:
        return refusals.answer(system=call.system, refusal=refusal)
    if keyed and kept:
        first = forced if forced is not None and error_is_kept else answer
        retain = fault.params["seconds"] if fault and mode == "key_forgotten_after" else None
        keys.keep(db=tx.db, call=call, answer=first, retain_seconds=retain, running_seconds=running_seconds)
    return forced or answer


def _run(*, tx: Transaction, operation: Operation, fault: faults.Fault | None) -> tuple[Answer, bool]:
    """Run the handler; a refusal undoes what it wrote. Returns the answer and whether it is one to keep."""
    if fault:
        tampering.before(tx=tx, fault=fault)
    tx.db.execute("SAVEPOINT handler")
    try:
        answer = operation.handler(tx, tx.call)
    except Refusal as refusal:
        tx.db.execute("ROLLBACK TO handler")
        tx.effects = 0
        return refusals.answer(system=tx.call.system, refusal=refusal), refusal.stored
    finally:
        tx.db.execute("RELEASE handler")
    if fault:
        tampering.after(tx=tx, fault=fault, answer=answer)
    if tx.call.system == "billing":
        answer = replace(answer, headers={**answer.headers, "Request-Id": moments.new_id(prefix="req")})
    return answer, True


def _error_kept(*, fault: faults.Fault) -> bool:
    """Whether the mode's server error is the answer kept for the key. Stripe keeps a 500 like any other answer."""
    if "stored" not in fault.params:
        return False
    stored = fault.params["stored"]
    return fault.params["status"] == 500 if stored is None else bool(stored)


def _forced(*, operation: Operation, call: Call, fault: faults.Fault | None) -> Answer | None:
    """The answer that a mode dictates, whatever happens behind it."""
    if fault is None:
        return None
    refusal: Refusal | None = None
    if fault.mode in ("execute_then_5xx", "5xx_without_effect", "lookup_error"):
        refusal = refusals.server_error(status=fault.params["status"])
    elif fault.mode == "same_key_running":
        refusal = keys.running(system=call.system)
    elif fault.mode == "param_mismatch":
        refusal = keys.mismatch(system=call.system)
    elif fault.mode == "overloaded":
        refusal = _overloaded(fault=fault)
    elif fault.mode == "lookup_not_found":
        if "list" in operation.traits:
            return Answer(body={"object": "list", "data": [], "has_more": False, "url": call.path})
        kind, id = next(reversed(call.ids.items()), ("object", ""))
        refusal = refusals.missing(kind=kind, id=id)
    return refusals.answer(system=call.system, refusal=refusal) if refusal else None


def _overloaded(*, fault: faults.Fault) -> Refusal:
    seconds = fault.params["seconds"]
    value = {
        "seconds": str(max(1, round(seconds))) if seconds else "0",
        "date": formatdate(moments.now() + seconds, usegmt=True),
        "garbage": "soon, please",
        "none": None,
    }[fault.params["retry_after"]]
    return Refusal(
        status=429,
        code="rate_limit",
        message="Too many requests. Wait before asking again.",
        headers={} if value is None else {"Retry-After": value},
    )


def synthetic(*, db: sqlite3.Connection, operation: Operation) -> Transaction:
    """A transaction for something that no caller asked for on the wire (billing itself, or the control API)."""
    call = Call(
        system=operation.system,
        operation=operation.name,
        method="",
        path="",
        ids={},
        params={},
        headers={},
        wire_key=None,
        identity=None,
        fingerprint="",
    )
    return Transaction(db=db, call=call, request_seq=None, event_sink=events.sink(operation=operation))
