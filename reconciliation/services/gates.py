"""May a system or a tool be called now? One row for each, shared by all workers, by the database's clock.

Three things are asked of it: does it answer (a circuit that opens after failures in a row, lets one trial through at a
time and closes with the first answer), has it asked to be left alone (Retry-After), and is it one's turn (a rate). Who
may not call gets a time of its own to come back at, so that a limit that lifts brings no herd. Nothing here is ever an
attempt, nor says anything about an effect. Each function is one or two statements, in the caller's transaction or by
themselves; a dependency's row is the last that a transaction locks.
"""

import datetime as dt
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from reconciliation.circuit import Word, asked_to_wait, of_call, of_error
from reconciliation.classification import Result
from runs import clock, retry
from runs.tools.base import Rate, Unreachable

OPENS_AFTER = 5  # failures of the system in a row
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 60.0  # seconds until the first trial; twice as long after each that fails
TRIAL_SECONDS = 60.0  # how long one trial keeps others out, should its worker never come back
SPACING = dt.timedelta(seconds=0.1)  # between those that wait, where no rate is declared
TRIAL_LOOK = dt.timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A dependency's row as it was at `now`, by the database's clock."""

    now: dt.datetime
    name: str
    failures: int
    open_since: dt.datetime | None
    ask_at: dt.datetime | None
    trial_until: dt.datetime | None
    not_before: dt.datetime | None
    line_at: dt.datetime | None

    @property
    def is_quiet(self) -> bool:
        """Nothing to look at, and nothing to tell: it answers, and nobody waits for it."""
        return not (self.failures or self.is_open or self.is_later(self.not_before) or self.is_later(self.line_at))

    def is_later(self, at: dt.datetime | None) -> bool:
        return at is not None and at > self.now

    @property
    def is_open(self) -> bool:
        return self.open_since is not None

    @property
    def may_try(self) -> bool:
        return self.is_open and not self.is_later(self.ask_at) and not self.is_later(self.trial_until)


@dataclass(frozen=True, slots=True, kw_only=True)
class Go:
    """It may be called. `now` was read for this; `troubled` are those whose good answer is worth telling; `quiet`
    says that the tool that was asked about as well need not be looked at again before its call."""

    now: dt.datetime
    troubled: frozenset[str] = frozenset()
    quiet: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Not now: come back at `until`. `code` is circuit_open, left_alone or rate; `waits_for` words for people that go
    on "waits for …", `waits_on` the dependency's name."""

    code: str
    until: dt.datetime
    waits_for: str
    waits_on: str


_LOOK = """SELECT clock_timestamp(), d.name, d.failures, d.open_since, d.ask_at, d.trial_until, d.not_before, d.line_at
  FROM (VALUES (1)) AS one LEFT JOIN reconciliation_dependency d ON d.name = ANY(%s) ORDER BY d.name
"""
_TRY = """
UPDATE reconciliation_dependency SET trial_until = clock_timestamp() + make_interval(secs => %s)
 WHERE name = %s AND open_since IS NOT NULL AND ask_at <= clock_timestamp()
   AND (not_before IS NULL OR not_before <= clock_timestamp())
   AND (trial_until IS NULL OR trial_until <= clock_timestamp()) RETURNING name
"""
# a call of a rated tool: those whose turn has come, and those who come while nobody stands in line
_TAKE = """
INSERT INTO reconciliation_dependency AS d (name, free_at) VALUES (%(name)s, clock_timestamp() + %(spacing)s)
ON CONFLICT (name) DO UPDATE SET free_at = greatest(d.free_at, clock_timestamp()) + %(spacing)s
 WHERE d.open_since IS NULL AND coalesce(d.not_before <= clock_timestamp(), TRUE)
   AND coalesce(d.free_at <= clock_timestamp() + %(slack)s, TRUE)
   AND (coalesce(%(turn)s::timestamptz <= clock_timestamp(), FALSE) OR coalesce(d.line_at <= clock_timestamp(), TRUE))
RETURNING clock_timestamp(), d.failures > 0
"""
_LINE_UP = """
INSERT INTO reconciliation_dependency AS d (name, line_at)
VALUES (%(name)s, greatest(%(after)s, clock_timestamp()) + %(spacing)s)
ON CONFLICT (name) DO UPDATE
   SET line_at = greatest(d.line_at, d.free_at - %(slack)s, %(after)s, clock_timestamp()) + %(spacing)s
RETURNING d.line_at - %(spacing)s
"""
# of an open circuit only a trial's failure counts: calls that were under way when it opened tell nothing new
_FAILED = """
INSERT INTO reconciliation_dependency AS d (name, failures, last_failure, last_failure_at)
VALUES (%(name)s, 1, %(detail)s, clock_timestamp())
ON CONFLICT (name) DO UPDATE SET last_failure = %(detail)s, last_failure_at = clock_timestamp(),
   failures = d.failures + CASE WHEN d.open_since IS NULL OR d.trial_until IS NOT NULL THEN 1 ELSE 0 END,
   open_since = CASE WHEN d.failures + 1 >= %(bound)s THEN coalesce(d.open_since, clock_timestamp()) END,
   ask_at = CASE WHEN d.open_since IS NOT NULL AND d.trial_until IS NULL THEN d.ask_at
                 WHEN d.failures + 1 >= %(bound)s THEN clock_timestamp() + make_interval(secs => greatest(
                   %(asked)s, least(%(longest)s, %(first)s * power(2, least(d.failures + 1 - %(bound)s, 20)))
                   * (0.5 + random() / 2))) END,
   trial_until = NULL
"""
# those that waited for an open circuit have their times; who comes now need not stand behind them
_ANSWERED = """
UPDATE reconciliation_dependency SET failures = 0, open_since = NULL, ask_at = NULL, trial_until = NULL,
   line_at = CASE WHEN open_since IS NULL THEN line_at END
 WHERE name = %s
"""
_LIMITED = """
INSERT INTO reconciliation_dependency AS d (name, not_before) VALUES (%(name)s, clock_timestamp() + %(pause)s)
ON CONFLICT (name) DO UPDATE SET not_before = greatest(d.not_before, clock_timestamp() + %(pause)s), failures = 0,
   open_since = NULL, ask_at = NULL, trial_until = NULL
"""
_END_TRIAL = "UPDATE reconciliation_dependency SET trial_until = NULL WHERE name = ANY(%s) AND trial_until IS NOT NULL"


def _row(sql: str, given: Any) -> tuple[Any, ...] | None:
    with connection.cursor() as cursor:
        cursor.execute(sql, given)
        found: tuple[Any, ...] | None = cursor.fetchone() if cursor.description else None
    return found


def look(*, names: Sequence[str]) -> tuple[dt.datetime, dict[str, State]]:
    """The database's time, and the rows there are; it costs no more than asking the time alone."""
    began = time.monotonic()
    with connection.cursor() as cursor:
        cursor.execute(_LOOK, [list(names)])
        rows = cursor.fetchall()
    clock.keep(at=rows[0][0], began=began)
    columns = ("now", "name", "failures", "open_since", "ask_at", "trial_until", "not_before", "line_at")
    found = [State(**dict(zip(columns, row, strict=True))) for row in rows if row[1] is not None]
    return rows[0][0], {one.name: one for one in found}


def may_read(*, systems: Sequence[str], tool: str = "") -> Go | Wait:
    """May these systems be read now, and with `tool` named, is it worth reading for a call of that tool? Where a
    circuit is open, one caller at a time gets through; it tells how it went by `heard_reading`."""
    now, states = look(names=[*systems, *([tool] if tool else [])])
    for state in states.values():
        if state.is_later(state.not_before) or (state.is_open and not state.may_try):
            return _wait(state, rate=None)
    tried: list[str] = []
    for name in sorted(set(systems) & set(states)):
        if not states[name].is_open:
            continue
        if _row(_TRY, [TRIAL_SECONDS, name]) is None:  # another was quicker
            end_trials(names=tried)
            return _wait(states[name], rate=None)
        tried.append(name)
    troubled = frozenset(name for name, one in states.items() if one.failures and name != tool)
    return Go(now=now, troubled=troubled, quiet=tool not in states or states[tool].is_quiet)


def may_send(
    *, tool: str, rate: Rate | None, turn: dt.datetime | None, seconds: float, quiet: bool = False
) -> Go | Wait:
    """May this tool be called now, within `seconds`? `turn` is the place in the line that an earlier answer gave;
    `quiet`: all was well with the tool when its facts were read, a moment ago.

    The last thing before the call's row: it takes the rate's next place, and an open circuit's one trial.
    """
    if quiet and rate is None:
        return Go(now=clock.now())
    if rate is not None:
        given = {"name": tool, "turn": turn, "spacing": rate.spacing, "slack": _slack(rate)}
        if (row := _row(_TAKE, given)) is not None:
            return Go(now=row[0], troubled=frozenset([tool] if row[1] else []))
    now, states = look(names=[tool])
    state = states.get(tool)
    if state is None:
        return Go(now=now)
    if state.may_try and _row(_TRY, [seconds, tool]) is not None:
        return Go(now=now, troubled=frozenset([tool]))
    in_turn = (turn is not None and turn <= now) or not state.is_later(state.line_at)
    if rate is None and in_turn and not state.is_open and not state.is_later(state.not_before):
        return Go(now=now, troubled=frozenset([tool] if state.failures else []))
    return _wait(state, rate=rate, turn=turn)


def _slack(rate: Rate | None) -> dt.timedelta:
    """How much before its even place a call may go out: the burst, and half a place for what workers differ by."""
    return dt.timedelta(0) if rate is None else rate.spacing * (rate.burst - 0.5)


def _wait(state: State, *, rate: Rate | None, turn: dt.datetime | None = None) -> Wait:
    """A place in the line behind everybody who waits for the same, none of them before it may be called. Who comes
    before their `turn` keeps it."""
    code, after, words = "rate", state.now, f"its turn at {state.name}"
    if rate is not None:
        words += f", which takes {rate}"
    if state.is_open:
        ask_at = state.ask_at or state.now
        code, after = "circuit_open", max(ask_at, state.now + TRIAL_LOOK if ask_at <= state.now else ask_at)
        words = f"{state.name} to answer again; asked next at {after:%H:%M:%S} UTC"
    if state.not_before is not None and state.not_before > max(after, state.now):
        code, after = "left_alone", state.not_before
        words = f"{state.name} to take calls again at {after:%H:%M:%S} UTC, as it asked"
    if turn is not None and state.now < turn and after <= turn:
        return Wait(code=code, until=turn, waits_for=words, waits_on=state.name)
    spacing = rate.spacing if rate is not None else SPACING
    place = _row(_LINE_UP, {"name": state.name, "after": after, "spacing": spacing, "slack": _slack(rate)})
    assert place is not None
    return Wait(code=code, until=place[0], waits_for=words, waits_on=state.name)


def heard(
    *, name: str, result: Result, detail: str, raw: dict[str, Any], retry_after: str | None, now: dt.datetime,
    troubled: bool,
) -> None:  # fmt: skip
    """How a call of `name` ended. With a good answer where all was well (`troubled` False) there is nothing to do."""
    word = of_call(result=result, raw=raw)
    wait = retry.retry_after(header=retry_after or asked_to_wait(raw), now=now)
    if word == Word.FAILED:
        asked = wait.total_seconds() if wait is not None else 0.0
        given = {"name": name, "detail": detail[:500], "bound": OPENS_AFTER, "asked": asked}
        _row(_FAILED, {**given, "first": FIRST_PAUSE, "longest": LONGEST_PAUSE})
    elif word == Word.LIMITED:
        _row(_LIMITED, {"name": name, "pause": wait if wait is not None else retry.backoff(attempt=1)})
    elif word == Word.ANSWERED and troubled:
        _row(_ANSWERED, [name])


def heard_reading(*, systems: Sequence[str], go: Go, problem: Unreachable | None) -> None:
    """How reading these systems went, after `may_read` let it begin: all of it, or until `problem`."""
    if problem is None:
        for name in sorted(set(systems) & go.troubled):
            _row(_ANSWERED, [name])
        return
    if problem.dependency in systems and problem.problem is not None:
        error = problem.problem
        heard(
            name=problem.dependency, result=of_error(error), detail=error.detail, raw=error.raw, now=go.now,
            retry_after=getattr(error, "retry_after", None), troubled=problem.dependency in go.troubled,
        )  # fmt: skip
    end_trials(names=sorted(set(systems) & go.troubled))


def end_trials(*, names: Sequence[str]) -> None:
    """The trial told nothing, so another may begin."""
    if names:
        _row(_END_TRIAL, [list(names)])
