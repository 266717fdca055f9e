"""What a person sees of the stack: our own lines, and the processes' logs as they grow."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

COLOURS = ("36", "32", "33", "35", "34", "31")
WIDTH = 9
LIMIT = 20_000_000  # bytes of one log while its process runs; the older part is then set aside


class Console:
    """Prints ``time name | text``, in colour on a terminal unless NO_COLOR is set. ``quiet`` prints nothing."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self._colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        self._names: list[str] = []

    def say(self, text: str, /, *, name: str = "stack") -> None:
        """Print each line of ``text`` under ``name``."""
        if self.quiet:
            return
        if name not in self._names:
            self._names.append(name)
        label = f"{time.strftime('%H:%M:%S')} {name:<{WIDTH}} |"
        if self._colour:
            label = f"\x1b[{COLOURS[self._names.index(name) % len(COLOURS)]}m{label}\x1b[0m"
        try:
            for line in text.splitlines() or [""]:
                print(label, line)
            sys.stdout.flush()
        except (BrokenPipeError, OSError):
            self.quiet = True  # nobody reads any more; the processes and their logs go on


class LogFollower:
    """Hands out the complete lines that were added to a log since the last call, and keeps the file from growing
    without end. The processes write to files themselves, so their lines outlive a killed supervisor."""

    def __init__(self, *, path: Path) -> None:
        self.path = path
        self._offset = path.stat().st_size if path.exists() else 0
        self._rest = b""

    def lines(self) -> list[str]:
        """The new lines, oldest first, control characters removed (a log line must not steer the terminal)."""
        if not self.path.exists():
            return []
        size = self.path.stat().st_size
        if size < self._offset:
            self._offset, self._rest = 0, b""
        with self.path.open("rb") as file:
            file.seek(self._offset)
            new = file.read()
        self._offset += len(new)
        *whole, self._rest = (self._rest + new).split(b"\n")
        if self._offset > LIMIT:
            self._set_aside()
        return [_printable(line.decode("utf-8", "replace")) for line in whole]

    def _set_aside(self) -> None:
        # Copied and emptied rather than renamed: the process goes on appending to the file it has open.
        shutil.copyfile(self.path, self.path.with_name(self.path.name + ".1"))
        os.truncate(self.path, 0)
        self._offset, self._rest = 0, b""


def _printable(line: str) -> str:
    return "".join(character for character in line.rstrip() if character == "\t" or character.isprintable())
