"""Named resources: two operations that touch the same one are never in flight at once.

A row is taken with the attempt, and the database deletes it when the operation leaves flight, so it outlives a killed
worker exactly as long as its operation is not settled: what is not confirmed may still happen, and keeps others out.
Names are taken in Python's order, after the totals and before the tool's own row.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection, transaction

from reconciliation.models import Operation, ResourceHold
from runs import transitions
from runs.models import Run

PREFIX = "resource:"  # of `run.waits_on`, before the name


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """Another run's operation holds `name`."""

    name: str
    holder: str

    @property
    def waits_for(self) -> str:
        return f"“{self.holder}” to finish with {self.name}"

    @property
    def waits_on(self) -> str:
        return PREFIX + self.name


def take(*, operation: Operation, names: Sequence[str]) -> Busy | None:
    """Take every name for the locked operation or none; in the caller's transaction. None when all are its own now."""
    wanted = sorted(set(names))
    if not wanted:
        return None
    values = ", ".join(["(%s, %s)"] * len(wanted))
    given = [part for name in wanted for part in (name, operation.pk)]
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO reconciliation_resourcehold (name, operation_id) VALUES {values}"
            " ON CONFLICT (name) DO NOTHING RETURNING name",
            given,
        )
        taken = {row[0] for row in cursor.fetchall()}
    missing = [name for name in wanted if name not in taken]
    if not missing:
        return None
    let_go(operation=operation)
    holder = ResourceHold.objects.filter(name=missing[0]).select_related("operation__run").first()
    return Busy(name=missing[0], holder=holder.operation.run.title if holder else "another run")


def let_go(*, operation: Operation) -> None:
    """Give back what was taken for an operation that is not sent after all; in the caller's transaction. The database
    lets none in flight let go."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT reconciliation_give_back(%s)", [operation.pk])


# of each resource that nobody holds, whoever wanted it first; a run that was woken and lost it keeps its place, and one
# whose step fails looks again in its own time
_FREE = """
SELECT DISTINCT ON (waits_on) id FROM runs_run r
 WHERE waits_on <> '' AND starts_with(waits_on, 'resource:') AND finished_at IS NULL AND lease_until IS NULL
   AND wake_at > clock_timestamp() AND claims_in_row = 0
   AND NOT EXISTS (SELECT FROM reconciliation_resourcehold h WHERE 'resource:' || h.name = r.waits_on)
 ORDER BY waits_on, (SELECT max(o.created_at) FROM reconciliation_operation o WHERE o.run_id = r.id), id
"""


def wake_waiting() -> int:
    """Wake the next run for each resource that is free now; returns how many. One durable transaction a run."""
    with connection.cursor() as cursor:
        cursor.execute(_FREE)
        found = [row[0] for row in cursor.fetchall()]
    woken = 0
    for run_id in found:
        with transaction.atomic(durable=True):
            run = Run.objects.select_for_update(of=("self",), skip_locked=True).filter(pk=run_id).first()
            if run is not None and run.waits_on.startswith(PREFIX):
                transitions.wake(run=run)
                woken += 1
    return woken
