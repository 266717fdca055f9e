"""The repository's machinery: make's targets, and the environment it keeps."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agentops.local.variables import ROOT


def call(folder: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")} | variables
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)


def fresh_clone(top: Path) -> Path:
    """A fresh clone as far as the environment is concerned, with empty locks, in a path with a space."""
    folder = top / "fresh clone"
    (folder / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "venv", folder / ".ci")
    shutil.copy(ROOT / "Makefile", folder)
    (folder / "requirements.lock").write_text("# nothing\n")
    (folder / "requirements-dev.lock").write_text("# nothing, for development\n")
    return folder


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return fresh_clone(tmp_path)


def test_make_alone_lists_the_targets() -> None:
    done = call(ROOT, "make")
    assert done.returncode == 0, done.stderr
    named = [line.split()[1] for line in done.stdout.splitlines()]
    assert named == ["help", "run", "demo", "chaos", "test", "test-fast", "races", "bench", "check", "lock", "clean"]


def test_the_environment_is_made_once_and_again_when_the_lock_changed_and_never_without_hashes(clone: Path) -> None:
    first = call(clone, "make", "venv", PYTHON=sys.executable)
    assert first.returncode == 0, first.stderr
    assert "Installing requirements.lock" in first.stdout
    os.utime(clone / "requirements.lock")  # a new time with the same content is no change
    assert call(clone, "make", "venv").stdout == ""
    assert "Installing requirements-dev.lock" in call(clone, "make", "venv-dev").stdout
    assert call(clone, "make", "venv").stdout == ""  # the development lock holds the other one
    (clone / "requirements.lock").write_text("# something else\n")
    assert "Installing requirements.lock" in call(clone, "make", "venv").stdout
    assert "Installing requirements-dev.lock" in call(clone, "make", "venv-dev").stdout
    (clone / "requirements.lock").write_text("django==5.2.19\n")
    without_hash = call(clone, "make", "venv")
    assert without_hash.returncode != 0
    assert "hash" in without_hash.stdout + without_hash.stderr
    assert not (clone / ".venv" / ".installed").exists()


def test_an_unsuitable_python_is_named(clone: Path) -> None:
    done = call(clone, "make", "venv", PYTHON="/bin/false")
    assert done.returncode != 0
    assert "PYTHON=/bin/false is not a Python 3.11, 3.12 or 3.13" in done.stderr
    assert not (clone / ".venv").exists()


def test_a_machine_without_python_is_told_what_to_do(clone: Path, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "make", "dirname", "cksum", "grep", "rm"):
        found = shutil.which(name)
        assert found is not None
        (programs / name).symlink_to(found)
    done = call(clone, "make", "venv", PATH=str(programs), PYTHON="")
    assert done.returncode != 0
    assert "Python 3.11, 3.12 or 3.13 is needed and was not found" in done.stderr


def test_locks_name_no_address() -> None:
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (ROOT / name).read_text()
        assert "--hash=sha256:" in text
        assert "://" not in text
