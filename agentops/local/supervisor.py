"""Keep a local stack running until somebody stops it; start again what dies."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from agentops.local.errors import LocalStackError
from agentops.local.plan import demo
from agentops.local.running import describe
from agentops.local.stack import Stack

PAUSE = 0.2
CALM_SECONDS = 60.0  # a process that ran this long has recovered: its count begins again
LIMIT = 5
FIRST_WAIT = 0.5  # doubled at each death
LONGEST_WAIT = 15.0
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequested(BaseException):
    """Somebody asked for an end. Not an Exception, so that nothing on the way mistakes it for a failure."""


@dataclass
class Deaths:
    """How often a process died lately, when it may be started again, and since when it is waited for until it is ready
    (monotonic seconds; None: it is running, or ready)."""

    count: int = 0
    again_at: float | None = None
    last_start: float = 0.0
    waited_since: float | None = None


def supervise(stack: Stack, /) -> None:
    """Start the stack, say where it is, and watch it until SIGINT, SIGTERM or SIGHUP; then stop all of it.

    Raises LocalStackError when it cannot start or a process dies too often; everything is stopped then too.
    """
    with stop_on_signals():
        try:
            with stack:
                _announce(stack)
                why = "a process gave up"
                try:
                    Watcher(stack=stack).watch()
                except StopRequested as request:
                    why = str(request)
                    raise
                finally:
                    ignore_signals()
                    stack.console.say(f"stopping ({why}) ...")
        except StopRequested:
            stack.console.say("stopped")


@contextmanager
def stop_on_signals() -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP raise StopRequested in here; afterwards their handlers are what they were."""
    previous = {number: signal.signal(number, _request_stop) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _request_stop(number: int, frame: FrameType | None) -> None:
    ignore_signals()  # a second Ctrl-C must not interrupt the stopping, which is bounded
    raise StopRequested(signal.Signals(number).name)


def ignore_signals() -> None:
    """From here on nothing interrupts the stopping."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)


class Watcher:
    """Looks after the processes of a started stack. ``limit`` is how many deaths without a calm time between end
    everything, ``longest_wait`` the longest pause in seconds before a start; both are for those who kill on purpose."""

    def __init__(self, *, stack: Stack, limit: int = LIMIT, longest_wait: float = LONGEST_WAIT) -> None:
        self.stack = stack
        self.limit = limit
        self.longest_wait = longest_wait
        now = time.monotonic()
        names = [*stack.servers(), *stack.programs]
        self.deaths = {name: Deaths(last_start=now) for name in names}
        self.ended: Counter[str] = Counter()  # "worker: exit status 1" → how often

    def watch(self) -> None:
        """Go on for ever. Raises LocalStackError when a process died ``limit`` times without a calm time between."""
        while True:
            self.look()
            self.stack.show_logs()
            time.sleep(PAUSE)

    def look(self) -> None:
        """Notice deaths and start again what is due, servers first. Waits for no program to become ready: one that
        needs a server would wait for a death that nobody sees meanwhile."""
        for name, deaths in self.deaths.items():
            status = self.stack.status(name)
            now = time.monotonic()
            if status is None:
                self._look_whether_ready(name, deaths, now=now)
            elif deaths.again_at is None:
                self._note_death(name, deaths, status=status, now=now)
            elif now >= deaths.again_at:
                self._start_again(name, deaths)

    def is_up(self, name: str) -> bool:
        """Whether it is running and, if it was started again, ready."""
        deaths = self.deaths[name]
        return deaths.again_at is None and deaths.waited_since is None and self.stack.status(name) is None

    def _note_death(self, name: str, deaths: Deaths, *, status: int, now: float) -> None:
        deaths.waited_since = None
        self.ended[f"{name}: {describe(status)}"] += 1
        deaths.count = 1 if now - deaths.last_start > CALM_SECONDS else deaths.count + 1
        log = self.stack.logs / f"{name}.log"
        if deaths.count >= self.limit:
            raise LocalStackError(
                f"{name} ended {self.limit} times in a row ({describe(status)}), so everything is stopped. See {log}"
            )
        wait = min(self.longest_wait, FIRST_WAIT * 2 ** min(deaths.count - 1, 10))
        deaths.again_at = now + wait
        self.stack.console.say(f"{name} ended ({describe(status)}); starting it again in {wait:g} s. Log: {log}")

    def _start_again(self, name: str, deaths: Deaths) -> None:
        deaths.last_start = time.monotonic()
        deaths.again_at, deaths.waited_since = None, deaths.last_start
        try:
            self.stack.begin(name)
        except LocalStackError as error:
            if name in self.stack.servers():
                raise  # its address is gone, so nothing can go on
            deaths.waited_since = None
            self.stack.console.say(str(error))  # one more death for the next look

    def _look_whether_ready(self, name: str, deaths: Deaths, *, now: float) -> None:
        if deaths.waited_since is None:
            return
        if self.stack.is_ready(name):
            deaths.waited_since = None
            self.stack.console.say(f"{name} is running again")
        elif now - deaths.waited_since > self.stack.patience(name):
            deaths.waited_since = now
            log = self.stack.logs / f"{name}.log"
            self.stack.console.say(f"{name} was started again and is still not ready. Log: {log}")


def _announce(stack: Stack) -> None:
    sign_ins = Path(stack.data_dir) / "demo_sign_ins.txt"
    lines = ["", f"Ready: {stack.env['PUBLIC_URL']}"]
    if "sandbox" in stack.programs:
        lines.append(f"Sandbox (stand-in for outside systems): {stack.sandbox_url}")
    if demo(stack.env) and sign_ins.exists():
        lines += ["", *sign_ins.read_text(encoding="utf-8").splitlines()]
    stack.console.say("\n".join([*lines, "", f"Data: {stack.data_dir}   Stop: Ctrl-C"]))
