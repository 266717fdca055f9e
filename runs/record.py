"""The numbered record: appending to a run's stream or to a system stream, inside the caller's transaction.

Numbers come from the stream's locked row, so 57 is never visible after 58; each hash covers the previous one and the
stored canonical text.
"""

import hashlib
from collections.abc import Iterable
from typing import Any

from django.db import connection
from django.db.models import Field
from psycopg.types.json import Jsonb

from runs import clock
from runs.canonical import canonical_bytes
from runs.models import Event, Principal, Run, StreamHead

_EVENT = """INSERT INTO runs_event (stream, seq, at, kind, actor_id, data, canonical, hash)
 VALUES (%(stream)s, %(seq)s, %(at)s, %(kind)s, %(actor)s, %(data)s, %(canonical)s, %(hash)s)"""


def _event(
    *, stream: str, seq: int, previous: str, kind: str, actor: Principal, data: dict[str, Any]
) -> dict[str, Any]:
    """The row of an event, by column."""
    at = clock.now()
    body = {"stream": stream, "seq": seq, "at": at.isoformat(), "kind": kind, "actor": actor.key, "data": data}
    canonical = canonical_bytes(body).decode()
    return {
        "stream": stream,
        "seq": seq,
        "at": at,
        "kind": kind,
        "actor": actor.pk,
        "data": Jsonb(data),
        "canonical": canonical,
        "hash": hashlib.sha256((previous + canonical).encode()).hexdigest(),
    }


def append(*, run: Run, kind: str, actor: Principal, saving: Iterable[str] = (), **data: Any) -> None:
    """Add to the run's stream and save the run's numbering, with the fields of the run named in `saving`.

    The caller holds the run's row lock. `data` is JSON-like without floats (see `canonical`). One statement, in SQL:
    every step of every run comes through here.
    """
    row = _event(
        stream=f"run:{run.id}", seq=run.event_seq + 1, previous=run.event_hash, kind=kind, actor=actor, data=data
    )
    run.event_seq, run.event_hash = row["seq"], row["hash"]
    columns = ["event_seq = %(seq)s", "event_hash = %(hash)s"]
    for name in saving:
        field = Run._meta.get_field(name)
        assert isinstance(field, Field)
        columns.append(f"{field.column} = %(run_{name})s")
        row[f"run_{name}"] = field.get_db_prep_save(getattr(run, field.attname), connection)
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH event AS ({_EVENT}) UPDATE runs_run SET {', '.join(columns)} WHERE id = %(run)s",
            row | {"run": run.pk},
        )


def append_system(*, topic: str, kind: str, actor: Principal, **data: Any) -> None:
    """Add to `system:<topic>`, locking its head row until the transaction ends."""
    stream = f"system:{topic}"
    StreamHead.objects.bulk_create([StreamHead(stream=stream)], ignore_conflicts=True)
    head = StreamHead.objects.select_for_update().get(stream=stream)
    row = _event(stream=stream, seq=head.seq + 1, previous=head.hash, kind=kind, actor=actor, data=data)
    with connection.cursor() as cursor:
        cursor.execute(_EVENT, row)
    StreamHead.objects.filter(pk=stream).update(seq=row["seq"], hash=row["hash"])


def verify(*, stream: str) -> int | None:
    """The first number at which the stream's chain does not hold (gap, change, swap), or None when it is whole."""
    previous, expected = "", 1
    for event in Event.objects.filter(stream=stream).order_by("seq").iterator():
        if event.seq != expected or hashlib.sha256((previous + event.canonical).encode()).hexdigest() != event.hash:
            return expected
        previous, expected = event.hash, expected + 1
    return None
