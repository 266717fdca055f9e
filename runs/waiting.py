"""What a run waits for, inside the caller's transaction with the run's row locked. Due times are the database's.

A run's own worker ends its waits; whatever else happens only makes the run due. So no transaction locks two runs.
"""

import datetime as dt
import uuid
from typing import Any

from django.db import connection
from django.db.models import Q

from runs import advisory, clock, hot, record
from runs.models import Principal, Run, Signal, Wait
from runs.tools.base import Reading

MAX_DEPTH = 10  # runs that start runs that start runs

_CIRCLE = """
WITH RECURSIVE chain (id) AS (
    SELECT %(other)s::uuid
  UNION
    SELECT w.other_id FROM runs_wait w JOIN chain ON w.run_id = chain.id
     WHERE w.ended_at IS NULL AND w.other_id IS NOT NULL
) SELECT EXISTS (SELECT FROM chain WHERE id = %(run)s)
"""


class Impossible(Exception):
    """The run must not wait for this; the message says why. Nothing was written."""


def begin(
    *,
    run: Run,
    key: str,
    kind: str,
    actor: Principal,
    event: str = "",
    starts: dict[str, Any] | None = None,
    other_id: uuid.UUID | None = None,
    within: dt.timedelta | None = None,
) -> Wait:
    """The run's wait of that key: made, or found when it was begun before (then its first due time stays).

    Raises Impossible when it has ended already, when no such run exists, and when runs would wait in a circle.
    """
    known = Wait.objects.filter(run=run, key=key).first()
    if known is not None and known.result not in ("", Wait.Result.DROPPED):
        raise Impossible(f"it has waited for {known.words} before, and would wait for ever")
    if known is not None:
        if known.other_id is not None:
            _refuse_circle(run=run, other_id=known.other_id)
        known.ended_at, known.result = None, ""
        known.save(update_fields=["ended_at", "result"])
        wait = known
    else:
        if starts is not None and depth(run=run) >= MAX_DEPTH:
            raise Impossible(f"{MAX_DEPTH} runs have started one another in a row; no further one is started")
        if other_id is not None:
            _refuse_circle(run=run, other_id=other_id)
        wait = Wait.objects.create(
            run=run,
            key=key,
            kind=kind,
            event=event,
            starts=starts,
            other_id=other_id,
            due_at=None if within is None else after(moment=clock.now(), elapsed=within),
        )
    seconds = None if within is None else round(within.total_seconds())
    record.append(
        run=run, kind="wait.began", actor=actor, wait=key, about=wait.words, seconds=seconds, other=_text(wait.other_id)
    )
    return wait


def after(*, moment: dt.datetime, elapsed: dt.timedelta) -> dt.datetime:
    """Elapsed time, whatever the zone's clocks do meanwhile: added to a zoned time, Python would add on the dial."""
    return moment.astimezone(dt.UTC) + elapsed


def depth(*, run: Run) -> int:
    """How many runs stand above this one, each started by the next."""
    found, current = 0, run.pk
    while found < MAX_DEPTH:
        parent = Wait.objects.filter(other=current, starts__isnull=False).values_list("run_id", flat=True).first()
        if parent is None:
            break
        found, current = found + 1, parent
    return found


def _refuse_circle(*, run: Run, other_id: uuid.UUID) -> None:
    """Holds off everybody else who begins to wait for a run until this transaction ends: two that begin at once would
    not see each other."""
    if not Run.objects.filter(pk=other_id).exists():
        raise Impossible(f"there is no run {other_id} to wait for")
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [advisory.CIRCLES])
        cursor.execute(_CIRCLE, {"run": run.pk, "other": other_id})
        row = cursor.fetchone()
    if row is not None and row[0]:
        raise Impossible(f"run {other_id} waits for this run itself, so neither would ever go on")


def link(*, run: Run, wait: Wait, other: Run, actor: Principal) -> None:
    """Note which run was started for the wait. Raises Impossible when that run waits for this one by now."""
    _refuse_circle(run=run, other_id=other.pk)
    wait.other = other
    wait.save(update_fields=["other"])
    record.append(run=run, kind="wait.linked", actor=actor, wait=wait.key, about=wait.words, other=str(other.pk))


def open_wait(*, run: Run) -> Wait | None:
    return Wait.objects.filter(run=run, ended_at__isnull=True).select_related("other").first()


def due(*, wait: Wait) -> dt.datetime | None:
    """When the run has to look at it: at once if there may be something, at its due time, or when it is woken."""
    if wait.kind == Wait.Kind.EVENT and _signals(wait).exists():
        return clock.now()
    if wait.kind == Wait.Kind.RUN and (wait.other is None or wait.other.is_over):
        return clock.now()
    return wait.due_at


def look(*, run: Run, wait: Wait, actor: Principal) -> bool:
    """End the wait if what it is for is there, or its time is over. What came by its due time counts, however late
    anybody looks."""
    now = clock.read()
    over = wait.due_at is not None and wait.due_at <= now
    if wait.kind == Wait.Kind.TIMER:
        if over:
            _end(run, wait, Wait.Result.PASSED, {}, actor)
        return over
    if wait.kind == Wait.Kind.EVENT:
        in_time = _signals(wait) if wait.due_at is None else _signals(wait).filter(received_at__lte=wait.due_at)
        signal = in_time.select_for_update(of=("self",)).order_by("received_at", "id").first()
        if signal is not None:
            signal.applied_at, signal.result = now, "applied"
            signal.save(update_fields=["applied_at", "result"])
            came = {
                "payload": signal.payload,
                "sender": str(signal.sender),
                "received_at": signal.received_at.isoformat(),
            }
            _end(run, wait, Wait.Result.CAME, came, actor)
            return True
    elif wait.other is not None:
        other = Run.objects.only("state", "outcome", "finished_at").get(pk=wait.other.pk)
        if other.finished_at is not None and (wait.due_at is None or other.finished_at <= wait.due_at):
            ended = {"run": str(other.pk), "state": str(other.state), "outcome": other.outcome}
            _end(run, wait, Wait.Result.ENDED, ended, actor)
            return True
    if over:
        _end(run, wait, Wait.Result.LATE, {}, actor)
    return over


def _signals(wait: Wait) -> Any:
    return Signal.objects.filter(run_id=wait.run_id, kind=wait.event, applied_at__isnull=True)


def _end(run: Run, wait: Wait, result: str, content: dict[str, Any], actor: Principal) -> None:
    wait.ended_at, wait.result, wait.content = clock.now(), result, content
    wait.save(update_fields=["ended_at", "result", "content"])
    record.append(
        run=run,
        kind="wait.ended",
        actor=actor,
        wait=wait.key,
        about=wait.words,
        result=str(result),
        other=_text(wait.other_id),
    )


def drop(*, run: Run, actor: Principal) -> None:
    """The run goes elsewhere: a wait that is still open counts for nothing until the workflow asks for it again."""
    wait = open_wait(run=run)
    if wait is not None:
        _end(run, wait, Wait.Result.DROPPED, {}, actor)


def close_signals(*, run: Run) -> None:
    """The run is over: what it was told and never waited for is kept as such."""
    with connection.cursor() as cursor:
        cursor.execute(_UNUSED, [clock.now(), "the run ended before it waited for it", run.pk])


_UNUSED = "UPDATE runs_signal SET applied_at = %s, result = %s WHERE run_id = %s AND applied_at IS NULL"
_ENDED = hot.Query(
    lambda run: (
        Wait.objects.filter(run=run, ended_at__isnull=False)
        .exclude(result=Wait.Result.DROPPED)
        .order_by("began_at", "id")
    )
)


def readings(*, run: Run) -> list[Reading]:
    """The waits that have ended, as facts of the kind that is their key; part of every later reading."""
    return [_reading(wait) for wait in _ENDED(run=run.pk)]


def _reading(wait: Wait) -> Reading:
    content = {"result": wait.result, **wait.content}
    return Reading(
        kind=wait.key,
        source="agentops",
        locator=f"wait/{wait.key}",
        version=wait.result,
        title=f"Wait for {wait.words}"[:300],
        summary=f"{wait.get_result_display()}.",
        authoritative=True,
        content=content,
        untrusted=wait.kind == Wait.Kind.EVENT,
    )


def expects(*, run: Run, event: str) -> bool:
    """Whether the run waits for this event, or may still come to it; not when it has waited for it before."""
    waits = Wait.objects.filter(run=run, kind=Wait.Kind.EVENT, event=event)
    open_ = Q(ended_at__isnull=True) | Q(result=Wait.Result.DROPPED)
    return not waits.exists() or waits.filter(open_).exists()


def _text(value: uuid.UUID | None) -> str:
    return "" if value is None else str(value)
