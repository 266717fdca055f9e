"""One worker at a time on a run. A claim is one UPDATE; its token guards every later write that advances the run.

The token only grows. A worker that was frozen past its lease holds an old token and advances nothing any more, yet
whatever it learned is still stored as an observation, which needs no token.
"""

import uuid
from dataclasses import dataclass

from django.db import connection

from runs.models import Run


@dataclass(frozen=True, slots=True)
class Lease:
    run_id: uuid.UUID
    token: int


class LeaseLost(Exception):
    """Somebody else claimed the run meanwhile; stop at once, nothing was written."""


_CLAIM = """
UPDATE runs_run SET lease_token = lease_token + 1, lease_holder = %(holder)s, claims_in_row = claims_in_row + 1,
       woken = FALSE, lease_until = clock_timestamp() + make_interval(secs => %(seconds)s)
 WHERE id = %(run)s AND finished_at IS NULL AND wake_at <= clock_timestamp()
   AND (lease_until IS NULL OR lease_until < clock_timestamp())
RETURNING lease_token
"""


def claim(*, run_id: uuid.UUID, holder: str, seconds: float) -> Lease | None:
    """Take the run if it is due and free; None otherwise."""
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, {"run": run_id, "holder": holder[:200], "seconds": seconds})
        row = cursor.fetchone()
    return None if row is None else Lease(run_id, row[0])


def hold(*, lease: Lease, seconds: float | None = None) -> Run:
    """Lock the run's row for this transaction, renewing the lease if asked. Raises LeaseLost when it is not ours."""
    run = Run.objects.select_for_update(of=("self",)).filter(pk=lease.run_id, lease_token=lease.token).first()
    if run is None or run.lease_until is None:
        raise LeaseLost(str(lease.run_id))
    if seconds is not None:
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE runs_run SET lease_until = clock_timestamp() + make_interval(secs => %s) WHERE id = %s",
                [seconds, lease.run_id],
            )
    return run


def worked(*, lease: Lease) -> None:
    """A whole step succeeded, so the claims in a row are counted anew.

    A commit in the middle of a step does not count: a step that reads, commits and then always fails would never end.
    """
    Run.objects.filter(pk=lease.run_id, lease_token=lease.token, claims_in_row__gt=0).update(claims_in_row=0)
