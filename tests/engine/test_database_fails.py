"""The database fails under a worker: cut off at a COMMIT, restarted, its session ended while the worker sleeps."""

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from agentops.local.postgres import PORT, EmbeddedPostgres
from reconciliation.models import Operation
from runs import record
from runs.models import Run
from tests.engine.conftest import World
from tests.engine.cutting import cutting_door
from tests.engine.workers import wait_until_stopped

TICKET = "CS-8815"


@pytest.fixture(autouse=True)
def short_leases(settings: Any) -> None:
    settings.LEASE_SECONDS = 2


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path: a socket's address has little room."""
    with tempfile.TemporaryDirectory(prefix="door") as made:
        yield Path(made)


def done_once(world: World, run: Run) -> None:
    run.refresh_from_db()
    assert run.state == "completed", (run.state, run.waits_for, run.person_reason)
    operations = Operation.objects.filter(run=run).order_by("created_at")
    assert [one["identity"] for one in world.effects()] == [one.identity for one in operations]
    assert len(operations) == 3 and {one.state for one in operations} == {"succeeded"}
    assert record.verify(stream=f"run:{run.pk}") is None


@pytest.mark.parametrize(("seed", "landed"), [(1, True), (2, False), (3, True)])
def test_connections_break_at_their_commits(
    world: World, postgres: EmbeddedPostgres, folder: Path, seed: int, landed: bool
) -> None:
    """Again and again a worker's commit breaks its connection: it landed and nobody is told, or it did not."""
    run = world.start(TICKET)
    server = postgres.socket_dir / f".s.PGSQL.{PORT}"
    with cutting_door(folder=folder, server=server, seed=seed, landed=landed) as door:
        straight = quote(str(postgres.socket_dir), safe="")
        world.database = world.database.replace(straight, quote(str(folder), safe=""))
        pid = world.worker(run, seconds=120)
        assert world.workers.wait(pid, seconds=120) == 0
    assert door.cuts >= 2
    done_once(world, run)


@pytest.mark.parametrize("point", ["run.gathered.after", "attempt.called", "attempt.recorded.before"])
def test_the_server_dies_and_comes_back_under_a_worker(world: World, postgres: EmbeddedPostgres, point: str) -> None:
    run = world.start(TICKET)
    pid = world.worker(run, freeze_at=point)
    wait_until_stopped(pid)
    assert postgres.process is not None
    postgres.process.kill()
    postgres.process.wait(10)
    postgres.start()
    os.kill(pid, signal.SIGCONT)
    assert world.workers.wait(pid) == 0
    connection_lost(world)
    done_once(world, world.work(run))


def connection_lost(world: World) -> None:
    from django.db import connection

    connection.close()


@pytest.mark.parametrize("point", ["run.gathered.before", "run.authorised.before", "attempt.opened.before"])
def test_frozen_in_a_transaction_past_its_lease_it_loses_both(
    world: World, postgres: EmbeddedPostgres, point: str
) -> None:
    """The database ends a session that idles in a transaction; another worker goes on, and the first one, awake, finds
    that it has neither connection nor lease."""
    run = world.start(TICKET)
    pid = world.worker(run, freeze_at=point)
    wait_until_stopped(pid)
    with psycopg.connect(postgres.url("superuser", "postgres"), autocommit=True) as server:
        ended = server.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE state = 'idle in transaction'"
        ).fetchone()  # as idle_in_transaction_session_timeout does after a while
    assert ended == (1,)
    run = world.work(run)
    done_once(world, run)
    os.kill(pid, signal.SIGCONT)
    assert world.workers.wait(pid) == 0
    done_once(world, run)


@pytest.mark.parametrize("point", ["run.proposed.after", "run.authorised.after", "attempt.recorded.after"])
def test_frozen_past_its_lease_between_two_steps_it_does_nothing_more(world: World, point: str) -> None:
    run = world.start(TICKET)
    pid = world.worker(run, freeze_at=point)
    wait_until_stopped(pid)
    run = world.work(run)
    done_once(world, run)
    events = run.event_seq
    os.kill(pid, signal.SIGCONT)
    assert world.workers.wait(pid) == 0
    done_once(world, run)
    assert run.event_seq == events
