"""The embedded Valkey, on real servers, through the clients that use it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import kombu
import pytest
import redis

from agentops.local.errors import LocalStackError
from agentops.local.valkey import EmbeddedValkey


@pytest.fixture
def server(new_dir: Path) -> Iterator[EmbeddedValkey]:
    with EmbeddedValkey(new_dir) as started:
        yield started


def ping(server: EmbeddedValkey) -> bool:
    with redis.Redis.from_url(server.channel_url()) as client:
        return bool(client.ping())


def test_celery_and_channels_reach_it_by_their_own_urls(server: EmbeddedValkey) -> None:
    with redis.Redis.from_url(server.channel_url()) as client:
        client.set("hint", "57")
        assert client.get("hint") == b"57"
    with kombu.Connection(server.broker_url()) as connection:
        queue = connection.SimpleQueue("work")
        queue.put({"id": 1})
        assert queue.get(timeout=5).payload == {"id": 1}
        queue.close()
    assert server.socket.stat().st_mode & 0o077 == 0
    assert server.socket.parent.stat().st_mode & 0o077 == 0


def test_it_starts_again_after_sigkill_under_the_same_address(server: EmbeddedValkey) -> None:
    address = server.channel_url()
    assert server.process is not None
    server.process.kill()
    assert server.process.wait(10) == -signal.SIGKILL
    assert not server.answers()
    server.start()
    assert server.channel_url() == address
    assert ping(server)


def test_one_folder_has_one_server_and_two_have_two(
    server: EmbeddedValkey, new_dir: Path, tmp_path: Path, impatient: None
) -> None:
    with pytest.raises(LocalStackError, match=r"in use by another running stack.*AGENTOPS_DATA"):
        EmbeddedValkey(new_dir).start()
    with EmbeddedValkey(tmp_path) as other, redis.Redis.from_url(other.channel_url()) as client:
        client.set("where", "other")
        with redis.Redis.from_url(server.channel_url()) as first:
            assert first.get("where") is None
            assert client.get("where") == b"other"


def test_stopping_leaves_nothing(new_dir: Path) -> None:
    server = EmbeddedValkey(new_dir)
    server.start()
    process, folder = server.process, server.socket.parent
    server.stop()
    assert process is not None
    assert process.returncode == 0
    assert not folder.exists()
