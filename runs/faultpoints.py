"""Named crash points, one at every commit boundary. Inert unless armed through the environment, by tests only.

`FAULTPOINT=name` (or `name:once-file`) makes the process kill itself with SIGKILL when it reaches that name; with a
file, only the process that manages to create the file dies, so that the retry lives.
"""

import os
import signal
import time

NAMES = frozenset(
    {
        "run.claimed",
        "run.gathered.before",
        "run.gathered.after",
        "run.proposed.before",
        "run.proposed.after",
        "run.authorised.before",
        "run.authorised.after",
        "attempt.opened.before",
        "attempt.opened.after",
        "attempt.called",
        "attempt.recorded.before",
        "attempt.recorded.after",
        "probe.asked",
        "probe.recorded.before",
        "probe.recorded.after",
        "run.advanced.before",
        "run.advanced.after",
        "wait.begun",
        "wait.started",
        "wait.linked.before",
        "wait.linked.after",
        "wait.looked.before",
        "wait.looked.after",
        "statement.page.asked",
        "statement.page.stored.before",
        "statement.page.stored.after",
        "statement.judged.before",
        "statement.judged.after",
        "reversal.started",
        "reversal.linked.before",
        "reversal.linked.after",
        "reversal.booked.before",
        "reversal.booked.after",
    }
)


def reach(name: str) -> None:
    """Die here if armed. Raises ValueError for a name that is not in NAMES, so that no point goes untested."""
    if name not in NAMES:
        raise ValueError(f"{name} is not a named crash point")
    armed = os.environ.get("FAULTPOINT")
    if not armed:
        return
    target, _, marker = armed.partition(":")
    if target != name:
        return
    if marker:
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            return
    os.kill(os.getpid(), signal.SIGSTOP if os.environ.get("FAULTPOINT_SIGNAL") == "STOP" else signal.SIGKILL)
    time.sleep(0.01)  # a stop is delivered a moment later than the call returns
