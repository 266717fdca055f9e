"""Keep a local stack running until somebody stops it; start again what dies."""

from __future__ import annotations

import signal
import time
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
    """How often a process died lately, and when it may be started again (monotonic seconds; None: it is running)."""

    count: int = 0
    again_at: float | None = None
    last_start: float = 0.0


def supervise(stack: Stack, /) -> None:
    """Start the stack, say where it is, and watch it until SIGINT, SIGTERM or SIGHUP; then stop all of it.

    Raises LocalStackError when it cannot start or a process dies too often; everything is stopped then too.
    """
    previous = {number: signal.signal(number, _request_stop) for number in STOPPING}
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
                _ignore_signals()
                stack.console.say(f"stopping ({why}) ...")
    except StopRequested:
        stack.console.say("stopped")
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _request_stop(number: int, frame: FrameType | None) -> None:
    _ignore_signals()  # a second Ctrl-C must not interrupt the stopping, which is bounded
    raise StopRequested(signal.Signals(number).name)


def _ignore_signals() -> None:
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)


class Watcher:
    """Looks after the processes of a started stack."""

    def __init__(self, *, stack: Stack) -> None:
        self.stack = stack
        now = time.monotonic()
        names = [*stack.servers(), *stack.programs]
        self.deaths = {name: Deaths(last_start=now) for name in names}

    def watch(self) -> None:
        """Go on for ever. Raises LocalStackError when a process died LIMIT times without a calm time between."""
        while True:
            self.look()
            self.stack.show_logs()
            time.sleep(PAUSE)

    def look(self) -> None:
        """Notice deaths and start again what is due, servers first."""
        for name, deaths in self.deaths.items():
            status = self.stack.status(name)
            if status is None:
                continue
            now = time.monotonic()
            if deaths.again_at is None:
                self._note_death(name, deaths, status=status, now=now)
            elif now >= deaths.again_at:
                self._start_again(name, deaths)

    def _note_death(self, name: str, deaths: Deaths, *, status: int, now: float) -> None:
        deaths.count = 1 if now - deaths.last_start > CALM_SECONDS else deaths.count + 1
        log = self.stack.logs / f"{name}.log"
        if deaths.count >= LIMIT:
            raise LocalStackError(
                f"{name} ended {LIMIT} times in a row ({describe(status)}), so everything is stopped. See {log}"
            )
        wait = min(LONGEST_WAIT, FIRST_WAIT * 2 ** (deaths.count - 1))
        deaths.again_at = now + wait
        self.stack.console.say(f"{name} ended ({describe(status)}); starting it again in {wait:g} s. Log: {log}")

    def _start_again(self, name: str, deaths: Deaths) -> None:
        deaths.again_at, deaths.last_start = None, time.monotonic()
        try:
            self.stack.start(name)
        except LocalStackError as error:
            if name in self.stack.servers():
                raise  # its address is gone, so nothing can go on
            self.stack.console.say(str(error))  # one more death for the next look, if it did end
        else:
            self.stack.console.say(f"{name} is running again")


def _announce(stack: Stack) -> None:
    sign_ins = Path(stack.data_dir) / "demo_sign_ins.txt"
    lines = ["", f"Ready: {stack.env['PUBLIC_URL']}"]
    if "sandbox" in stack.programs:
        lines.append(f"Sandbox (stand-in for outside systems): {stack.sandbox_url}")
    if demo(stack.env) and sign_ins.exists():
        lines += ["", *sign_ins.read_text(encoding="utf-8").splitlines()]
    stack.console.say("\n".join([*lines, "", f"Data: {stack.data_dir}   Stop: Ctrl-C"]))
