"""Who has a run that needs a person: a claim lapses, and one of somebody who may no longer act is nobody's."""

import datetime as dt

from runs import clock, record, rights
from runs.models import Event, Principal, Run

CLAIM_LAPSES = dt.timedelta(minutes=30)
OPERATE = "runs.operate_run"
CLAIMED = "run.claimed_by_person"


def awaited(*, run: Run) -> str:
    """What a run that needs a person waits for, as words after "waits for"."""
    return f"{holder(run=run) or 'a person'} to go on"


def holder(*, run: Run) -> Principal | None:
    """The owner whose claim still keeps others out. Reads the claim's time from the run's record."""
    if run.owner is None:
        return None
    claims = Event.objects.filter(stream=record.stream_of(run_id=run.pk), kind=CLAIMED, actor=run.owner).order_by(
        "-seq"
    )
    claimed_at = claims.values_list("at", flat=True).first() or run.state_since
    if clock.now() - claimed_at >= CLAIM_LAPSES or not rights.entitled(principal=run.owner, permission=OPERATE):
        return None
    return run.owner
