"""Kills and freezes, by process id, of the stack's own processes alone. Each counts only once it was seen: a kill when
the process is gone and another is in its place and ready, a freeze when the kernel showed it stopped and it went on.

Everything here happens in the main thread, which also starts processes again, so no number can have changed hands.
"""

import os
import signal
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentops.chaos.schedule import Blow
from agentops.chaos.stack import CHILDREN, WORKERS
from agentops.local.stack import Stack
from agentops.local.supervisor import Watcher

NAMES = {"web": "web", "relay": "relay", "postgres": "postgres", "broker": "valkey"}
AT_ONCE = 2  # parts being started again at one time; on a slow machine nothing would ever be up otherwise
RECOVERED = 60.0  # seconds after which a part that is not back is left to the report


@dataclass(slots=True)
class _Hit:
    """A blow that has been dealt and is not yet seen through."""

    blow: Blow
    name: str  # the program or server
    pids: tuple[int, ...]
    until: float  # frozen: when to let go; killed: when to stop waiting for its successor
    seen_stopped: bool = False


class Storm:
    """Deals the blows of a schedule as they come due; one that finds its part down or frozen waits until it is up, and
    all wait while several are being started again."""

    def __init__(self, *, stack: Stack, watcher: Watcher, blows: Sequence[Blow]) -> None:
        self.stack, self.watcher = stack, watcher
        self.waiting = list(blows)
        self.hits: list[_Hit] = []
        self.kills: Counter[str] = Counter()
        self.freezes: Counter[str] = Counter()

    def step(self, *, elapsed: float) -> None:
        """Deal what is due `elapsed` seconds into the storm, and look what became of earlier blows."""
        self.look()
        for blow in [one for one in self.waiting if one.at <= elapsed]:
            if sum(hit.blow.act == "kill" for hit in self.hits) < AT_ONCE and self._deal(blow):
                self.waiting.remove(blow)

    def look(self) -> None:
        """See earlier blows through: let go of what was frozen long enough, count what has recovered."""
        now = time.monotonic()
        for hit in list(self.hits):
            if hit.blow.act == "freeze":
                hit.seen_stopped = hit.seen_stopped or all(_state(pid) == "T" for pid in hit.pids)
                if now >= hit.until:
                    self._let_go(hit)
            elif self._replaced(hit):
                self.kills[hit.blow.part] += 1
                self.hits.remove(hit)
            elif now >= hit.until:
                self.hits.remove(hit)

    def calm(self) -> None:
        """No blow any more; nothing stays frozen."""
        self.waiting.clear()
        for hit in [one for one in self.hits if one.blow.act == "freeze"]:
            self._let_go(hit)

    def _deal(self, blow: Blow) -> bool:
        name = self._name(blow)
        pids = self._targets(blow, name) if name else ()
        if not pids:
            return False
        now = time.monotonic()
        number = signal.SIGKILL if blow.act == "kill" else signal.SIGSTOP
        sent = tuple(pid for pid in pids if _signal(pid, number))
        until = now + (blow.seconds if blow.act == "freeze" else RECOVERED)
        self.hits.append(_Hit(blow, name, sent, until))
        return True

    def _name(self, blow: Blow) -> str:
        """The program or server to hit: one that is up and that no earlier blow still holds; empty if there is none."""
        names = [NAMES[blow.part]] if blow.part in NAMES else list(WORKERS)
        held = {hit.name for hit in self.hits}
        free = [name for name in names if name not in held and self.watcher.is_up(name)]
        return free[int(blow.pick * len(free))] if free else ""

    def _targets(self, blow: Blow, name: str) -> tuple[int, ...]:
        pids = self.stack.pids(name)
        if blow.part == "worker child":
            children = pids[1:]
            whole = len(children) >= CHILDREN
            return (children[int(blow.pick * 997) % len(children)],) if whole else ()
        if blow.part == "postgres" and blow.act == "freeze":
            return (*pids, *_children(pids[0])) if pids else ()  # its own processes each lead a session
        return tuple(pids[:1])

    def _replaced(self, hit: _Hit) -> bool:
        if any(_state(pid) not in ("", "Z", "X") for pid in hit.pids) or not self.watcher.is_up(hit.name):
            return False
        now = self.stack.pids(hit.name)
        whole = len(now) > CHILDREN or hit.name not in WORKERS
        return bool(now) and whole and not set(now) & set(hit.pids)

    def _let_go(self, hit: _Hit) -> None:
        for pid in hit.pids:
            _signal(pid, signal.SIGCONT)
        if hit.seen_stopped:
            self.freezes[hit.blow.part] += 1
        self.hits.remove(hit)


def _signal(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def _stat(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def _state(pid: int) -> str:
    """The kernel's letter for the process: T is stopped, Z a corpse; empty when there is none."""
    fields = _stat(pid)
    return fields[0] if fields else ""


def _children(parent: int) -> list[int]:
    numbers = [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]
    return [pid for pid in numbers if (fields := _stat(pid)) and int(fields[1]) == parent]
