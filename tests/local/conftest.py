"""Folders for real servers: a path with a space, longer than a socket's path may be, that others cannot enter."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentops.local.postgres import EmbeddedPostgres
from tests.conftest import copied

SOCKET_PATH_LIMIT = 107


@contextmanager
def awkward_folder() -> Iterator[Path]:
    top = Path(tempfile.mkdtemp(prefix="local stack "))
    home = top / ("a long name " * 10).strip()
    home.mkdir(mode=0o700)
    folder = home / "data"
    assert len(os.fsencode(folder)) > SOCKET_PATH_LIMIT
    yield folder
    shutil.rmtree(top)


@pytest.fixture
def new_dir() -> Iterator[Path]:
    """A data folder that doesn't exist yet."""
    with awkward_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def prepared() -> Iterator[Path]:
    """A data folder with a new cluster, to be copied: making one takes longer than most tests."""
    with awkward_folder() as folder:
        with EmbeddedPostgres(folder, tests=True):
            pass
        yield folder


@pytest.fixture
def data_dir(new_dir: Path, prepared: Path) -> Path:
    """A data folder whose database has run before."""
    return copied(prepared, new_dir)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Locks are given up at once."""
    monkeypatch.setattr("agentops.local.folders.LOCK_SECONDS", 0.0)


@pytest.fixture(scope="module")
def shared() -> Iterator[EmbeddedPostgres]:
    """One server for the tests of a module that do it no harm; each makes databases of its own."""
    with awkward_folder() as folder, EmbeddedPostgres(folder, tests=True) as server:
        yield server
