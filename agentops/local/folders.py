"""The data folder, its locks, and the short-lived private folders for sockets."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

from agentops.local.errors import LocalStackError

RUNTIME_PREFIX = "agentops-"
LOCK_SECONDS = 2.0  # a killed stack needs a moment to end


def prepare_data_dir(path: Path, /) -> Path:
    """Make the data folder (0700, it holds passwords and customers' data) and return its real path.

    Raises LocalStackError, naming AGENTOPS_DATA, when it cannot be made or written to.
    """
    remedy = "Set AGENTOPS_DATA to a folder you can write to, for example AGENTOPS_DATA=~/agentops-data make run."
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = path.resolve(strict=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise LocalStackError(f"The data folder {path} cannot be written to: {error.strerror}. {remedy}") from error
    return path


class FolderLock:
    """An exclusive lock that lives as long as any process that inherited its descriptor.

    The servers inherit it on purpose: should one outlive its supervisor, the lock says so, and a stale pid file
    never has to be believed.
    """

    def __init__(self, *, path: Path, busy: str) -> None:
        self.path = path
        self.busy = busy
        self._descriptor: int | None = None

    @property
    def descriptor(self) -> int:
        """The open file descriptor, for ``pass_fds``. Raises RuntimeError when the lock isn't held."""
        if self._descriptor is None:
            raise RuntimeError(f"{self.path} is not locked")
        return self._descriptor

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._descriptor is not None

    def acquire(self) -> None:
        """Take the lock, waiting up to LOCK_SECONDS.

        Raises LocalStackError with the text ``busy`` when somebody else keeps it.
        """
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    os.close(descriptor)
                    raise LocalStackError(self.busy) from None
                time.sleep(0.05)
        self._descriptor = descriptor

    def release(self) -> None:
        """Let go (nothing happens if it isn't held)."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class RuntimeDir:
    """A new folder with a short path for sockets: socket paths end at 107 bytes, data folders may be longer.

    Its name is random, so nobody can lay it out beforehand, and is noted in the data folder, so that the next start
    removes what a killed one left behind.
    """

    def __init__(self, *, note: Path) -> None:
        self.note = note
        self.path: Path | None = None

    def create(self, *, mode: int = 0o700) -> Path:
        """Remove the leftovers of an earlier start and return a new empty folder."""
        self.remove()
        self.path = Path(tempfile.mkdtemp(prefix=RUNTIME_PREFIX, dir=_short_temporary_dir()))
        self.path.chmod(mode)
        self.note.write_text(str(self.path), encoding="utf-8")
        return self.path

    def remove(self) -> None:
        """Remove the folder of this start or of the noted one, but only if it looks like ours."""
        noted = Path(self.note.read_text(encoding="utf-8").strip()) if self.note.exists() else None
        for path in {self.path, noted} - {None}:
            assert path is not None
            ours = path.name.startswith(RUNTIME_PREFIX) and path.is_dir() and not path.is_symlink()
            if ours and path.stat().st_uid == os.getuid():
                shutil.rmtree(path, ignore_errors=True)
        self.path = None
        self.note.unlink(missing_ok=True)


def _short_temporary_dir() -> str:
    return "/tmp" if os.access("/tmp", os.W_OK | os.X_OK) else tempfile.gettempdir()


def open_log(path: Path, /, *, limit: int = 5_000_000) -> int:
    """Open a log file (0600) for appending and return the descriptor; over ``limit`` bytes it is set aside first."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > limit:
        path.replace(path.with_name(path.name + ".1"))
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def tail(path: Path, /, *, since: int, lines: int = 8) -> str:
    """The last lines that were added to a log after its first ``since`` bytes, indented, for an error message ('' if
    there are none). A log that is shorter by now was set aside since, and all of it is new."""
    size = path.stat().st_size if path.exists() else 0
    if size == 0:
        return ""
    with path.open("rb") as file:
        file.seek(max(since if since <= size else 0, size - 16_384))
        last = file.read().decode("utf-8", "replace").splitlines()[-lines:]
    return "".join(f"\n    {line}" for line in last)
