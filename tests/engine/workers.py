"""Starting real workers from a test, and watching them die."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings

ROOT = Path(__file__).parents[2]
PASSED_ON = ("BILLING_URL", "HELPDESK_URL", "BILLING_API_KEY", "HELPDESK_TOKEN", "LEASE_SECONDS", "INSTALLATION")


class Workers:
    """The parent process of all workers of a test session."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.engine.worker_process"],
            cwd=ROOT,
            env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.started: set[int] = set()

    def _tell(self, **told: Any) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(told) + "\n")
        self.process.stdin.flush()
        return dict(json.loads(self.process.stdout.readline()))

    def start(
        self,
        *,
        run_id: Any,
        database: str,
        env: dict[str, str],
        seconds: float = 120,
        scripted: Sequence[str] = ("1", "2"),
    ) -> int:
        """A worker on that run, which knows these versions of the workflow *scripted*; returns its pid."""
        given = {name: getattr(settings, name) for name in PASSED_ON}
        job = {"run": str(run_id), "database": database, "env": env, "settings": given, "seconds": seconds}
        job["scripted"] = list(scripted)
        pid = int(self._tell(start=job)["pid"])
        self.started.add(pid)
        return pid

    def wait(self, pid: int, *, seconds: float = 120) -> int | None:
        """How it ended (negative: the signal that killed it); None when it has not."""
        status = self._tell(wait=pid, seconds=seconds)["status"]
        if status is not None:
            self.started.discard(pid)
        return None if status is None else int(status)

    def stop(self) -> None:
        for pid in list(self.started):
            os.kill(pid, signal.SIGKILL)
            self.wait(pid)
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(timeout=120)
        self.process.stdout.close()


def is_stopped(pid: int) -> bool:
    """Whether the process is frozen by a signal; see proc(5)."""
    return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] == "T"


def wait_until_stopped(pid: int, *, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not is_stopped(pid):
        assert time.monotonic() < deadline, "the worker was never frozen"
        time.sleep(0.02)
