"""The relay: finds what is due in the database and hints at it to the broker. Its own loop, outside Celery. It does the
other recurring work as well, and notes when each kind was done last.

Any number may run; an advisory lock on a connection of its own picks the busy one, and the others wait for it. It is
woken by NOTIFY where somebody waits and polls otherwise. If the broker is down it keeps trying; nothing is lost.
"""

import datetime as dt
import logging
import math
import time
import uuid
from collections import defaultdict
from collections.abc import Callable

import psycopg
from celery import Task
from django.db import DatabaseError, connection
from kombu.exceptions import OperationalError

from agentops import batches, bulk_votes, hints, policy_now, undoing
from agentops.correction_notices import start_notices
from agentops.events import process_events
from agentops.tasks import advance, look, read_statement
from approvals.services import counting, outdated, prompting, staffing, thawing
from reconciliation.services import holds, looks, processes, statement_reading
from runs import advisory
from runs.nudging import DUE as DUE_ONLY
from runs.nudging import RELAY_CHANNEL
from runs.one_by_one import is_gone
from runs.services import recurring
from runs.services.waits import wake_for_ended_runs

log = logging.getLogger(__name__)
BATCH = 200
POLL_SECONDS = 1.0
ALL_SECONDS = 0.25  # while runs come due one after the other, the other work is done that often
BREATH_SECONDS = 0.005  # between two looks: under load one look serves many nudges
HINT_AGAIN_SECONDS = 20.0  # a hint that brought nothing may have been lost
DUE, ENDED, EVENTS, BATCHES, THAW, FREE, WAITS, STATEMENTS, NOTICES, PROMPTS, REVERSALS, NOBODY, VOTES, POLICIES = (
    "due runs",
    "ended processes",
    "received events",
    "acts on many runs and requests",
    "lifted freezes",
    "free resources",
    "ended runs that others wait for",
    "statements",
    "corrections to be told",
    "reminders and escalations",
    "reversals",
    "requests that too few can answer",
    "votes that come to count again",
    "requests under an earlier policy",
)
# each kind of work, and the seconds in which it is begun at the latest. All but a few are done at every look, and noted
# that often; what costs more, such as looking for ended processes, is one relay's turn once in that time
JOBS = dict.fromkeys(
    (DUE, EVENTS, BATCHES, THAW, FREE, WAITS, STATEMENTS, NOTICES, PROMPTS, REVERSALS, VOTES, POLICIES), 5
)
JOBS |= {ENDED: 2, NOBODY: 30}

# by the statement's own time, which does not move: by one that does, every waiting run would be looked at
_DUE = """
SELECT id, lease_token FROM runs_run WHERE finished_at IS NULL AND wake_at <= statement_timestamp()
   AND (lease_until IS NULL OR lease_until < statement_timestamp())
 ORDER BY wake_at LIMIT %s
"""


_NEXT = """
SELECT extract(epoch FROM min(wake_at) - clock_timestamp()) FROM runs_run
 WHERE finished_at IS NULL AND wake_at > statement_timestamp()
"""


class Relay:
    def __init__(self) -> None:
        self.hinted: dict[tuple[uuid.UUID, int], float] = {}  # by run and claim, each of which earns a new hint
        self.asked: dict[uuid.UUID, float] = {}  # operations to look up
        self.read: dict[tuple[int, dt.datetime], float] = {}  # statements, by number and due time
        self.staffed: uuid.UUID | None = None  # up to which run's request it was looked whether enough can answer it
        self.outdated = outdated.Look()
        self.to_count: dict[uuid.UUID, None] = {}  # requests whose votes are to be counted again, in turn
        self.broker_down_since: float | None = None
        self.noted: dict[str, float] = {}
        self.counted: defaultdict[str, int] = defaultdict(int)  # since it was noted last
        self.more = False  # there is work left that waits for nothing but another look

    def run_once(self) -> int:
        """Everything that is due now; returns how many hints were sent."""
        self._turn(ENDED, lambda: len(processes.record_ended()), at_every_look=False)
        self._turn(FREE, holds.wake_waiting)
        self._turn(WAITS, lambda: wake_for_ended_runs(limit=BATCH))
        self._turn(REVERSALS, lambda: undoing.work_off(limit=BATCH))
        sent = self._turn(DUE, self._sweep)
        self._turn(STATEMENTS, self._statements)
        self._turn(NOTICES, lambda: start_notices(limit=BATCH), at_every_look=False)
        self._turn(PROMPTS, prompting.work_off)
        self._turn(NOBODY, self._nobody, at_every_look=False)
        self._turn(VOTES, self._count)
        self._turn(POLICIES, self.outdated.work_off)
        self._turn(EVENTS, lambda: process_events(limit=BATCH))
        on_many = self._turn(BATCHES, lambda: batches.work_off() + bulk_votes.work_off())
        self.more = bool(self._turn(THAW, thawing.thaw) + on_many + len(self.to_count))
        return sent

    def _turn(self, name: str, work: Callable[[], int], *, at_every_look: bool = True) -> int:
        """Do one kind of work and note now and then that it was done; one that fails holds up no other."""
        every = JOBS[name]
        is_time = time.monotonic() - self.noted.get(name, -every) >= every
        mine = is_time and recurring.begin(name=name, every=every)
        if is_time:
            self.noted[name] = time.monotonic()
        if not (mine or at_every_look):
            return 0
        try:
            done = work()
        except Exception as problem:
            if is_gone(problem=problem):
                raise
            log.exception("recurring work: %s", name)
            recurring.finish(name=name, result=f"{type(problem).__name__}: {problem}", failed=True)
            return 0
        self.counted[name] += done
        if mine:
            recurring.finish(name=name, result=f"{self.counted.pop(name)} since the turn before")
        return done

    def _sweep(self) -> int:
        """Hint at the runs that are due, and at the operations to look up."""
        asked = looks.due(limit=BATCH)
        now = time.monotonic()
        self.asked = {one: at for one, at in self.asked.items() if one in asked and now - at < HINT_AGAIN_SECONDS}
        told = [one for one in asked if one not in self.asked and self._hint(look, one)]
        self.asked.update(dict.fromkeys(told, now))
        return len(told) + self.sweep_runs()

    def sweep_runs(self) -> int:
        """Hint at the runs that are due; returns at how many."""
        with connection.cursor() as cursor:
            cursor.execute(_DUE, [BATCH])
            due = cursor.fetchall()
        now, before = time.monotonic(), self.hinted
        self.hinted = {one: before[one] for one in due if now - before.get(one, -math.inf) < HINT_AGAIN_SECONDS}
        told = [one for one in due if one not in self.hinted and self._hint(advance, one[0])]
        self.hinted.update(dict.fromkeys(told, now))
        return len(told)

    def _statements(self) -> int:
        """Hint at the statements that are due; a worker that takes one up makes it due at another time."""
        due, now = statement_reading.due(limit=BATCH), time.monotonic()
        self.read = {one: at for one, at in self.read.items() if one in due and now - at < HINT_AGAIN_SECONDS}
        told = [one for one in due if one not in self.read and self._hint(read_statement, one[0])]
        self.read.update(dict.fromkeys(told, now))
        return len(told)

    def _nobody(self) -> int:
        """The next part of the open requests, all of them in turn."""
        looked = staffing.work_off(after=self.staffed)
        self.staffed = looked.last
        self.to_count |= dict.fromkeys(looked.to_count)
        return looked.woken

    def _count(self) -> int:
        """For about as long as at once is allowed: a group that is given its right back may concern very many."""
        until, counted = time.monotonic() + batches.AT_ONCE_SECONDS, 0
        while self.to_count and time.monotonic() < until:
            one = next(iter(self.to_count))
            del self.to_count[one]
            counted += counting.work_off(requests=[one], reevaluate=policy_now.verdict)
        if counted:
            hints.lists_moved()
        return counted

    def pause(self) -> float:
        """Seconds until the next run is due, at most until the next look: a place in a line is kept to the moment."""
        with connection.cursor() as cursor:
            cursor.execute(_NEXT)
            row = cursor.fetchone()
        return POLL_SECONDS if row is None or row[0] is None else min(max(float(row[0]), 0.02), POLL_SECONDS)

    def _hint(self, task: Task, wanted: uuid.UUID | int) -> bool:
        """Tell the broker; False when it could not be told, which is only a delay."""
        if self.broker_down_since is not None and time.monotonic() - self.broker_down_since < 1:
            return False
        try:
            task.apply_async(args=[wanted if isinstance(wanted, int) else str(wanted)], retry=False)
        except (OperationalError, OSError) as problem:
            if self.broker_down_since is None:
                log.warning("the broker cannot be reached, runs wait in the database: %s", problem)
            self.broker_down_since = time.monotonic()
            return False
        if self.broker_down_since is not None:
            log.info("the broker answers again")
            self.read.clear()
            self.asked.clear()
            self.hinted.clear()  # whatever it was told before may be lost with it
        self.broker_down_since = None
        return True


def own_connection() -> psycopg.Connection:
    """A connection outside every pool: its session holds the lock and listens."""
    parameters = connection.get_connection_params()
    parameters.pop("pool", None)
    kept = {key: parameters[key] for key in ("dbname", "user", "password", "host", "port") if parameters.get(key)}
    return psycopg.connect(**kept, autocommit=True)


def run_forever(*, stop: "list[bool]") -> None:
    """Loop until `stop` is filled (by a signal handler). Lost connections are made anew."""
    relay = Relay()
    while not stop:
        try:
            with own_connection() as session:
                _serve(relay, session, stop)
        except (psycopg.Error, DatabaseError) as problem:
            log.warning("the database cannot be reached, trying again: %s", problem)
            connection.close()
            time.sleep(1)


def _serve(relay: Relay, session: psycopg.Connection, stop: "list[bool]") -> None:
    waiting = False
    while not stop:
        row = session.execute("SELECT pg_try_advisory_lock(%s)", [advisory.RELAY]).fetchone()
        if row is not None and row[0]:
            break
        if not waiting:
            log.info("another relay is at work; this one stands by")
            waiting = True
        time.sleep(POLL_SECONDS)
    session.execute(f"LISTEN {RELAY_CHANNEL}")
    log.info("relay at work")
    looked, wanted = -math.inf, True
    while not stop:
        began = time.monotonic()
        if wanted or relay.more or began - looked > ALL_SECONDS:
            relay.run_once()
            looked = began
        else:
            relay.sweep_runs()
        time.sleep(max(0.0, began + BREATH_SECONDS - time.monotonic()))
        waits = 0.0 if relay.more else relay.pause()
        wanted = any(one.payload != DUE_ONLY for one in session.notifies(timeout=waits, stop_after=1))
