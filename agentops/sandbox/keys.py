"""Idempotency keys: the first answer is kept and given again, for a time."""

import json
import sqlite3

from agentops.sandbox import moments
from agentops.sandbox.wire import Answer, Call, Refusal

DEFAULT_RETENTION_SECONDS = 24 * 3600.0
# What a crashed slow call may hold its key beyond the time it meant to take.
_MARGIN_SECONDS = 5.0


def retention(*, db: sqlite3.Connection) -> float:
    """Seconds a key is remembered unless its call said otherwise."""
    row = db.execute("SELECT value FROM settings WHERE name = 'key_retention_seconds'").fetchone()
    return float(row["value"]) if row else DEFAULT_RETENTION_SECONDS


def running(*, system: str) -> Refusal:
    """The refusal while another call with the key is under way."""
    return Refusal(
        status=409,
        code="idempotency_key_in_use",
        message="Another request with this Idempotency-Key is still running. Ask again later with the same key.",
    )


def mismatch(*, system: str) -> Refusal:
    """The refusal of a key that was used with other parameters."""
    return Refusal(
        status=400 if system == "billing" else 422,
        code="idempotency_error",
        message="This Idempotency-Key was used before with other parameters. Repeat a key only with the same ones.",
    )


def stored_answer(*, db: sqlite3.Connection, call: Call) -> Answer | None:
    """The answer kept for the call's key, marked as a replay; None if there is none in force.

    Raises Refusal when the key is in use by a running call or was used with other parameters.
    """
    row = db.execute("SELECT * FROM keys WHERE system = ? AND key = ?", (call.system, call.wire_key)).fetchone()
    now = moments.now()
    if row is None or _gone(row=row, now=now, retention_seconds=retention(db=db)):
        return None
    if row["fingerprint"] != call.fingerprint:
        raise mismatch(system=call.system)
    if row["running_until"] > now:
        raise running(system=call.system)
    headers = {**json.loads(row["headers"]), "Idempotent-Replayed": "true"}
    return Answer(status=row["status"], body=json.loads(row["body"]), headers=headers)


def _gone(*, row: sqlite3.Row, now: float, retention_seconds: float) -> bool:
    if row["status"] is None:
        return bool(row["running_until"] <= now)
    kept = retention_seconds if row["retain_seconds"] is None else row["retain_seconds"]
    return bool(row["created_at"] + kept <= now)


def hold(*, db: sqlite3.Connection, call: Call, seconds: float) -> None:
    """Mark the key as in use for about ``seconds``, before its call has done anything."""
    now = moments.now()
    db.execute(
        "INSERT OR REPLACE INTO keys (system, key, fingerprint, created_at, running_until) VALUES (?, ?, ?, ?, ?)",
        (call.system, call.wire_key, call.fingerprint, now, now + seconds + _MARGIN_SECONDS),
    )


def release(*, db: sqlite3.Connection, call: Call) -> None:
    """End a hold; a key without an answer is as if it had never been used."""
    db.execute("DELETE FROM keys WHERE system = ? AND key = ? AND status IS NULL", (call.system, call.wire_key))
    db.execute("UPDATE keys SET running_until = 0 WHERE system = ? AND key = ?", (call.system, call.wire_key))


def keep(
    *, db: sqlite3.Connection, call: Call, answer: Answer, retain_seconds: float | None, running_seconds: float = 0.0
) -> None:
    """Keep the first answer of the call's key. ``retain_seconds`` None means the general retention."""
    now = moments.now()
    db.execute(
        "INSERT OR REPLACE INTO keys (system, key, fingerprint, status, headers, body, created_at, retain_seconds,"
        " running_until) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            call.system,
            call.wire_key,
            call.fingerprint,
            answer.status,
            json.dumps(answer.headers),
            json.dumps(answer.body),
            now,
            retain_seconds,
            now + running_seconds if running_seconds else 0.0,
        ),
    )
