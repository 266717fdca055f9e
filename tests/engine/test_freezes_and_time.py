"""A freeze begins after everybody who looked before it, time frozen twice counts once, and the clock runs behind."""

import datetime as dt
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection

from agentops import engine
from approvals import freezes
from approvals.models import Freeze
from approvals.services import freezing
from reconciliation.models import Attempt
from reconciliation.services import execute
from runs import clock
from runs.services import principals
from tests.engine.conftest import World


def test_a_freeze_waits_for_who_looked_and_has_not_committed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sender is between its look at the freezes and its commit: the freeze begins after that, never before."""
    run, me = world.approved(), principals.of_user(user=world.people["priya"])
    made: list[Freeze | None] = []
    freezer = threading.Thread(
        target=lambda: made.append(freezing.freeze(scope="all", principal=me, reason="x").freeze)
    )
    opens = execute._open

    def slow(**kwargs: Any) -> Any:
        if not freezer.ident:
            freezer.start()
            freezer.join(timeout=1)
        return opens(**kwargs)

    monkeypatch.setattr(execute, "_open", slow)
    engine.advance(run_id=run.pk)
    freezer.join(timeout=120)
    [one] = made
    assert one is not None
    assert all(attempt.opened_at < one.since for attempt in Attempt.objects.filter(operation__run=run))
    assert Attempt.objects.filter(operation__run=run).exists()


@pytest.mark.parametrize(
    ("spans", "hours"),
    [([(1, 3)], 2), ([(1, 3), (2, 4)], 3), ([(1, 4), (2, 3)], 3), ([(1, 2), (3, 4)], 2), ([(0, 2), (1, None)], 4)],
)
def test_time_frozen_twice_counts_once(
    world: World, owner: Any, spans: list[tuple[int, int | None]], hours: int
) -> None:
    run = world.work(world.start())
    request = world.request(run)
    me, hour = principals.of_user(user=world.people["priya"]), dt.timedelta(hours=1)
    start = clock.read()
    scopes = ["all", "tool:billing.create_credit"]
    for scope, (since, lifted) in zip(scopes, spans, strict=False):
        Freeze.objects.create(
            scope=scope, by=me, reason="x", since=start + since * hour,
            lifted_at=None if lifted is None else start + lifted * hour, lifted_by=None if lifted is None else me,
        )  # fmt: skip
    asked = SimpleNamespace(
        proposal=request.proposal, created_at=start, respond_by=start + 100 * hour, valid_until=start + 200 * hour,
        stopped_for=dt.timedelta(0), clock="elapsed",
    )  # fmt: skip
    now = start + 4 * hour
    assert freezes.moved(request=asked, run=run, now=now) - asked.respond_by == hours * hour  # type: ignore[arg-type]


def test_the_carried_clock_is_never_ahead_and_a_slow_answer_is_not_carried(db: str, monkeypatch: Any) -> None:
    clock.read()
    for _ in range(200):
        assert clock.now() <= clock.read()
    real, slow = time.monotonic, iter([0.0, 0.02])
    with monkeypatch.context() as patch:  # the answer came, and this process slept before it looked at it
        patch.setattr(clock.time, "monotonic", lambda: next(slow, 0.02))
        clock.read()
    assert real() and getattr(connection, "agentops_clock", None) is None
