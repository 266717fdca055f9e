"""Processes that may hold an open call: registered before their first one, recorded as ended with proof."""

import os
from functools import lru_cache

from django.db import connection, transaction

from reconciliation.models import WorkerProcess
from reconciliation.processes import ProcessName, has_ended, kernel_of, this_process
from runs import clock, hot, record
from runs.services import principals


@lru_cache(maxsize=2)
def _registered(pid: int, database: str) -> WorkerProcess:
    name = this_process()
    return WorkerProcess.objects.get_or_create(
        boot=name.boot, pid=name.pid, start_ticks=name.start_ticks, ended_at=None, defaults={"host": name.host}
    )[0]


def current() -> WorkerProcess:
    """This process's row, made on first use (a forked child is another process)."""
    return _registered(os.getpid(), hot.database())


def anew() -> WorkerProcess:
    """Another row for this process: somebody said that it had ended, and it is here. What it sent as the old one counts
    as sent by a process that is gone."""
    _registered.cache_clear()
    return current()


def hold(*, process: WorkerProcess) -> bool:
    """Hold the process's row FOR SHARE until the transaction ends, as the last of its locks: nobody records its end
    meanwhile. False when that was done already: then it may open no attempt."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT ended_at IS NULL FROM reconciliation_workerprocess WHERE id = %s FOR SHARE", [process.pk]
        )  # fmt: skip
        row = cursor.fetchone()
    return row is not None and row[0]


def record_ended() -> list[WorkerProcess]:
    """Mark every process of this machine that is gone, free the leases it held, and return those marked."""
    gone = [
        one
        for one in WorkerProcess.objects.filter(ended_at__isnull=True, boot=this_process().boot)
        if has_ended(ProcessName(one.host, one.boot, one.pid, one.start_ticks))
    ]
    if not gone:
        return []
    with transaction.atomic(durable=True):
        return _end(gone)


def record_earlier_boots() -> list[WorkerProcess]:
    """Mark every process of this host's name that ran under another kernel, and return those marked.

    Only for a database that no other machine of this name uses: a kernel that is not the running one has ended with
    all its processes, provided that it was this machine's. Does nothing where the kernel cannot be told.
    """
    here = this_process()
    kernel = kernel_of(here.boot)
    if not kernel:
        return []
    known = WorkerProcess.objects.filter(ended_at__isnull=True, host=here.host)
    gone = [one for one in known if kernel_of(one.boot) not in ("", kernel)]
    if not gone:
        return []
    with transaction.atomic(durable=True):
        ended = _end(gone)
        record.append_system(
            topic="processes",
            kind="processes.ended",
            actor=principals.system(),
            why="they ran before this machine was started",
            processes=[str(one.pk) for one in ended],
        )
        return ended


_HELD = "SELECT id, lease_holder FROM runs_run WHERE lease_holder = ANY(%s) AND lease_until > clock_timestamp()"


def _end(gone: list[WorkerProcess]) -> list[WorkerProcess]:
    """Mark them and free their leases: the holder cannot come back, so nobody has to wait for those to run out.

    Waits for no lock, since it takes many: a process that is being marked elsewhere, or whose run somebody has locked
    at this moment, is left for the next time.
    """
    free = WorkerProcess.objects.select_for_update(no_key=True, skip_locked=True).order_by("id")
    ended = list(free.filter(pk__in=[one.pk for one in gone], ended_at__isnull=True))
    holders = [str(one.pk) for one in ended]
    with connection.cursor() as cursor:
        cursor.execute(f"{_HELD} ORDER BY id FOR NO KEY UPDATE SKIP LOCKED", [holders])
        locked = dict(cursor.fetchall())
        cursor.execute(_HELD, [holders])
        busy = {holder for run_id, holder in cursor.fetchall() if run_id not in locked}
        freed = [run_id for run_id, holder in locked.items() if holder not in busy]
        cursor.execute("UPDATE runs_run SET lease_until = clock_timestamp() WHERE id = ANY(%s)", [freed])
    ended = [one for one in ended if str(one.pk) not in busy]
    WorkerProcess.objects.filter(pk__in=[one.pk for one in ended]).update(ended_at=clock.now())
    return ended
