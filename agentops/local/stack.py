"""The whole system as a context manager: servers, steps and programs started in order and stopped in reverse.

    with Stack(data_dir, port=0) as stack:
        requests.get(stack.url)
        stack.kill("worker")
        stack.start("worker")

Start it from the main thread. Nothing is restarted by itself here: that is the supervisor's work.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from agentops.local import external, variables
from agentops.local.console import Console, LogFollower
from agentops.local.errors import LocalStackError
from agentops.local.folders import FolderLock, prepare_data_dir
from agentops.local.plan import PROGRAMS, Plan, Program, Step, product
from agentops.local.postgres import EmbeddedPostgres
from agentops.local.running import RunningProgram, run_step
from agentops.local.valkey import EmbeddedValkey

NOWHERE = {"DATABASE_URL": "postgresql:///not-started"}  # until the server is there
STOP_SECONDS = 6.0  # for our programs together; the servers after them need a few tenths


class Stack:
    """One local stack on ``data_dir``.

    ``port`` 0 takes any free one. ``processes`` are the programs of the plan to start. ``env`` holds configured
    variables (an external DATABASE_URL, BROKER_URL or CHANNEL_URL replaces the embedded server) and anything else
    the processes shall see; the shell's own values of these are not used. ``tests`` trades durability for speed.
    Raises LocalStackError when something has to be put right by a person.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        port: int = 0,
        processes: Sequence[str] = PROGRAMS,
        env: Mapping[str, str] | None = None,
        plan: Plan = product,
        tests: bool = False,
        console: Console | None = None,
    ) -> None:
        self.data_dir = data_dir.expanduser().absolute()
        self.env: dict[str, str] = {}
        self.console = console or Console(quiet=True)
        self.programs: dict[str, RunningProgram] = {}
        self.postgres: EmbeddedPostgres | None = None
        self.valkey: EmbeddedValkey | None = None
        self._given = {name: value for name, value in (env or {}).items() if value}
        self._port = port
        self._processes = set(processes)
        self._plan = plan
        self._tests = tests
        self._followers: dict[str, LogFollower] = {}
        self._lock = FolderLock(
            path=self.data_dir / "stack.lock",
            busy=f"The data folder {self.data_dir} is in use by another running stack. "
            "Stop that one, or set AGENTOPS_DATA to another folder (and PORT to another port).",
        )

    def __enter__(self) -> Self:
        try:
            self._start_all()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The address of the web pages (``localhost``, which passkeys need)."""
        return f"http://localhost:{self.env['PORT']}"

    @property
    def sandbox_url(self) -> str:
        """The address of the sandbox. Raises KeyError when there is none."""
        return self.env["SANDBOX_URL"]

    @property
    def logs(self) -> Path:
        """The folder with one log a process."""
        return self.data_dir / "logs"

    def start(self, name: str) -> None:
        """Start a program or server that isn't running, and wait until it is ready."""
        alive = bool(self.pids(name))
        self.begin(name)
        if not alive and name not in self.servers():
            self._running(name).wait_until_ready(meanwhile=self.show_logs)

    def begin(self, name: str) -> None:
        """Start a program that isn't running, without waiting for it (``is_ready`` tells); a server with waiting,
        which is a second or so."""
        server = self.servers().get(name)
        if server is not None:
            server.start()
        elif not self._running(name).alive:
            self._running(name).start()

    def is_ready(self, name: str) -> bool:
        """Whether a program or server is there and can be used."""
        return bool(self.pids(name)) if name in self.servers() else self._running(name).ready()

    def patience(self, name: str) -> float:
        """How many seconds a program may take to become ready."""
        return 0.0 if name in self.servers() else self._running(name).program.patience

    def kill(self, name: str) -> None:
        """SIGKILL a program (with all of its session) or a server ("postgres", "valkey"), and wait for its end."""
        server = self.servers().get(name)
        if server is None:
            self._running(name).kill()
        elif server.process is not None:
            server.process.kill()
            server.process.wait(10)

    def pids(self, name: str) -> list[int]:
        """The living processes of a program or server, the first one its leader; empty if it isn't running."""
        server = self.servers().get(name)
        if server is None:
            return self._running(name).pids()
        process = server.process
        return [process.pid] if process is not None and process.poll() is None else []

    def status(self, name: str) -> int | None:
        """The exit status of a program or server that ended; None while it is running."""
        server = self.servers().get(name)
        if server is None:
            return self._running(name).status()
        return server.process.poll() if server.process is not None else -signal.SIGKILL

    def manage(self, *arguments: str, timeout: float = 120.0) -> subprocess.CompletedProcess[str]:
        """Run ``manage.py`` with ``arguments`` against this stack; output is captured, the status is the caller's."""
        return subprocess.run(
            [sys.executable, str(variables.ROOT / "manage.py"), *arguments],
            env=variables.child_environment(self.env),
            cwd=variables.ROOT,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def show_logs(self) -> None:
        """Print the lines our processes have written since the last call."""
        if self.console.quiet:
            return
        for name, follower in self._followers.items():
            for line in follower.lines():
                self.console.say(line, name=name)

    def stop(self) -> None:
        """Stop everything this object started, in reverse order, within about ten seconds; harmless when repeated."""
        self._stop_programs()
        self.show_logs()
        for server in reversed(list(self.servers().values())):
            server.stop()
        if self._lock.held:
            (self.data_dir / "stack.env").unlink(missing_ok=True)
            self._lock.release()

    def _stop_programs(self) -> None:
        # All but the sandbox at once: they are independent, and what they still send the sandbox should answer.
        deadline = time.monotonic() + STOP_SECONDS
        running = [each for each in reversed(self.programs.values()) if each.alive]
        for each in running:
            if each.name != "sandbox":
                each.signal(signal.SIGTERM)
        for each in running:
            each.stop(patience=max(0.2, deadline - time.monotonic()))

    def _start_all(self) -> None:
        self.data_dir = prepare_data_dir(self.data_dir)
        (self.data_dir / "static").mkdir(mode=0o700, exist_ok=True)  # whitenoise warns where there is none
        self._lock.acquire()
        self._take_ports()
        self._check_settings()
        external.check(self._given)
        self._start_servers()
        variables.write_stack_env(path=self.data_dir / "stack.env", values=self.env)
        for entry in self._entries():
            if isinstance(entry, Step):
                if entry.before_servers:
                    continue
                self.console.say(f"{entry.name} ... {entry.note}".rstrip())
                run_step(entry, env=self._child_env(), logs=self.logs, meanwhile=self.show_logs)
                continue
            self.console.say(f"starting {entry.name} ...")
            running = RunningProgram(program=entry, env=self._child_env(), logs=self.logs)
            self._followers[entry.name] = LogFollower(path=running.log)
            self.programs[entry.name] = running
            running.start()
            if entry.name == "sandbox":  # the demo world is put into it; the others get ready side by side
                running.wait_until_ready(meanwhile=self.show_logs)
        for running in self.programs.values():
            running.wait_until_ready(meanwhile=self.show_logs)

    def _check_settings(self) -> None:
        env = NOWHERE | {"OWNER_DATABASE_URL": self._given.get("DATABASE_URL", NOWHERE["DATABASE_URL"])} | self.env
        for entry in self._plan(env):
            if isinstance(entry, Step) and entry.before_servers:
                run_step(entry, env=env, logs=self.logs)

    def _take_ports(self) -> None:
        if self._port and not variables.port_is_free(self._port, patience=2.0):
            raise LocalStackError(
                f"Port {self._port} is in use by another program. Stop it, or choose another: PORT={self._port + 1}."
            )
        port = self._port or variables.free_port()
        wanted = "sandbox" in self._processes and variables.needs_sandbox(self._given)
        sandbox = variables.free_port(remembered=self.data_dir / "sandbox.port") if wanted else None
        self.env = variables.resolve(data_dir=self.data_dir, port=port, sandbox_port=sandbox, given=self._given)

    def _start_servers(self) -> None:
        if "DATABASE_URL" not in self._given:
            self.console.say("starting postgres ...")
            self.postgres = EmbeddedPostgres(self.data_dir, tests=self._tests)
            self.postgres.start()
            self.postgres.ensure_database(variables.DATABASE)
            self.env["DATABASE_URL"] = self.postgres.url("app", variables.DATABASE)
            self.env["OWNER_DATABASE_URL"] = self.postgres.url("owner", variables.DATABASE)
        self.env.setdefault("OWNER_DATABASE_URL", self.env["DATABASE_URL"])
        if not {"BROKER_URL", "CHANNEL_URL"} <= self._given.keys():
            self.console.say("starting valkey ...")
            self.valkey = EmbeddedValkey(self.data_dir)
            self.valkey.start()
            self.env.setdefault("BROKER_URL", self.valkey.broker_url())
            self.env.setdefault("CHANNEL_URL", self.valkey.channel_url())

    def _entries(self) -> Iterator[Step | Program]:
        for entry in self._plan(self.env):
            if isinstance(entry, Step):
                wanted = self.postgres is not None or not entry.own_database
            else:
                wanted = entry.name in self._processes
            if wanted:
                yield entry

    def _child_env(self) -> dict[str, str]:
        # What stays must not be able to become the owner of its tables.
        return {name: value for name, value in self.env.items() if name != "OWNER_DATABASE_URL"}

    def servers(self) -> dict[str, EmbeddedPostgres | EmbeddedValkey]:
        """The embedded servers in the order of their start."""
        servers = {"postgres": self.postgres, "valkey": self.valkey}
        return {name: server for name, server in servers.items() if server is not None}

    def _running(self, name: str) -> RunningProgram:
        if name not in self.programs:
            raise LocalStackError(
                f"The stack has no process called {name}: it has {', '.join(self.programs) or 'none'}."
            )
        return self.programs[name]
