"""The audit tab of a run: each event as its hash covers it, in words, and whether its row still says the same."""

import datetime as dt
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentops.pages import detail, live
from agentops.pages.detail import Fact
from agentops.pages.story import Row
from runs.canonical import nfc
from runs.models import Event, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """`facts` are read from the text that the hash covers, `stored` is that text; `differs` names what the event's row
    says otherwise."""

    event: Event
    row: Row
    facts: tuple[Fact, ...]
    stored: str
    differs: tuple[str, ...]


def entries(*, run: Run, events: Sequence[Event]) -> list[Entry]:
    """These events of the run's record, in order; their actors are at hand."""
    return [
        _entry(event=event, row=row) for event, row in zip(events, live.rows(run_id=run.pk, events=events), strict=True)
    ]


def _entry(*, event: Event, row: Row) -> Entry:
    body = _body(event.canonical)
    data = body.get("data")
    data = data if isinstance(data, dict) else {}
    return Entry(
        event=event,
        row=row,
        facts=detail.facts(kind=str(body.get("kind", "")), data=data),
        stored=event.canonical,
        differs=_differs(event, body),
    )


def _body(canonical: str) -> dict[str, Any]:
    try:
        body = json.loads(canonical)
    except ValueError:  # no event was ever written so: somebody changed it, which the chain tells as well
        return {}
    return body if isinstance(body, dict) else {}


def _differs(event: Event, body: dict[str, Any]) -> tuple[str, ...]:
    says = {
        "number": event.seq,
        "time": event.at.astimezone(dt.UTC).isoformat(),
        "kind": event.kind,
        "person": event.actor.key,
        "facts": nfc(event.data),
    }
    covered = dict(zip(says, (body.get(name) for name in ("seq", "at", "kind", "actor", "data")), strict=True))
    return tuple(name for name, value in says.items() if value != covered[name])
