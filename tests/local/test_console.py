"""What a person reads of the processes' logs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agentops.local import console
from agentops.local.console import Console, LogFollower
from agentops.local.errors import LocalStackError
from agentops.local.folders import tail
from agentops.local.plan import Program
from agentops.local.running import RunningProgram


def test_lines_come_whole_once_and_harmless(tmp_path: Path) -> None:
    log = tmp_path / "web.log"
    log.write_text("of an earlier run\n")
    follower = LogFollower(path=log)
    with log.open("ab") as file:
        file.write(b"one\ntw")
        file.flush()
        assert follower.lines() == ["one"]
        file.write(b"o\n\x1b[2Jcleared\x07 \xff\n")
    assert follower.lines() == ["two", "[2Jcleared �"]
    assert follower.lines() == []


def test_a_log_that_grew_too_large_is_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "LIMIT", 100)
    log = tmp_path / "web.log"
    follower = LogFollower(path=log)
    with log.open("ab") as process:  # goes on appending to the file it has open, as a process does
        process.write(b"x" * 120 + b"\n")
        process.flush()
        assert follower.lines() == ["x" * 120]
        assert log.stat().st_size == 0
        process.write(b"next\n")
        process.flush()
        assert follower.lines() == ["next"]
    assert (tmp_path / "web.log.1").stat().st_size == 121


def test_each_line_says_when_and_who(capsys: pytest.CaptureFixture[str]) -> None:
    Console().say("first\nsecond", name="worker")
    Console(quiet=True).say("never")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" ", 1)[1] for line in lines] == ["worker    | first", "worker    | second"]
    assert "\x1b" not in "".join(lines)


def test_of_a_start_that_fails_its_own_lines_are_shown(tmp_path: Path) -> None:
    for number in (1, 2):
        script = f"print('said by start {number}', flush=True); raise SystemExit(3)"
        program = Program("web", [sys.executable, "-c", script], ready_line="never")
        running = RunningProgram(program=program, env={}, logs=tmp_path)
        running.start()
        with pytest.raises(LocalStackError) as caught:
            running.wait_until_ready(meanwhile=lambda: None)
        assert f"said by start {number}" in str(caught.value)
        assert f"said by start {3 - number}" not in str(caught.value)


def test_of_a_log_that_was_set_aside_meanwhile_all_is_new(tmp_path: Path) -> None:
    log = tmp_path / "web.log"
    log.write_text("before\n" * 3)
    assert tail(log, since=log.stat().st_size) == ""
    log.write_text("after\n")
    assert tail(log, since=21) == "\n    after"
    assert tail(tmp_path / "none.log", since=0) == ""
