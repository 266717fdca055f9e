"""What is due is found in the database: without a broker, with a forged message, with two relays, it happens once."""

import datetime as dt
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from celery import Celery
from django.db import connection, connections
from kombu.exceptions import OperationalError

from agentops import relay, tasks
from reconciliation.models import Operation
from runs import clock
from runs.models import Run
from tests.engine.conftest import World
from tests.engine.test_together import approved_runs

DEAD_BROKER = "redis://127.0.0.1:9/0"  # the discard port: refused at once


@pytest.fixture
def hints(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A broker that only notes what it is told."""
    told: list[str] = []
    monkeypatch.setattr(relay.advance, "apply_async", lambda args, retry: told.append(args[0]))
    return told


@pytest.fixture
def dead_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """The product's task, at a broker that refuses every connection."""
    dead = Celery("dead", broker=DEAD_BROKER, set_as_current=False)
    monkeypatch.setattr(relay, "advance", dead.task(name="agentops.advance")(tasks.advance.run))


def test_due_runs_are_hinted_once_and_again_only_after_a_while(
    world: World, hints: list[str], monkeypatch: Any
) -> None:
    due, waiting = world.start("CS-8815"), world.work(world.start("CS-8812"))
    assert waiting.state == "awaiting_approval"
    busy = relay.Relay()
    assert (busy.run_once(), busy.run_once(), hints) == (1, 0, [str(due.pk)])
    monkeypatch.setattr(relay, "HINT_AGAIN_SECONDS", 0.0)  # the hint brought nothing: it may have been lost
    assert (busy.run_once(), hints) == (1, [str(due.pk)] * 2)
    assert world.vote(waiting).code == "approved"
    busy.run_once()
    assert str(waiting.pk) in hints


def test_d2_a_broker_that_is_down_delays_and_loses_nothing(
    world: World, dead_broker: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = approved_runs(world, 10)
    down = relay.Relay()
    with pytest.raises((OperationalError, OSError)):
        relay.advance.apply_async(args=[str(runs[0].pk)], retry=False)  # it really is down
    for _ in range(3):
        assert down.run_once() == 0
    assert down.broker_down_since is not None
    assert set(Run.objects.values_list("state", flat=True)) == {"awaiting_approval"} and world.effects() == []

    told: list[str] = []
    monkeypatch.setattr(relay.advance, "apply_async", lambda args, retry: told.append(args[0]))
    time.sleep(1.1)  # it is asked again after a second
    assert down.run_once() == 10 and sorted(told) == sorted(str(run.pk) for run in runs)
    for one in told + told:  # and each hint is delivered twice
        tasks.advance(one)
    for run in runs:
        assert world.work(run).state == "completed"
    assert len(world.credits()) == 10 == Operation.objects.filter(tool="billing.create_credit").count()


@pytest.mark.parametrize("forged", ["", "1", "not-a-run", None, 5, b"x" * 16, [], {}, "0" * 32, "ü" * 40, True])
def test_a_forged_message_finds_nothing_to_do(world: World, forged: Any) -> None:
    assert tasks.advance(forged) == 0
    assert not Run.objects.exists()


def test_foreign_early_and_late_messages_do_nothing(world: World) -> None:
    run = world.work(world.start())
    before = run.event_seq
    assert tasks.advance(str(uuid.uuid4())) == 0
    assert tasks.advance(str(run.pk)) == 0  # it waits for people
    done = world.work(world.start("CS-8815"))
    assert (done.state, tasks.advance(str(done.pk))) == ("completed", 0)
    run.refresh_from_db()
    assert run.event_seq == before and len(world.effects()) == 3


def test_of_two_relays_one_is_busy_and_the_other_takes_over(
    world: World, hints: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(relay, "HINT_AGAIN_SECONDS", 600.0)
    stops: list[list[bool]] = [[], []]
    threads = [threading.Thread(target=_relay, args=(stop,)) for stop in stops]
    try:
        threads[0].start()
        _until(lambda: _lock_holders() == 1)
        threads[1].start()
        run = world.start("CS-8815")
        _until(lambda: len(hints) >= 1)
        time.sleep(0.3)
        assert (hints, _lock_holders()) == ([str(run.pk)], 1)
        stops[0].append(True)
        threads[0].join(timeout=120)
        assert not threads[0].is_alive()
        _until(lambda: len(hints) == 2)  # a new one knows of no earlier hint
        assert (set(hints), _lock_holders()) == ({str(run.pk)}, 1)
    finally:
        for stop in stops:
            stop.append(True)
        for thread in threads:
            thread.join(timeout=120)
    _until(lambda: _lock_holders() == 0)


def _relay(stop: list[bool]) -> None:
    try:
        relay.run_forever(stop=stop)
    finally:
        connections.close_all()


def _lock_holders() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        return int(cursor.fetchone()[0])


def _until(true: Callable[[], bool], *, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_relay_looks_again_when_the_next_run_is_due(world: World) -> None:
    run = world.start()
    for later, most in ((0.4, 0.4), (3600, relay.POLL_SECONDS)):
        Run.objects.filter(pk=run.pk).update(wake_at=clock.read() + dt.timedelta(seconds=later))
        assert 0.02 <= relay.Relay().pause() <= most
    assert relay.Relay().pause() == relay.POLL_SECONDS
