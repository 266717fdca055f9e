"""Processes that may hold an open call: registered before their first one, recorded as ended with proof."""

import os
from functools import lru_cache

from django.db import connection, transaction

from reconciliation.models import WorkerProcess
from reconciliation.processes import ProcessName, has_ended, this_process
from runs import clock


@lru_cache(maxsize=2)
def _registered(pid: int, database: str) -> WorkerProcess:
    name = this_process()
    return WorkerProcess.objects.get_or_create(
        boot=name.boot, pid=name.pid, start_ticks=name.start_ticks, defaults={"host": name.host}
    )[0]


def current() -> WorkerProcess:
    """This process's row, made on first use (a forked child is another process)."""
    return _registered(os.getpid(), str(connection.settings_dict["NAME"]))


def record_ended() -> list[WorkerProcess]:
    """Mark every process of this machine that is gone, free the leases it held, and return those found."""
    gone = [
        one
        for one in WorkerProcess.objects.filter(ended_at__isnull=True, boot=this_process().boot)
        if has_ended(ProcessName(one.host, one.boot, one.pid, one.start_ticks))
    ]
    if gone:
        with transaction.atomic(durable=True):
            WorkerProcess.objects.filter(pk__in=[one.pk for one in gone], ended_at__isnull=True).update(
                ended_at=clock.now()
            )
            with connection.cursor() as cursor:
                # the holder cannot come back, so nobody has to wait for its lease to run out
                cursor.execute(
                    "UPDATE runs_run SET lease_until = clock_timestamp()"
                    " WHERE lease_holder = ANY(%s) AND lease_until > clock_timestamp()",
                    [[str(one.pk) for one in gone]],
                )
    return gone
