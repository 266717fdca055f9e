"""One of our own processes while the stack runs: start, readiness, end."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from agentops.local import launch
from agentops.local.errors import LocalStackError
from agentops.local.folders import open_log, tail
from agentops.local.plan import Program, Step
from agentops.local.variables import ROOT, child_environment

SETTLE_SECONDS = 0.4  # a program without a sign of readiness counts as ready when it is still there after this
PAUSE = 0.05
ANSWER_SECONDS = 2.0  # whoever looks after all processes must not wait long for one


class RunningProgram:
    """A program of the plan with its process (None before the first start) and its log."""

    def __init__(self, *, program: Program, env: Mapping[str, str], logs: Path) -> None:
        self.program = program
        self.name = program.name
        self.log = logs / f"{program.name}.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.started = 0.0
        self._env = {**env, **program.env}
        self._log_start = 0
        self._swept = False

    @property
    def alive(self) -> bool:
        """Whether the process is there now."""
        return self.process is not None and self.status() is None

    def status(self) -> int | None:
        """The exit status of the process once it ended, else None (before the first start too).

        The first look after its end also kills what it left in its session, while the number is surely still ours.
        """
        if self.process is None or self.process.poll() is None:
            return None
        if not self._swept:
            launch.kill_group(self.process)
            self._swept = True
        return self.process.returncode

    def start(self) -> None:
        """Start the process; wait_until_ready tells when it can be used."""
        output = open_log(self.log)
        self._log_start = os.fstat(output).st_size
        try:
            self.process = launch.spawn(self.program.command, env=child_environment(self._env), cwd=ROOT, output=output)
        finally:
            os.close(output)
        self.started = time.monotonic()
        self._swept = False

    def wait_until_ready(self, *, meanwhile: Callable[[], None]) -> None:
        """Wait for the program's sign, calling ``meanwhile`` again and again.

        Raises LocalStackError if it ends or its patience does, with the end of its log.
        """
        deadline = self.started + self.program.patience
        while not self.ready():
            if not self.alive:
                assert self.process is not None
                raise self._trouble(f"ended at its start ({describe(self.process.returncode)})")
            if time.monotonic() > deadline:
                raise self._trouble(f"was not ready after {self.program.patience:.0f} s")
            meanwhile()
            time.sleep(PAUSE)

    def _trouble(self, what: str) -> LocalStackError:
        return LocalStackError(f"{self.name} {what}. The end of {self.log}:{tail(self.log, since=self._log_start)}")

    def ready(self) -> bool:
        """Whether it is there and has given its sign; answers within ANSWER_SECONDS."""
        if not self.alive:
            return False
        if self.program.ready_url is not None:
            return answers(self.program.ready_url)
        if self.program.ready_line is not None:
            with self.log.open("rb") as file:
                file.seek(self._log_start)
                return self.program.ready_line.encode() in file.read()
        return time.monotonic() - self.started > SETTLE_SECONDS

    def signal(self, number: signal.Signals, /) -> None:
        """Send a signal to the process itself, if it is there."""
        if self.process is not None and self.alive:
            self.process.send_signal(number)

    def stop(self, *, patience: float) -> None:
        """SIGTERM, ``patience`` seconds, then SIGKILL for its whole session."""
        if self.process is not None and self.alive:
            launch.stop(self.process, signals=((signal.SIGTERM, patience),))

    def kill(self) -> None:
        """SIGKILL the process and everything in its session, as a crash of the machine would."""
        if self.process is not None and self.alive:
            launch.kill_group(self.process)
            self.process.wait(10)

    def pids(self) -> list[int]:
        """The living processes of its session, its own first."""
        if self.process is None or not self.alive:
            return []
        return [self.process.pid, *launch.session_members(self.process.pid)]


def run_step(
    step: Step, /, *, env: Mapping[str, str], logs: Path, meanwhile: Callable[[], None] = lambda: None
) -> None:
    """Run a step to its end. Raises LocalStackError with the end of its log when its status isn't 0."""
    log = logs / f"{step.name}.log"
    output = open_log(log)
    before = os.fstat(output).st_size
    try:
        environment = child_environment({**env, **step.env})
        process = launch.spawn(step.command, env=environment, cwd=ROOT, output=output)
    finally:
        os.close(output)
    try:
        while process.poll() is None:
            meanwhile()
            time.sleep(PAUSE)
    finally:
        launch.stop(process, signals=((signal.SIGTERM, 3.0),))
    if process.returncode != 0:
        said = tail(log, since=before, lines=30)
        raise LocalStackError(f"The step {step.name} failed ({describe(process.returncode)}). The end of {log}:{said}")


def describe(status: int, /) -> str:
    """An exit status in words."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"ended by signal {-status}"


def answers(url: str, /) -> bool:
    """Whether an HTTP server answers at ``url``, whatever it says."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=ANSWER_SECONDS)
    try:
        connection.request("GET", parts.path or "/", headers={"Host": f"localhost:{parts.port}"})
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return True
