"""One worker at a time on a run. A claim is one UPDATE; its token guards every later write that advances the run.

The token only grows. A worker that was frozen past its lease holds an old token and advances nothing any more, yet
whatever it learned is still stored as an observation, which needs no token.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from runs import hot
from runs.models import Run
from runs.services import principals


@dataclass(slots=True)
class Lease:
    """`worked`: a whole step succeeded under it, which the next write of this worker notes. `run`: the run as it was
    claimed, or as it was left by the last commit under this lease; None when something else may have changed it.
    `points`: the crash points that the commit under way stands for."""

    run_id: uuid.UUID
    token: int
    worked: bool = field(default=False, compare=False)
    run: Run | None = field(default=None, compare=False, repr=False)
    points: list[str] = field(default_factory=list, compare=False, repr=False)


class LeaseLost(Exception):
    """Somebody else claimed the run meanwhile; stop at once, nothing was written."""


_RUN = hot.columns(model=Run)
_CLAIM = f"""
UPDATE runs_run SET lease_token = lease_token + 1, lease_holder = %(holder)s, claims_in_row = claims_in_row + 1,
       woken = FALSE, lease_until = clock_timestamp() + make_interval(secs => %(seconds)s)
 WHERE id = %(run)s AND finished_at IS NULL AND wake_at <= clock_timestamp()
   AND (lease_until IS NULL OR lease_until < clock_timestamp())
RETURNING {_RUN}, """
# one statement locks the row, renews the lease and reads the run as it is now; without `seconds` the lease stays
_HOLD = f"""
UPDATE runs_run SET lease_until = CASE WHEN %(seconds)s::float IS NULL THEN lease_until
                                  ELSE clock_timestamp() + make_interval(secs => %(seconds)s::float) END,
       claims_in_row = CASE WHEN %(worked)s THEN 0 ELSE claims_in_row END
 WHERE id = %(run)s AND lease_token = %(token)s AND lease_until IS NOT NULL
RETURNING {_RUN}, """


def claim(*, run_id: uuid.UUID, holder: str, seconds: float, any_freeze: str = "NULL") -> Lease | None:
    """Take the run if it is due and free; None otherwise. `any_freeze` as for `hold`."""
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM + any_freeze, {"run": run_id, "holder": holder[:200], "seconds": seconds})
        row = cursor.fetchone()
    if row is None:
        return None
    run = _read(row)
    return Lease(run_id, run.lease_token, run=run)


def hold(*, lease: Lease, seconds: float | None = None, any_freeze: str = "NULL") -> Run:
    """Lock the run's row for this transaction, renewing the lease if asked. Raises LeaseLost when it is not ours.

    `any_freeze` is the condition in SQL that asks for one (`approvals.freezes.ANY`, of which this app knows nothing);
    what it comes to is `run.any_freeze`."""
    given: dict[str, Any] = {"run": lease.run_id, "token": lease.token, "seconds": seconds, "worked": lease.worked}
    with connection.cursor() as cursor:
        cursor.execute(_HOLD + any_freeze, given)
        row = cursor.fetchone()
    if row is None:
        raise LeaseLost(str(lease.run_id))
    return principals.known(run=_read(row))


def is_held(*, lease: Lease, run: Run) -> bool:
    """Whether the locked run is this worker's still."""
    return run.lease_token == lease.token and run.lease_until is not None


def _read(row: Sequence[Any]) -> Run:
    run = hot.from_row(model=Run, row=row[:-1])
    run.any_freeze = row[-1]
    return run


def worked(*, lease: Lease) -> None:
    """A whole step succeeded, so the claims in a row are counted anew, with the next write under this lease.

    A commit in the middle of a step does not count: a step that reads, commits and then always fails would never end.
    """
    lease.worked = True
