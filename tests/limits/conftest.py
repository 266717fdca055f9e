"""Many runs against one limited outside system, with workers that are processes."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agentops.local.postgres import EmbeddedPostgres
from agentops.starting import start_workflow
from approvals.services import policies
from runs.models import Run
from runs.services import principals
from tests.limits import stub as stubs

ROOT = Path(__file__).parents[2]
ALL = {"rules": [{"id": "all", "effect": "allow", "text": "Everything is allowed", "when": "true"}]}


@dataclass
class Outside:
    """The stub, the runs that call it and the workers that advance them."""

    stub: stubs.Stub
    url: str
    database: str
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, number: int) -> list[Run]:
        system = principals.system()
        return [
            start_workflow(name=stubs.WORKFLOW, data={"number": str(one)}, initiator=system).run
            for one in range(number)
        ]

    def work(self, workers: int) -> None:
        command = [sys.executable, "-m", "tests.limits.worker", self.database, self.url]
        env = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", "LOG_LEVEL": "ERROR"}
        self.workers += [subprocess.Popen(command, cwd=ROOT, env=env) for _ in range(workers)]

    def until(self, done: Callable[[], bool], *, seconds: float = 120) -> None:
        deadline = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < deadline, list(Run.objects.values_list("state", "waits_for")[:20])
            assert all(one.poll() is None for one in self.workers)
            time.sleep(0.1)

    def stop(self) -> None:
        for one in self.workers:
            one.kill()
            one.wait()


@pytest.fixture
def outside(db: str, postgres: EmbeddedPostgres) -> Iterator[Outside]:
    stub = stubs.Stub()
    with stubs.serving(stub) as url:
        stubs.install(url)
        policies.publish(
            slug="count", name="Count", tools=[stubs.TOOL], document=ALL, note="", publisher=principals.system()
        )
        found = Outside(stub, url, postgres.url("app", db))
        try:
            yield found
        finally:
            found.stop()
            stubs.uninstall()
