"""Two at once, many rounds (RACE_ROUNDS, otherwise `ROUNDS` or `FEWER`; `make races` plays a thousand of each).

The rounds are on copies of one request that really waits, by two threads that keep their connections. The sides meet at
a barrier before each round. Whichever has won starts a little later the next time, by twice as much where it had won
before and by half as much where it had not, so that on any machine both win and meet at the locks.
"""

import os
import threading
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from django.db import connections

from agentops.bench import parked
from approvals.models import ApprovalRequest, Decision, Vote
from runs import record
from runs.models import Event
from tests.approvals import world

ROUNDS = int(os.environ.get("RACE_ROUNDS", "200"))
FEWER = int(os.environ.get("RACE_ROUNDS", "12"))  # where a side is a worker's whole step
STEP, FIRST_STEP = 0.0002, 0.004  # by which the winner's next start is later, in seconds
MOST = 5.0

Side = Callable[[ApprovalRequest], Any]
FirstWon = Callable[[Any, Any], bool]
Before = Callable[[ApprovalRequest, float], None]


@dataclass(slots=True)
class Lead:
    """`later`: seconds by which the first side starts later; the second one, where it is below zero."""

    later: float = 0.0
    step: float = FIRST_STEP
    winner: bool | None = None

    def moved(self, *, first_won: bool) -> None:
        if self.winner is not None:
            self.step = self.step * 2 if first_won == self.winner else max(STEP, self.step / 2)
        self.winner = first_won
        self.later = max(-MOST, min(MOST, self.later + (self.step if first_won else -self.step)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """`contended`: each side had begun before the other was done."""

    request: ApprovalRequest
    first: Any
    second: Any
    contended: bool


def copies(asked: world.Asked, owner: psycopg.Connection, *, count: int = ROUNDS) -> list[ApprovalRequest]:
    """`asked` that often, each with a run, facts, stages and a record of its own."""
    info = owner.info
    url = psycopg.conninfo.make_conninfo(
        host=info.host, port=info.port, dbname=info.dbname, user=info.user, password=info.password
    )
    parked.park(url=url, like=asked.run.pk, count=count, answerable=True)
    return list(ApprovalRequest.objects.exclude(pk=asked.request.pk).order_by("pk"))


def nothing(request: ApprovalRequest, later: float) -> None:
    """Done before a round."""


def race(
    over: Sequence[ApprovalRequest],
    first: Side,
    second: Side,
    *,
    first_won: FirstWon,
    before: Before = nothing,
) -> list[Round]:
    """One round for each request; `before` is called with it, and with how much later the first side will start, while
    both sides stand at the barrier. `first_won` is asked of what the two sides returned, where neither raised."""
    number, lead = -1, Lead()
    results: list[list[Any]] = [[None, None] for _ in over]
    times: list[list[tuple[float, float]]] = [[(0.0, 0.0), (0.0, 0.0)] for _ in over]

    def begin() -> None:
        nonlocal number
        if number >= 0 and not any(isinstance(one, Exception) for one in results[number]):
            lead.moved(first_won=first_won(*results[number]))
        number += 1
        if number < len(over):
            before(over[number], lead.later)

    barrier = threading.Barrier(2, action=begin)

    def work(side: int, act: Side) -> None:
        try:
            connections["default"].ensure_connection()
            for place, request in enumerate(over):
                barrier.wait(timeout=120)
                late = lead.later if side == 0 else -lead.later
                if late > 0:
                    time.sleep(late)
                began = time.perf_counter()
                try:
                    results[place][side] = act(request)
                except Exception as error:  # noqa: BLE001  # handed back, so that the test sees it
                    results[place][side] = error
                times[place][side] = (began, time.perf_counter())
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate((first, second))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=600 + 2 * len(over))
        assert not thread.is_alive()
    return [
        Round(request=request, first=pair[0], second=pair[1], contended=max(a[0], b[0]) < min(a[1], b[1]))
        for request, pair, (a, b) in zip(over, results, times, strict=True)
    ]


def met(rounds: Sequence[Round], *, share: float = 3 / 4) -> None:
    """Nobody met an exception, and more than that share of it really was a race."""
    raised = [one for played in rounds for one in (played.first, played.second) if isinstance(one, BaseException)]
    assert not raised, raised[:3]
    assert sum(one.contended for one in rounds) > len(rounds) * share


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """What is stored of one round: the request's state, the yes and no of its decisions, its votes and its events."""

    state: str
    decisions: list[bool]
    votes: int
    events: list[str]


def ends(rounds: Sequence[Round], *kinds: str) -> dict[uuid.UUID, End]:
    """By request; the events are those of `kinds`, in their order. Some of the records are verified as a whole."""
    ids = [one.request.pk for one in rounds]
    states = dict(ApprovalRequest.objects.filter(pk__in=ids).values_list("pk", "state"))
    decisions: dict[uuid.UUID, list[bool]] = defaultdict(list)
    for proposal, approved in Decision.objects.values_list("proposal_id", "approved"):
        decisions[proposal].append(approved)
    votes = Counter(Vote.objects.filter(request__in=ids).values_list("request_id", flat=True))
    events: dict[str, list[str]] = defaultdict(list)
    for stream, kind in Event.objects.filter(kind__in=kinds).order_by("stream", "seq").values_list("stream", "kind"):
        events[stream].append(kind)
    for one in rounds[:: max(1, len(rounds) // 20)]:
        assert record.verify(stream=f"run:{one.request.run_id}") is None
    return {
        one.request.pk: End(
            state=states[one.request.pk],
            decisions=decisions[one.request.proposal_id],
            votes=votes[one.request.pk],
            events=events[f"run:{one.request.run_id}"],
        )
        for one in rounds
    }
