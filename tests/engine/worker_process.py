"""Real workers: processes that advance one run, may be told to kill or freeze themselves at a crash point, and end.

A parent with everything imported forks one worker for each line on its input, as Celery's prefork pool does. The line
is a JSON object: {"start": {…}} answers {"pid": …}; {"wait": pid, "seconds": …} answers {"status": …}, null when it is
still there.
"""

import datetime as dt
import json
import os
import sys
import time
from typing import Any

REVERSALS = "reversals"  # in place of a run: what the relay does about them, once
PARKED = ("awaiting_approval", "needs_person")


def is_parked(run: Any) -> bool:
    """Over, or waiting for people, an event, another run or a time that is not near."""
    from runs import clock

    if run.state == "waiting":
        return run.wake_at is None or (run.wake_at - clock.now()).total_seconds() > 5
    return run.is_over or run.state in PARKED


def _shift_clock(seconds: float) -> None:
    """This process's own idea of the time of day is wrong by so much."""
    from django.utils import timezone

    real, right = time.time, timezone.now
    time.time = lambda: real() + seconds
    timezone.now = lambda: right() + dt.timedelta(seconds=seconds)


def work(job: dict[str, Any]) -> None:
    """What a worker does: the run, again and again, until it is over or waits for people."""
    import dj_database_url
    from django.conf import settings
    from django.db import InterfaceError, OperationalError, connections

    from agentops import engine, undoing
    from reconciliation.services import processes
    from runs.models import Run
    from tests.engine import known
    from tests.engine.quick import quicken_for_good

    parsed = dj_database_url.parse(job["database"])
    kept = {key: parsed[key] for key in ("NAME", "USER", "PASSWORD", "HOST", "PORT")}
    connections["default"].settings_dict.update(kept)
    if idle := job["env"].get("IDLE_IN_TRANSACTION_MS"):
        options = connections["default"].settings_dict["OPTIONS"]
        options["options"] += f" -c idle_in_transaction_session_timeout={idle}"
    for name, value in job["settings"].items():
        setattr(settings, name, value)
    os.environ.update(job["env"])
    time.tzset()
    quicken_for_good()
    if off := float(job["env"].get("CLOCK_OFF", 0)):
        _shift_clock(off)
    known.learn(scripted=job["scripted"])
    if job["run"] == REVERSALS:
        undoing.work_off(limit=10)
        return
    deadline = time.monotonic() + job["seconds"]
    while time.monotonic() < deadline:
        try:
            processes.record_ended()
            engine.advance(run_id=job["run"])
            run = Run.objects.get(pk=job["run"])
        except (OperationalError, InterfaceError):  # as a message that failed: the relay hints again
            connections["default"].close()
        else:
            if is_parked(run):
                return
        time.sleep(0.05)


def _start(job: dict[str, Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        work(job)
        status = 0
    finally:
        sys.stderr.flush()
        os._exit(status)


def _wait(pid: int, seconds: float) -> int | None:
    deadline = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            return None
        time.sleep(0.02)


def main() -> None:
    import django

    django.setup()
    from agentops import engine

    assert engine.STEPS  # everything a worker needs is imported before the first one is forked
    for line in sys.stdin:
        told = json.loads(line)
        answer = {"pid": _start(told["start"])} if "start" in told else {"status": _wait(told["wait"], told["seconds"])}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
