"""Looking for requests that cannot have the people they take any more: people leave, are deactivated, lose a right.
Their runs are made due, and say it; those that said it already look again, since somebody may have come. And for those
whose votes come to other numbers than before: these are to be counted again (`approvals.services.counting`)."""

import uuid
from dataclasses import dataclass

from django.db import transaction

from approvals import staffing
from approvals.models import ApprovalRequest
from approvals.models.request import RequestState
from runs import hot, transitions
from runs.models import Run
from runs.models.run import RunState

PART = 200  # runs made due at one look, of either kind
LOOKED_AT = 5_000  # open requests that one look reads; the next one goes on behind them


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """How many were made due, the requests to count again, and the run up to which all were looked at: None once the
    end is reached."""

    woken: int
    to_count: list[uuid.UUID]
    last: uuid.UUID | None


def work_off(*, after: uuid.UUID | None = None, limit: int = PART, looked_at: int = LOOKED_AT) -> Looked:
    """Wake them, of the requests whose runs come after that one. What somebody else has locked is left for the next
    time round."""
    waiting = Run.objects.filter(state=RunState.AWAITING_APPROVAL, finished_at__isnull=True)
    there = ApprovalRequest.objects.filter(state=RequestState.OPEN, **({} if after is None else {"run__gt": after}))
    read = dict(there.order_by("run_id").values_list("pk", "run_id")[:looked_at])
    seen = staffing.look(requests=read)
    to_count = [pk for pk in read if pk in seen.moved][:limit]
    # by id: a range is planned as if all that there are had to be read
    silent = waiting.filter(
        hot.among(column="id", kind="uuid", values=hot.array(ids=(read[pk] for pk in seen.short)))
    ).exclude(waits_for__startswith=staffing.NOBODY)
    said = waiting.filter(waits_for__startswith=staffing.NOBODY)
    found = [*silent.order_by("pk").values_list("pk", flat=True)[:limit]]
    ends = [list(read.values())[-1]] if len(read) == looked_at else []
    ends += [found[-1]] if len(found) == limit else []
    ends += [read[to_count[-1]]] if len(to_count) == limit else []
    found += said.order_by("wake_at").values_list("pk", flat=True)[:limit]
    return Looked(woken=sum(_wake(pk) for pk in found), to_count=to_count, last=min(ends, default=None))


def _wake(pk: uuid.UUID) -> bool:
    with transaction.atomic(durable=True):
        run = Run.objects.select_for_update(of=("self",), skip_locked=True).filter(pk=pk).first()
        if run is None or run.state != RunState.AWAITING_APPROVAL:
            return False
        transitions.wake(run=run)
        return True
