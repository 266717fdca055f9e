"""The numbered record: appending to a run's stream or to a system stream, inside the caller's transaction.

Numbers come from the stream's locked row, so 57 is never visible after 58; each hash covers the previous one and the
stored canonical text.
"""

import hashlib
from typing import Any

from runs import clock
from runs.canonical import canonical_bytes
from runs.models import Event, Principal, Run, StreamHead


def _write(*, stream: str, seq: int, previous: str, kind: str, actor: Principal, data: dict[str, Any]) -> Event:
    at = clock.now()
    body = {"stream": stream, "seq": seq, "at": at.isoformat(), "kind": kind, "actor": actor.key, "data": data}
    canonical = canonical_bytes(body).decode()
    return Event.objects.create(
        stream=stream,
        seq=seq,
        at=at,
        kind=kind,
        actor=actor,
        data=data,
        canonical=canonical,
        hash=hashlib.sha256((previous + canonical).encode()).hexdigest(),
    )


def append(*, run: Run, kind: str, actor: Principal, **data: Any) -> Event:
    """Add to the run's stream. The caller holds the run's row lock; `run.event_seq` is saved here.

    `data` is JSON-like without floats (see `canonical`).
    """
    event = _write(
        stream=f"run:{run.id}", seq=run.event_seq + 1, previous=run.event_hash, kind=kind, actor=actor, data=data
    )
    run.event_seq, run.event_hash = event.seq, event.hash
    Run.objects.filter(pk=run.pk).update(event_seq=event.seq, event_hash=event.hash)
    return event


def append_system(*, topic: str, kind: str, actor: Principal, **data: Any) -> Event:
    """Add to `system:<topic>`, locking its head row until the transaction ends."""
    stream = f"system:{topic}"
    StreamHead.objects.bulk_create([StreamHead(stream=stream)], ignore_conflicts=True)
    head = StreamHead.objects.select_for_update().get(stream=stream)
    event = _write(stream=stream, seq=head.seq + 1, previous=head.hash, kind=kind, actor=actor, data=data)
    StreamHead.objects.filter(pk=stream).update(seq=event.seq, hash=event.hash)
    return event


def verify(*, stream: str) -> int | None:
    """The first number at which the stream's chain does not hold (gap, change, swap), or None when it is whole."""
    previous, expected = "", 1
    for event in Event.objects.filter(stream=stream).order_by("seq").iterator():
        if event.seq != expected or hashlib.sha256((previous + event.canonical).encode()).hexdigest() != event.hash:
            return expected
        previous, expected = event.hash, expected + 1
    return None
