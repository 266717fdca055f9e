"""The product on servers that somebody else runs: two roles, PostgreSQL 15 or later, Redis or RabbitMQ."""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import kombu
import psycopg
import pytest

from reconciliation.models import Operation
from runs import record
from tests.conftest import REPO, manage
from tests.engine.conftest import World
from tests.external.conftest import Installation
from tests.external.found import external

APPEND_ONLY = ("runs_event", "runs_evidence", "runs_proposal", "approvals_vote", "approvals_decision")


def test_the_application_owns_nothing_and_changes_no_history(installation: Installation) -> None:
    with psycopg.connect(installation.app_url, autocommit=True) as connection:
        assert connection.info.server_version >= 150000
        owners = connection.execute("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'").fetchall()
        assert owners == [(f"{installation.name}_owner",)]
        for table in APPEND_ONLY:
            for statement in (f"DELETE FROM {table}", f"TRUNCATE {table}"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(statement)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("CREATE TABLE mine ()")


def test_migrating_again_changes_nothing(installation: Installation) -> None:
    for url in (installation.owner_url, installation.app_url):
        said = manage("migrate", env={"DATABASE_URL": url, "APP_DB_ROLE": installation.app})
        assert "No migrations to apply" in said


def test_the_checks_find_nothing_wrong_with_it(installation: Installation, redis_url: str) -> None:
    env = {"BROKER_URL": redis_url, "CHANNEL_URL": channel(redis_url), "APP_DB_ROLE": installation.app}
    said = manage("check", "--database", "default", env={"DATABASE_URL": installation.app_url, **env})
    assert "no issues" in said
    warned = subprocess.run(
        [sys.executable, "manage.py", "check", "--database", "default"],
        env={
            **os.environ, **env, "DJANGO_SETTINGS_MODULE": "agentops.settings", "DATABASE_URL": installation.owner_url,
        },
        cwd=REPO, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "agentops.W005" in warned.stderr


def channel(broker: str) -> str:
    """The same server for live hints, in its own words."""
    return broker.replace("redis+socket://", "unix://").replace("?virtual_host=", "?db=")


def test_the_story_on_that_database(world: World) -> None:
    world.sandbox.faults({"mode": "execute_and_timeout", "operation": "billing.credit_notes.create", "times": 1})
    run = world.work(world.start())
    assert world.vote(run).code == "approved"
    run = world.work(run)
    assert run.state == "completed", run.person_reason
    assert [row["amount_minor"] for row in world.credits()] == [120_000]
    assert record.verify(stream=f"run:{run.pk}") is None


def test_worker_and_relay_through_redis(
    world: World, installation: Installation, redis_url: str, tmp_path: Path
) -> None:
    play(world, installation, redis_url, channel(redis_url), tmp_path)


@pytest.mark.external
def test_worker_and_relay_through_rabbitmq(
    world: World, installation: Installation, redis_url: str, tmp_path: Path
) -> None:
    url = external("amqp")[0]
    assert url is not None
    play(world, installation, url, channel(redis_url), tmp_path)


def play(world: World, installation: Installation, broker: str, hints: str, tmp_path: Path) -> None:
    """A ticket to its credit, with nothing but a real worker and a real relay to move it; only people act here."""
    name = f"test-{secrets.token_hex(4)}"
    env = {
        "DATABASE_URL": installation.app_url, "BROKER_URL": broker, "CHANNEL_URL": hints, "INSTALLATION": name,
        "APP_DB_ROLE": installation.app, "DJANGO_SETTINGS_MODULE": "agentops.settings",
        "AGENTOPS_DATA": str(tmp_path), "BILLING_URL": world.sandbox.url,
        "HELPDESK_URL": f"{world.sandbox.url}/helpdesk/v1", **world_keys(),
    }  # fmt: skip
    worker = ["-m", "celery", "--quiet", "-A", "agentops", "worker", "--concurrency", "1", "--without-gossip"]
    try:
        with (
            process(worker, env, tmp_path / "worker.log"),
            process(["manage.py", "relay"], env, tmp_path / "relay.log"),
        ):
            run = world.start()
            wait(run, "awaiting_approval", tmp_path)
            assert not world.credits()
            assert world.vote(run).code == "approved"
            wait(run, "completed", tmp_path)
    finally:
        forget_queue(broker, f"agentops.{name}")
    assert len(world.credits()) == 1
    credit = Operation.objects.get(run=run, tool="billing.create_credit")
    assert credit.identity.startswith(f"{name}/") and credit.state == "succeeded"


def world_keys() -> dict[str, str]:
    from django.conf import settings

    return {"BILLING_API_KEY": settings.BILLING_API_KEY, "HELPDESK_TOKEN": settings.HELPDESK_TOKEN}


@contextmanager
def process(arguments: list[str], env: dict[str, str], log: Path) -> Iterator[None]:
    with log.open("wb") as output:
        started = subprocess.Popen(
            [sys.executable, *arguments], cwd=REPO, env={**os.environ, **env}, stdout=output, stderr=output
        )
    try:
        yield
        assert started.poll() is None, log.read_text()
    finally:
        started.send_signal(signal.SIGTERM)
        try:
            started.wait(20)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait(10)


def wait(run: object, state: str, logs: Path) -> None:
    from runs.models import Run

    assert isinstance(run, Run)
    deadline = time.monotonic() + 120
    while run.state != state:
        if time.monotonic() > deadline or run.is_over or run.state == "needs_person":
            said = "".join(log.read_text()[-3000:] for log in sorted(logs.glob("*.log")))
            raise AssertionError(f"still {run.state} ({run.waits_for}{run.person_reason}{run.outcome}):\n{said}")
        time.sleep(0.1)
        run.refresh_from_db()


def forget_queue(broker: str, queue: str) -> None:
    """Leave nothing behind on somebody else's broker; that it is there proves that it was used."""
    with kombu.Connection(broker) as connection:
        channel_ = connection.channel()
        try:
            if broker.startswith("amqp"):
                channel_.queue_declare(queue=queue, passive=True)  # raises when no such queue was made
            channel_.queue_delete(queue=queue)
            channel_.exchange_delete(exchange=queue)
        finally:
            channel_.close()
