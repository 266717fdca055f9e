"""Reads for the pages about runs. A fixed number of queries each, whatever is shown."""

import contextlib
import datetime as dt
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet

from runs import record
from runs.models import Event, Principal, Run
from runs.models.run import RunState

S = RunState
PAGE_SIZE = 50
TEXT_LIMIT = 200  # letters of a search; what is longer cannot be a name here


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A filter of the list: `key` in the address, `word` on the tab, the states in it (all of them when empty)."""

    key: str
    word: str
    states: tuple[RunState, ...] = ()


GROUPS = (
    Group(key="", word="All"),
    Group(key="running", word="Running", states=(S.QUEUED, S.GATHERING, S.DECIDING, S.AUTHORISING, S.EXECUTING)),
    Group(key="approval", word="Waiting for approval", states=(S.AWAITING_APPROVAL,)),
    Group(key="unknown", word="Not confirmed", states=(S.OUTCOME_UNKNOWN,)),
    Group(key="waiting", word="Waiting", states=(S.WAITING,)),
    Group(key="person", word="Needs a person", states=(S.NEEDS_PERSON,)),
    Group(key="completed", word="Completed", states=(S.COMPLETED,)),
    Group(key="stopped", word="Rejected, cancelled, failed", states=(S.REJECTED, S.CANCELLED, S.FAILED)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    runs: list[Run]
    number: int
    more: bool


def group(key: str) -> Group:
    """The filter of that key; *All* for anything else."""
    return next((one for one in GROUPS if one.key == key), GROUPS[0])


def search(*, text: str, also: Q | None = None) -> QuerySet[Run]:
    """Runs that match `text` by customer, title, subject or id, or `also` (what only higher layers know about)."""
    words = " ".join(text.replace("\x00", "").split())[:TEXT_LIMIT]
    if not words:
        return Run.objects.all()
    found = Q(customer__icontains=words) | Q(title__icontains=words) | Q(subject__icontains=words)
    if re.fullmatch(r"[0-9a-fA-F-]{32,36}", words):
        with contextlib.suppress(ValueError):
            found |= Q(pk=uuid.UUID(words))
    return Run.objects.filter(found | also if also is not None else found)


def listed(*, runs: QuerySet[Run], states: Sequence[RunState], number: int) -> Page:
    """Page `number` (from 1) of those runs in any of `states`, newest first."""
    if states:
        runs = runs.filter(state__in=states)
    start = (number - 1) * PAGE_SIZE
    rows = list(runs.select_related("initiator", "owner").order_by("-created_at", "-id")[start : start + PAGE_SIZE + 1])
    return Page(runs=rows[:PAGE_SIZE], number=number, more=len(rows) > PAGE_SIZE)


def counts(*, runs: QuerySet[Run]) -> dict[str, int]:
    """How many of those runs are in each group, by its key."""
    by_state = dict(runs.order_by().values_list("state").annotate(number=Count("pk")))
    return {one.key: sum(by_state.get(state, 0) for state in one.states or S.values) for one in GROUPS}


def events_after(*, run_id: uuid.UUID, after: int, limit: int) -> list[Event]:
    """At most `limit` events with a higher number than `after`, in order."""
    found = Event.objects.filter(stream=record.stream_of(run_id=run_id), seq__gt=after).select_related("actor")
    return list(found.order_by("seq")[:limit])


def newest_events(*, run_id: uuid.UUID, up_to: int | None, limit: int) -> list[Event]:
    """The last `limit` events (of those up to number `up_to`), in order."""
    found = Event.objects.filter(stream=record.stream_of(run_id=run_id)).select_related("actor")
    if up_to is not None:
        found = found.filter(seq__lte=up_to)
    return list(reversed(found.order_by("-seq")[:limit]))


def time_of(*, run_id: uuid.UUID, seq: int) -> dt.datetime | None:
    return Event.objects.filter(stream=record.stream_of(run_id=run_id), seq=seq).values_list("at", flat=True).first()


def state_events(*, run_id: uuid.UUID, limit: int = 2000) -> list[Event]:
    """The events that moved the run, in order."""
    found = Event.objects.filter(stream=record.stream_of(run_id=run_id), kind__in=["run.started", "run.state"])
    return list(found.order_by("seq")[:limit])


def needing_person(*, limit: int = 200) -> list[Run]:
    """Runs that the machine handed to people, the one waiting longest first."""
    found = Run.objects.filter(state=S.NEEDS_PERSON).select_related("owner", "initiator")
    return list(found.order_by("state_since", "id")[:limit])


# from one who started a run to the next by the index of runs, since each may have started very many
_INITIATORS = """
WITH RECURSIVE one AS (
  (SELECT initiator_id FROM runs_run ORDER BY initiator_id LIMIT 1)
  UNION ALL
  SELECT (SELECT r.initiator_id FROM runs_run r WHERE r.initiator_id > one.initiator_id
           ORDER BY r.initiator_id LIMIT 1) FROM one WHERE one.initiator_id IS NOT NULL
) SELECT p.* FROM one JOIN runs_principal p ON p.id = one.initiator_id ORDER BY p.label LIMIT %s
"""


def initiators(*, limit: int) -> list[Principal]:
    """Whoever has started a run, by label."""
    return list(Principal.objects.raw(_INITIATORS, [limit]))
