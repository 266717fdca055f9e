"""The supervisor's eye: what dies while another is still getting ready is noticed and started again all the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from agentops.local import supervisor
from agentops.local.errors import LocalStackError
from agentops.local.plan import Entry, Program
from agentops.local.stack import Stack
from agentops.local.supervisor import Watcher
from tests.local.observing import eventually
from tests.local.stand_ins import python

# Ready once a file is there, as a worker is ready once it has reached the broker.
PATIENT = """
import os, pathlib, time
while not pathlib.Path(os.environ["AGENTOPS_DATA"], "go").exists():
    time.sleep(0.02)
print("ready.", flush=True)
time.sleep(120)
"""


def plan(env: Mapping[str, str]) -> list[Entry]:
    return [Program("worker", python(PATIENT), ready_line="ready.")]


def looking(watcher: Watcher, *, until: str, up: bool = True) -> None:
    def there() -> bool:
        watcher.look()
        return watcher.is_up(until) is up

    eventually(there)


@pytest.fixture
def stack(data_dir: Path) -> Stack:
    data_dir.joinpath("go").touch()
    return Stack(data_dir, plan=plan, processes=("worker",), tests=True)


def test_a_server_that_dies_while_a_worker_waits_for_it_is_started_again(stack: Stack, data_dir: Path) -> None:
    with stack:
        watcher = Watcher(stack=stack)
        (data_dir / "go").unlink()
        stack.kill("worker")
        looking(watcher, until="worker", up=False)
        eventually(lambda: [watcher.look(), bool(stack.pids("worker"))][1])
        stack.kill("valkey")
        looking(watcher, until="valkey", up=False)
        looking(watcher, until="valkey")
        assert not watcher.is_up("worker")
        (data_dir / "go").touch()
        looking(watcher, until="worker")
        assert watcher.ended == {"worker: ended by SIGKILL": 1, "valkey: ended by SIGKILL": 1}


def test_what_is_killed_on_purpose_may_die_more_often(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "FIRST_WAIT", 0.01)
    with stack:
        patient, strict = Watcher(stack=stack, limit=100, longest_wait=0.02), Watcher(stack=stack)
        for _ in range(supervisor.LIMIT):
            stack.kill("worker")
            looking(patient, until="worker", up=False)
            looking(patient, until="worker")
        strict.deaths["worker"].count = supervisor.LIMIT - 1
        stack.kill("worker")
        with pytest.raises(LocalStackError, match="worker ended 5 times in a row"):
            strict.look()
