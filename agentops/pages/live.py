"""What a watching browser is sent: the events after the last one it has, in order, and the head of the page anew.

The page itself, the web socket and the polling fallback all come from here, so they cannot differ.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.template.loader import render_to_string

from agentops.pages import story, strip, trace, undone, whereabouts
from approvals.models import ApprovalRequest
from reconciliation.models import Operation
from runs import clock, queries
from runs.models import Event, Evidence, Run

WINDOW = 300  # events on a page
BATCH = 300  # events in one message; the rest follows in the next


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """`html` is empty when there is nothing new; `seq` is the last event in it, `head` the last there is."""

    html: str
    seq: int
    head: int

    @property
    def more(self) -> bool:
        return self.seq < self.head


def head(*, run: Run) -> dict[str, Any]:
    """What the top of the page is rendered from."""
    now = clock.now()
    moved = queries.state_events(run_id=run.pk)
    end = run.finished_at or now
    return {
        "run": run,
        "now": now,
        "where": whereabouts.of(run=run),
        "undoing": undone.of_run(run=run),
        "undoes": undone.undone_by(run=run),
        "nodes": strip.nodes(events=moved, current=run.state, now=end),
        "moves": len(moved),
    }


def counts(*, run: Run) -> dict[str, int]:
    """How much each tab of the page holds."""
    return {
        "evidence": Evidence.objects.filter(run=run).count(),
        "approvals": ApprovalRequest.objects.filter(run=run).count(),
        "operations": Operation.objects.filter(run=run).count(),
        "audit": run.event_seq,
    }


def lanes(*, run: Run, events: Sequence[Event], newest: bool = True) -> trace.Trace | None:
    """The lanes of a window of events; what is still open runs on to the present in the newest window."""
    live = newest and not run.is_over
    return trace.lay_out(events=events, now=clock.now() if live else None)


def rows(*, run_id: uuid.UUID, events: Sequence[Event]) -> list[story.Row]:
    """The lines of these events, with the pause before the first of them too."""
    if not events:
        return []
    before = queries.time_of(run_id=run_id, seq=events[0].seq - 1)
    return list(story.rows(events=events, after=before))


def fragment(*, run_id: uuid.UUID, after: int, limit: int = BATCH, always: bool = False) -> Fragment | None:
    """What a browser that has everything up to `after` needs next; None when there is no such run. `always` renders
    the head also when nothing is new."""
    run = Run.objects.select_related("initiator", "owner", "cancelled_by").filter(pk=run_id).first()
    if run is None:
        return None
    after = min(max(after, 0), run.event_seq)
    events = queries.events_after(run_id=run_id, after=after, limit=limit)
    if not events and not always:
        return Fragment(html="", seq=after, head=after)
    seq = events[-1].seq if events else after
    newest = queries.newest_events(run_id=run_id, up_to=seq, limit=WINDOW)
    context = {
        **head(run=run),
        "rows": rows(run_id=run_id, events=events),
        "trace": lanes(run=run, events=newest),
        "tab_counts": counts(run=run),
        "seq": seq,
        "last": max(run.event_seq, seq),
        "oob": True,
    }
    return Fragment(html=render_to_string("runs/_live.html", context), seq=seq, head=max(run.event_seq, seq))
