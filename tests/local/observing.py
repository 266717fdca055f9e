"""What tests of processes look at: is it there, whose is it, did it happen in time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path


def eventually(condition: Callable[[], bool], /, *, seconds: float = 120.0) -> None:
    """Wait until ``condition`` holds; fail the test when it doesn't within ``seconds``."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {condition}"
        time.sleep(0.02)


def alive(pid: int, /) -> bool:
    """Whether the process runs (one that ended and waits to be collected doesn't)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in {"Z", "X"}


def uid(pid: int, /) -> int:
    """The user the process runs as."""
    return os.stat(f"/proc/{pid}").st_uid
