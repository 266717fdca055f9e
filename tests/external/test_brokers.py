"""A broker at its worst: rubbish, doubles, wrong order, everything lost; and the worker's parent killed in mid-call."""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kombu
import pytest
from celery import Celery

from reconciliation.models import Operation
from runs import record
from runs.models import Run
from tests.conftest import REPO
from tests.engine.conftest import World
from tests.engine.workers import is_stopped
from tests.external.conftest import Installation
from tests.external.found import external
from tests.external.test_servers import channel, forget_queue, process, wait, world_keys

WORKER = ["-m", "celery", "--quiet", "-A", "agentops", "worker", "--concurrency", "2", "--without-gossip"]
RELAY = ["manage.py", "relay"]


def test_redis_at_its_worst(world: World, installation: Installation, redis_url: str, tmp_path: Path) -> None:
    survive(world, installation, redis_url, channel(redis_url), tmp_path)


@pytest.mark.external
def test_rabbitmq_at_its_worst(world: World, installation: Installation, redis_url: str, tmp_path: Path) -> None:
    url = external("amqp")[0]
    assert url is not None
    survive(world, installation, url, channel(redis_url), tmp_path)


class Opened:
    """Unpickled, it would leave a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return open, (str(self.path), "w")


class Sender:
    """Somebody else who can write to the broker."""

    def __init__(self, broker: str, queue: str) -> None:
        self.broker, self.queue = broker, queue
        self.app = Celery("stranger", broker=broker, set_as_current=False)
        self.app.conf.task_default_queue = queue

    def hint(self, *args: Any, task: str = "agentops.advance", serializer: str = "json") -> None:
        self.app.send_task(task, args=list(args), serializer=serializer, retry=False)

    def raw(self, body: bytes, content_type: str) -> None:
        with kombu.Connection(self.broker) as connection:
            connection.Producer().publish(
                body, routing_key=self.queue, exchange=self.queue, content_type=content_type, content_encoding="binary"
            )

    def lose_everything(self) -> None:
        with kombu.Connection(self.broker) as connection:
            connection.channel().queue_purge(self.queue)


def rubbish(sender: Sender, evil: Path) -> None:
    for forged in ("", "not-a-run", 5, None, [], "0" * 32, {"run": 1}):
        sender.hint(forged)
    sender.hint("a", "b", "c")
    sender.hint(task="agentops.no_such_task")
    sender.hint("echo", task="os.system")
    sender.hint(Opened(evil), serializer="pickle")
    for content_type in ("application/json", "application/x-python-serialize", "application/octet-stream"):
        sender.raw(b"\x80\x04not a message", content_type)


def survive(world: World, installation: Installation, broker: str, hints: str, tmp_path: Path) -> None:
    name, evil = f"test-{secrets.token_hex(4)}", tmp_path / "opened"
    env = {
        "DATABASE_URL": installation.app_url, "BROKER_URL": broker, "CHANNEL_URL": hints, "INSTALLATION": name,
        "APP_DB_ROLE": installation.app, "DJANGO_SETTINGS_MODULE": "agentops.settings", "LEASE_SECONDS": "5",
        "CALL_LIMIT_SECONDS": "1", "AGENTOPS_DATA": str(tmp_path), "BILLING_URL": world.sandbox.url,
        "HELPDESK_URL": f"{world.sandbox.url}/helpdesk/v1", **world_keys(),
    }  # fmt: skip
    sender = Sender(broker, f"agentops.{name}")
    runs = [world.start("CS-8815"), world.start("CS-8812")]
    try:
        rubbish(sender, evil)
        for run in (*reversed(runs), *runs):
            sender.hint(str(run.pk))
        kill_the_parent_in_mid_call(env, tmp_path)
        sender.hint(str(runs[0].pk))
        sender.lose_everything()
        rubbish(sender, evil)
        with process(WORKER, env, tmp_path / "worker.log"), process(RELAY, env, tmp_path / "relay.log"):
            wait(runs[0], "completed", tmp_path)
            wait(runs[1], "awaiting_approval", tmp_path)
            assert world.vote(runs[1]).code == "approved"
            for _ in range(5):
                sender.hint(str(runs[1].pk))
            wait(runs[1], "completed", tmp_path)
            until(lambda: waiting(broker, sender.queue) == 0, "every message to be taken")
    finally:
        forget_queue(broker, sender.queue)
    assert not evil.exists()
    for run in runs:
        identities = list(Operation.objects.filter(run=run).values_list("identity", flat=True))
        assert len(identities) == 3
        assert sorted(one["identity"] for one in world.effects() if one["identity"] in identities) == sorted(identities)
        assert record.verify(stream=f"run:{run.pk}") is None
    assert len(world.credits()) == 2 and Run.objects.filter(pk__in=[run.pk for run in runs]).count() == 2


def kill_the_parent_in_mid_call(env: dict[str, str], tmp_path: Path) -> None:
    """A pool's child sleeps with billing's answer in its hands; its parent is killed, then it wakes and ends itself."""
    marker = tmp_path / "reached"
    armed = {"FAULTPOINT": f"attempt.called:{marker}", "FAULTPOINT_SIGNAL": "STOP"}
    with (tmp_path / "killed-worker.log").open("wb") as log:
        parent = subprocess.Popen(
            [sys.executable, *WORKER], cwd=REPO, env={**os.environ, **env, **armed}, stdout=log, stderr=log
        )
    try:
        until(marker.exists, "a call to be made", log=tmp_path / "killed-worker.log")
        children = [int(one) for one in Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()]
        until(lambda: any(is_stopped(child) for child in children), "the child to be frozen")
    finally:
        parent.kill()
        parent.wait(20)
    for child in children:
        if Path(f"/proc/{child}").exists():
            os.kill(child, signal.SIGCONT)
    until(lambda: not any(Path(f"/proc/{child}").exists() for child in children), "the children to end")


def waiting(broker: str, queue: str) -> int:
    with kombu.Connection(broker) as connection:
        # in Redis a queue without messages is not there
        asked = connection.channel().queue_declare(queue=queue, passive=broker.startswith("amqp"))
        return int(asked.message_count)


def until(there: Callable[[], bool], what: str, *, seconds: float = 120, log: Path | None = None) -> None:
    deadline = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < deadline, f"waited for {what}: {log.read_text()[-3000:] if log else ''}"
        time.sleep(0.05)
