"""The supervised stack from outside: signals, deaths, and what a person is told when it cannot start."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentops.local import external, variables
from agentops.local.errors import LocalStackError
from agentops.local.variables import ROOT, child_environment, free_port
from tests.local.observing import alive, eventually


class Run:
    """A supervised stack of stand-ins in a process of its own."""

    def __init__(self, *, data_dir: Path, port: int, how: tuple[str, ...] = ()) -> None:
        data_dir.parent.mkdir(parents=True, exist_ok=True)
        self.output = data_dir.parent / f"output-{port}"
        self.data_dir, self.port = data_dir, port
        command = [sys.executable, "-m", "tests.local.stand_ins", str(data_dir), str(port), *how]
        with self.output.open("w") as file:
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=child_environment({}),
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def text(self) -> str:
        return self.output.read_text()

    def wait_for(self, words: str) -> None:
        eventually(lambda: words in self.text() or self.process.poll() is not None, seconds=120)
        assert words in self.text(), self.text()

    def children(self) -> dict[int, str]:
        """Every living process started for this data folder: its number and command line."""
        wanted = f"AGENTOPS_DATA={self.data_dir}\0".encode()
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                ours = wanted in (entry / "environ").read_bytes() or self._is_server(entry)
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if ours and alive(int(entry.name)):
                found[int(entry.name)] = command
        return found

    def _is_server(self, entry: Path) -> bool:
        folders = [note.read_text() for note in self.data_dir.glob("*.runtime")]
        line = (entry / "cmdline").read_bytes().decode()
        return int(entry.name) != os.getpid() and any(folder in line for folder in folders)

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(20)


@contextmanager
def running(data_dir: Path, *, words: str = "Ready: ", how: tuple[str, ...] = (), port: int = 0) -> Iterator[Run]:
    run = Run(data_dir=data_dir, port=port or free_port(), how=how)
    try:
        run.wait_for(words)
        yield run
    finally:
        if run.process.poll() is None:
            run.end(signal.SIGTERM)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_everything_it_started(data_dir: Path, number: signal.Signals) -> None:
    with running(data_dir) as run:
        started = run.children()
        assert len(started) >= 7, started
        assert run.end(number) == 0
        assert run.children() == {}
    assert "Traceback" not in run.text()
    assert run.text().rstrip().endswith("stopped")
    assert list(data_dir.glob("*.runtime")) == []


def test_nothing_outlives_a_killed_supervisor_and_the_next_start_recovers(data_dir: Path) -> None:
    with running(data_dir) as run:
        started = run.children()
        assert len(started) >= 7, started
        assert run.end(signal.SIGKILL) == -signal.SIGKILL
        supervised = {pid for pid, command in started.items() if "sleep 120" not in command}
        eventually(lambda: not any(alive(pid) for pid in supervised))
        for orphan in started.keys() - supervised:  # a stand-in's own child; the product's worker ends its children
            os.kill(orphan, signal.SIGKILL)
    with running(data_dir, port=run.port) as again:
        with urllib.request.urlopen(f"http://localhost:{run.port}/") as answer:
            assert answer.status == 200
        assert len(again.children()) >= 7


def test_what_dies_is_started_again(data_dir: Path) -> None:
    with running(data_dir) as run:
        before = run.children()
        relay = next(pid for pid, command in before.items() if command.endswith(" relay "))
        database = next(pid for pid, command in before.items() if "listen_addresses" in command)
        os.kill(relay, signal.SIGKILL)
        os.kill(database, signal.SIGKILL)
        run.wait_for("relay is running again")
        run.wait_for("postgres is running again")
        assert "relay ended (ended by SIGKILL); starting it again in 0.5 s" in run.text()
        now = run.children()
        assert relay not in now
        assert database not in now
        assert sum(command.endswith(" relay ") for command in now.values()) == 1
        kept = {pid for pid, command in before.items() if "http.server" in command}
        assert kept <= now.keys()
        assert run.end(signal.SIGTERM) == 0


def test_what_dies_again_and_again_ends_the_run(data_dir: Path) -> None:
    run = Run(data_dir=data_dir, port=free_port(), how=("die",))
    assert run.process.wait(60) == 1
    assert len(re.findall(r"relay ended \(exit status 3\); starting it again", run.text())) == 4
    assert "relay ended 5 times in a row (exit status 3), so everything is stopped" in run.text()
    assert "Traceback" not in run.text()
    assert run.children() == {}


def refusal(data_dir: Path | str, **variables: str) -> str:
    """Run the product's own command, which has to fail at once, and return what it says."""
    env = child_environment({"AGENTOPS_DATA": str(data_dir), "PORT": "0", **variables})
    command = [sys.executable, "-m", "agentops.local", "run"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return done.stderr


def test_a_taken_port_is_named(new_dir: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert f"Port {port} is in use by another program. Stop it, or choose another: PORT={port + 1}" in refusal(
            new_dir, PORT=str(port)
        )
    assert not (new_dir / "postgres").exists()


@pytest.mark.parametrize("port", ["web", "-1", "65536", "80 80", "8²"])
def test_a_port_that_is_none_is_refused(port: str) -> None:
    with pytest.raises(LocalStackError, match=f"^PORT={port} is not a port"):
        variables.port({"PORT": port})


def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = refusal(tmp_path / "file" / "data")
    assert "cannot be written to" in said
    assert "Set AGENTOPS_DATA" in said


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("DATABASE_URL", "postgresql://me:hidden-word@127.0.0.1:9/x", "refused"),
        ("DATABASE_URL", "mysql://me:hidden-word@127.0.0.1/x", "must begin with one of postgresql://"),
        ("DATABASE_URL", "postgresql://me:hidden-word@[::1/x", "cannot be used"),
        ("BROKER_URL", "redis://:hidden-word@127.0.0.1:9/1", "refused"),
        ("BROKER_URL", "amqp://me:hidden-word@127.0.0.1:9//", "refused"),
        ("BROKER_URL", "redis+unix:///tmp/hidden-word", "must begin with one of redis://"),
        ("BROKER_URL", "redis+socket:///nowhere/sock?virtual_host=1", "No such file"),
        ("CHANNEL_URL", "redis://:hidden-word@127.0.0.1:9/1", "refused"),
        ("CHANNEL_URL", "redis://127.0.0.1:port/1", "cannot be used"),
        ("CHANNEL_URL", "localhost:6379", "must begin with one of redis://"),
    ],
)
def test_an_address_that_does_not_work_is_named_without_its_password(variable: str, value: str, reason: str) -> None:
    with pytest.raises(LocalStackError) as caught:
        external.check({variable: value})
    said = str(caught.value)
    assert said.startswith(variable)
    assert reason in said
    assert "hidden-word" not in said


def test_an_address_that_does_not_work_ends_the_command_before_anything_starts(new_dir: Path) -> None:
    said = refusal(new_dir, DATABASE_URL="postgresql://me:hidden-word@127.0.0.1:9/x")
    assert said.strip().startswith("DATABASE_URL: the server cannot be used")
    assert "unset DATABASE_URL to use the embedded database" in said
    assert not (new_dir / "postgres").exists()


def test_an_owners_address_alone_is_refused() -> None:
    with pytest.raises(LocalStackError, match="OWNER_DATABASE_URL is set but DATABASE_URL isn't"):
        external.check({"OWNER_DATABASE_URL": "postgresql://127.0.0.1/x"})
