"""The messenger: spreads what the record says about requests, sends mail and calls webhooks. A process of its own, so
that a dead mail server or a slow endpoint keeps neither the relay nor a worker; any number may run.

Each job has threads of its own, so that none waits for another. What a job did last is noted as recurring work.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.db import DatabaseError, InterfaceError, OperationalError, connection

from agentops.telling.case_mail import tell_next
from agentops.telling.hooks import deliver_next
from agentops.telling.mailer import send_next
from approvals.services.telling import spread
from runs.services import recurring

log = logging.getLogger(__name__)
POLL_SECONDS = 1.0
NOTED_SECONDS = 5
FAILED_SECONDS = 10.0
BATCH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """`work` does a little and says how much; `threads` do it side by side."""

    name: str
    work: Callable[[], int]
    threads: int = 1


JOBS = (
    Job(name="spreading of what is to be told", work=lambda: spread(limit=BATCH)),
    Job(name="mail", work=send_next, threads=2),
    Job(name="mail about cases", work=tell_next),
    Job(name="webhooks", work=deliver_next, threads=4),
)
NAMES = tuple(job.name for job in JOBS)


def _loop(job: Job, stop: threading.Event) -> None:
    noted, counted = float("-inf"), 0
    while not stop.is_set():
        try:
            mine = time.monotonic() - noted >= NOTED_SECONDS and recurring.begin(name=job.name, every=NOTED_SECONDS)
            if mine:
                noted = time.monotonic()
            done = _done(job)
            counted += max(done, 0)
            if mine:
                words = f"{counted} since the turn before" if done >= 0 else "failed; the log says why"
                recurring.finish(name=job.name, result=words, failed=done < 0)
                counted = 0
        except (DatabaseError, InterfaceError) as problem:
            log.warning("the database cannot be used, trying again: %s", problem)
            connection.close()
            done = 0
        if done <= 0:
            stop.wait(POLL_SECONDS if done == 0 else FAILED_SECONDS)
    connection.close()


def _done(job: Job) -> int:
    """How much was done; -1 when it failed in a way that nobody foresaw, which must not end the thread."""
    try:
        return job.work()
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        log.exception("%s", job.name)
        return -1


def run_forever(*, stop: threading.Event, jobs: Sequence[Job] = JOBS) -> None:
    """Until `stop` is set; each thread ends what it is at first."""
    threads = [
        threading.Thread(target=_loop, args=(job, stop), name=f"{job.name} {number}")
        for job in jobs
        for number in range(job.threads)
    ]
    for thread in threads:
        thread.start()
    log.info("messenger at work")
    for thread in threads:
        while thread.is_alive():
            thread.join(timeout=1.0)
