"""The numbered record: appending to a run's stream or to a system stream, inside the caller's transaction.

Numbers come from the stream's locked row, so 57 is never visible after 58; each hash covers the previous one and the
stored canonical text.
"""

import hashlib
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection
from psycopg.types.json import Jsonb

from runs import clock, hot
from runs.canonical import canonical_bytes
from runs.models import Event, Principal, Run, StreamHead

_COLUMNS = ("stream", "seq", "at", "kind", "actor_id", "data", "canonical", "hash")
_LINE = f"({', '.join(['%s'] * len(_COLUMNS))})"
_INTO = f"INSERT INTO runs_event ({', '.join(_COLUMNS)}) VALUES "


def stream_of(*, run_id: uuid.UUID) -> str:
    """The name of the run's stream."""
    return f"run:{run_id}"


def _event(*, stream: str, seq: int, previous: str, kind: str, actor: Principal, data: dict[str, Any]) -> list[Any]:
    """The row of an event, as `_COLUMNS` names them."""
    at = clock.now()
    body = {"stream": stream, "seq": seq, "at": at.isoformat(), "kind": kind, "actor": actor.key, "data": data}
    canonical = canonical_bytes(body).decode()
    hashed = hashlib.sha256((previous + canonical).encode()).hexdigest()
    return [stream, seq, at, kind, actor.pk, Jsonb(data), canonical, hashed]


def append(*, run: Run, kind: str, actor: Principal, saving: Iterable[str] = (), **data: Any) -> None:
    """Add to the run's stream and save the run's numbering, with the fields of the run named in `saving`.

    The caller holds the run's row lock. `data` is JSON-like without floats (see `canonical`). One statement, in SQL:
    every step of every run comes through here.
    """
    row = _event(
        stream=stream_of(run_id=run.pk),
        seq=run.event_seq + 1,
        previous=run.event_hash,
        kind=kind,
        actor=actor,
        data=data,
    )
    run.event_seq, run.event_hash = row[1], row[-1]
    held = getattr(run, "held_lines", None)
    if held is None:
        _write(run, [row], saving)
        return
    held.rows.append(row)
    held.names |= dict.fromkeys(saving)
    if "state" in held.names:  # each edge is judged by itself
        held.write(run)


def save(*, run: Run, names: Iterable[str]) -> None:
    """Save these fields of the locked run, with what is being appended `together` where that is so."""
    held = getattr(run, "held_lines", None)
    if held is None:
        hot.update(row=run, names=names)
    else:
        held.names |= dict.fromkeys(names)


class _Held:
    """Lines that are written at one go, and the fields of the run to be saved with them."""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []
        self.names: dict[str, None] = {}

    def write(self, run: Run) -> None:
        rows, names = self.rows, self.names
        self.rows, self.names = [], {}
        if rows:
            _write(run, rows, names)
        elif names:
            hot.update(row=run, names=names)


@contextmanager
def together(*, run: Run) -> Iterator[None]:
    """What is appended to the locked run inside is written in as few statements as its states allow, by the end.

    Whoever reads or writes the run's numbering meanwhile does it by this very object. Once one is inside another."""
    if getattr(run, "held_lines", None) is not None:
        yield
        return
    held = _Held()
    run.held_lines = held  # type: ignore[attr-defined]
    try:
        yield
        held.write(run)
    finally:
        run.held_lines = None  # type: ignore[attr-defined]


def _write(run: Run, rows: list[list[Any]], names: Iterable[str]) -> None:
    changed = {"event_seq": run.event_seq, "event_hash": run.event_hash, **hot.sets(row=run, names=names)}
    columns = ", ".join(f"{one} = %s" for one in changed)
    lines = ", ".join([_LINE] * len(rows))
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH event AS ({_INTO}{lines}) UPDATE runs_run SET {columns} WHERE id = %s",
            [*(value for row in rows for value in row), *changed.values(), run.pk],
        )


def append_system(*, topic: str, kind: str, actor: Principal, **data: Any) -> None:
    """Add to `system:<topic>`, locking its head row until the transaction ends."""
    stream = f"system:{topic}"
    StreamHead.objects.bulk_create([StreamHead(stream=stream)], ignore_conflicts=True)
    head = StreamHead.objects.select_for_update().get(stream=stream)
    row = _event(stream=stream, seq=head.seq + 1, previous=head.hash, kind=kind, actor=actor, data=data)
    with connection.cursor() as cursor:
        cursor.execute(_INTO + _LINE, row)
    StreamHead.objects.filter(pk=stream).update(seq=row[1], hash=row[-1])


def verify(*, stream: str) -> int | None:
    """The first number at which the stream's chain does not hold (gap, change, swap), or None when it is whole."""
    previous, expected = "", 1
    for event in Event.objects.filter(stream=stream).order_by("seq").iterator():
        if event.seq != expected or hashlib.sha256((previous + event.canonical).encode()).hexdigest() != event.hash:
            return expected
        previous, expected = event.hash, expected + 1
    return None
