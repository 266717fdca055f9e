"""Moving a run: the machine's edge, the row, and the record, together, under the run's row lock."""

import datetime as dt
from collections.abc import Callable
from typing import Any

from runs import clock, record, waiting
from runs.models import Principal, Run
from runs.models.run import RunState
from runs.nudging import nudge_relay

_MOVES: dict[RunState, str] = {
    RunState.GATHERING: "gather",
    RunState.DECIDING: "decide",
    RunState.AUTHORISING: "authorise",
    RunState.AWAITING_APPROVAL: "ask",
    RunState.EXECUTING: "execute",
    RunState.OUTCOME_UNKNOWN: "lose_track",
    RunState.WAITING: "wait",
    RunState.NEEDS_PERSON: "need_person",
    RunState.COMPLETED: "complete",
    RunState.REJECTED: "reject",
    RunState.CANCELLED: "cancel",
    RunState.FAILED: "fail",
}


LETS_GO = (RunState.WAITING, RunState.AWAITING_APPROVAL, RunState.NEEDS_PERSON)


def move(*, run: Run, to: RunState, actor: Principal, why: str = "", **fields: Any) -> None:
    """Take the declared edge to `to`, set `fields`, save, and append `run.state` to the record.

    The caller holds the row lock. A terminal target ends the run: it is due no more. There, and where it waits for
    time or a person, no worker holds it any longer.
    Raises django_fsm.TransitionNotAllowed when there is no such edge.
    """
    source = run.state
    if source == RunState.WAITING:
        waiting.drop(run=run, actor=actor)
    edge: Callable[[], None] = getattr(run, _MOVES[to])
    edge()
    now = clock.now()
    fields = {"state_since": now, "waits_for": "", "waits_on": "", "wake_at": now, **fields}
    if run.frozen_by is not None:
        fields["frozen_by"] = None
    if run.is_over:
        fields |= {"finished_at": now, "wake_at": None, "resume_to": ""}
    if run.is_over or to in LETS_GO:
        fields |= {"lease_until": None, "lease_holder": "", "claims_in_row": 0}
    if to in LETS_GO:
        fields["wake_at"] = due(run=run, at=fields["wake_at"])
    if to != RunState.WAITING:
        fields.setdefault("resume_to", "")
    if to != RunState.NEEDS_PERSON:
        fields |= {"person_code": "", "person_reason": "", "owner": None}
    for name, value in fields.items():
        setattr(run, name, value)
    record.append(
        run=run, kind="run.state", actor=actor, saving=["state", *fields], source=source, target=str(to), why=why
    )
    if run.is_over:
        waiting.close_signals(run=run)


def wake(*, run: Run, mark: bool = True) -> None:
    """Make the run due now. The caller holds the row lock.

    While a worker holds the run it is marked as well (unless it is that worker who wakes it: `mark` False), so that
    the worker, which may have looked before this happened, does not park it past it.
    """
    if run.is_over:
        return
    now = clock.now()
    changed = []
    if run.wake_at is None or run.wake_at > now:
        run.wake_at = now
        changed.append("wake_at")
    if mark and run.lease_until is not None and not run.woken:
        run.woken = True
        changed.append("woken")
    if changed:
        record.save(run=run, names=changed)
    if mark:
        nudge_relay(due=True)


def due(*, run: Run, at: dt.datetime | None) -> dt.datetime | None:
    """When a run that is let go is due again: at `at`, or now if it was woken since it was claimed."""
    return clock.now() if run.woken else at


def want_facts(*, run: Run) -> None:
    """Have the bound facts read again soon (the caller holds the row lock); an earlier reading doesn't answer it."""
    if run.is_over:
        return
    run.facts_wanted_at = clock.now()
    run.save(update_fields=["facts_wanted_at"])
    wake(run=run)
