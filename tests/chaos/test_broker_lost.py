"""A worker outlives its broker, also with messages in hand: what it is doing goes on, and it takes more afterwards."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from agentops.local.valkey import EmbeddedValkey
from agentops.local.variables import ROOT, child_environment
from tests.local.observing import eventually

pytestmark = pytest.mark.stack
PUBLISH = "import sys; from agentops.celery import app; app.send_task('agentops.advance', args=[sys.argv[1]])"

TRIED = "the database could not do it, trying again"
GIVEN_UP = "raised unexpected: OperationalError"


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[EmbeddedValkey]:
    with EmbeddedValkey(tmp_path / "data") as server:
        yield server


def test_a_worker_with_messages_in_hand_outlives_its_broker(valkey: EmbeddedValkey, tmp_path: Path) -> None:
    env = child_environment(
        {
            "BROKER_URL": valkey.broker_url(),
            "CHANNEL_URL": valkey.channel_url(),
            "DATABASE_URL": f"postgresql://nobody:none@{str(tmp_path).replace('/', '%2F')}/none",
            "SECRET_KEY": "of-this-test",
        }
    )
    log = tmp_path / "worker.log"
    command = [sys.executable, "-m", "celery", "-A", "agentops", "worker", "--concurrency", "2", "-l", "INFO"]
    with log.open("w") as output:
        worker = subprocess.Popen(
            command, cwd=ROOT, env=env, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )

    def publish() -> None:
        subprocess.run([sys.executable, "-c", PUBLISH, str(uuid.uuid4())], cwd=ROOT, env=env, check=True)

    def in_hand() -> int:
        with redis.Redis(unix_socket_path=str(valkey.socket), db=1) as client:
            return int(client.hlen("unacked"))

    try:
        eventually(lambda: " ready." in log.read_text(), seconds=120)
        publish()
        eventually(lambda: TRIED in log.read_text(), seconds=120)  # with one in hand it listens for another
        assert in_hand() == 1
        assert valkey.process is not None
        valkey.process.kill()
        valkey.process.wait()
        eventually(lambda: "Connection to broker lost" in log.read_text())
        valkey.start()
        eventually(lambda: log.read_text().count("Connected to") >= 2 or worker.poll() is not None, seconds=120)
        # what was in hand is finished only now, in vain: the database of this test does not exist
        eventually(lambda: GIVEN_UP in log.read_text() or worker.poll() is not None, seconds=120)
        publish()
        eventually(lambda: in_hand() == 1 or worker.poll() is not None, seconds=120)
        assert worker.poll() is None, log.read_text()
    finally:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait(10)
