"""What the programs of a stack have used of the machine."""

import os
from pathlib import Path

from agentops.local.stack import Stack

TICKS = os.sysconf("SC_CLK_TCK")


def say(text: str = "") -> None:
    """A line for whoever waits."""
    print(text, flush=True)


def seconds_used(*, stack: Stack, name: str) -> float:
    """Seconds of processor time that a program has used so far, its children's with it; see proc(5), stat."""
    leaders = stack.pids(name)
    total = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, rest = int(path.parent.name), path.read_text().rpartition(")")[2].split()
        except OSError:  # it ended just now
            continue
        if pid in leaders or int(rest[1]) in leaders:
            total += int(rest[11]) + int(rest[12])
        if pid in leaders:  # and of its children that have ended
            total += int(rest[13]) + int(rest[14])
    return total / TICKS
