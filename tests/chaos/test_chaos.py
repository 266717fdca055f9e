"""A small run of chaos on the real stack, with every audit; and an interrupted one, which leaves nothing behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agentops.local.variables import ROOT
from tests.local.observing import alive, eventually

pytestmark = pytest.mark.stack
SMALL = (
    "seconds=20, customers=28, gap=(1.0, 2.2), drain=240, least_operations=80, least_faults=1, least_kills=1, lease=8"
)
CODE = (
    "import sys; from agentops.chaos.__main__ import run; from agentops.chaos.scale import Scale;"
    f"sys.exit(run(scale=Scale({SMALL}), seed=3))"
)


def start(folder: Path) -> "subprocess.Popen[str]":
    """A run in a process of its own, whose folder and output lie in `folder`."""
    env = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    with (folder / "output").open("w") as output:
        return subprocess.Popen(
            [sys.executable, "-u", "-c", CODE],
            cwd=ROOT,
            env={**env, "TMPDIR": str(folder)},
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )


def descendants(parent: int) -> set[int]:
    """Every process below `parent`, by what the kernel says of each one's parent."""
    above = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            above[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found, more = set(), {parent}
    while more:
        more = {pid for pid, its_parent in above.items() if its_parent in more}
        found |= more
    return found


def test_nothing_is_doubled_lost_or_stuck_in_a_small_storm(tmp_path: Path) -> None:
    process = start(tmp_path)
    try:
        status = process.wait(360)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
    said = (tmp_path / "output").read_text()
    assert status == 0, said
    assert "Passed: nothing doubled, nothing lost, nothing stuck." in said
    assert "Parts that ended without being killed: none." in said
    assert list(tmp_path.glob("agentops-chaos-*")) == []


def test_an_interrupted_run_stops_everything_it_started(tmp_path: Path) -> None:
    process = start(tmp_path)
    output = tmp_path / "output"
    try:
        eventually(lambda: "0:00 of" in output.read_text() or process.poll() is not None, seconds=180)
        started = descendants(process.pid)
        assert len(started) > 10, output.read_text()
        process.send_signal(signal.SIGINT)
        assert process.wait(40) == 130
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(30)
    eventually(lambda: not any(alive(pid) for pid in started))
    assert "stopped (SIGINT)" in output.read_text()
    assert "Traceback" not in output.read_text()
    assert list(tmp_path.glob("agentops-chaos-*")) == []
