"""One act on many runs: chosen once, then carried out run by run by the relay, each with its own result.

A run's result is stored in the transaction of the act itself, so whoever goes on after a crash repeats nothing.
"""

import datetime as dt
import logging
import time
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from agentops import acts
from runs import clock, holding, rights
from runs.models import Batch, BatchItem, Principal, Run
from runs.nudging import nudge_relay
from runs.one_by_one import is_busy, is_gone
from runs.services.operate import OperateResult
from runs.texts import typed

log = logging.getLogger(__name__)
MOST = 20_000  # runs in one batch; more are several
PART = 200  # runs at one go
AT_ONCE_SECONDS = 0.5  # then the relay looks at what else is due
# a run that somebody has locked is tried again that often, which takes longer than the database lets anybody keep one
MOST_TRIES, TRY_AGAIN = 60, dt.timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """`code` is ok, or a refusal: no_right, reason_needed, none_chosen, too_many (`detail` has the limit), more_now
    (more are chosen by now than were shown)."""

    code: str
    batch: Batch | None = None
    detail: dict[str, Any] | None = None

    @property
    def ok(self) -> bool:
        return self.code == "ok"


def start(
    *, act: str, runs: QuerySet[Run], chosen: str, principal: Principal, reason: str, shown: int | None = None
) -> BatchResult:
    """Write down what is to be done to each of those runs that is not over. `chosen` says in words how they were
    chosen, `shown` how many they were when the person was asked: it is done to no more. One durable transaction;
    nothing is done to any run yet. Raises KeyError for an act that does not exist."""
    if act not in acts.INNER:
        raise KeyError(act)
    reason = typed(text=reason)
    if not reason:
        return BatchResult(code="reason_needed")
    if not rights.entitled(principal=principal, permission=holding.OPERATE):  # looked at again for every run
        return BatchResult(code=rights.NO_RIGHT)
    with transaction.atomic(durable=True):
        ids = list(runs.order_by("-created_at", "-id").values_list("pk", flat=True)[: MOST + 1])
        if not ids:
            return BatchResult(code="none_chosen")
        if len(ids) > MOST:
            return BatchResult(code="too_many", detail={"limit": MOST})
        if shown is not None and len(ids) > shown:
            return BatchResult(code="more_now")
        batch = Batch.objects.create(act=act, reason=reason, chosen=chosen[:300], principal=principal, total=len(ids))
        BatchItem.objects.bulk_create([BatchItem(batch=batch, run_id=one) for one in ids], batch_size=2000)
        nudge_relay()
        return BatchResult(code="ok", batch=batch)


def work_off(*, seconds: float = AT_ONCE_SECONDS) -> int:
    """Carry out what is left of the batches, the oldest first, for about that long, and say for how many runs."""
    until, done = time.monotonic() + seconds, 0
    for batch in Batch.objects.filter(finished_at__isnull=True).select_related("principal").order_by("created_at"):
        done += _work_off(batch, until)
        if time.monotonic() > until:
            break
    return done


def _work_off(batch: Batch, until: float) -> int:
    done = 0
    left = BatchItem.objects.filter(batch=batch, done_at__isnull=True)
    now_due = left.filter(Q(try_after__isnull=True) | Q(try_after__lte=clock.ClockTimestamp()))
    for item in now_due.order_by("tries", "id")[:PART]:
        done += _carry_out(batch, item)
        if time.monotonic() > until:
            break
    if not left.exists():
        Batch.objects.filter(pk=batch.pk, finished_at__isnull=True).update(finished_at=clock.now())
    return done


def _carry_out(batch: Batch, item: BatchItem) -> bool:
    """False when the run is left for another time, after the others: somebody else has it locked."""
    open_one = BatchItem.objects.filter(pk=item.pk, done_at__isnull=True)

    def keep(result: OperateResult) -> None:
        """Under the run's lock: of two who come at once the second finds it done, and what it did is undone."""
        if not open_one.update(code=result.code, detail=result.detail, done_at=clock.now()):
            raise _DoneBefore

    try:
        acts.perform(
            act=batch.act, run_id=item.run_id, principal=batch.principal, reason=batch.reason, keep=keep, nowait=True
        )
    except _DoneBefore:
        return True
    except Exception as problem:  # one run that nobody foresaw must not hold up the others
        if is_gone(problem=problem):
            raise
        if is_busy(problem=problem) and item.tries < MOST_TRIES:
            open_one.update(tries=item.tries + 1, try_after=clock.now() + TRY_AGAIN)
            return False
        if is_busy(problem=problem):
            open_one.update(code="busy", done_at=clock.now())
            return True
        log.exception("%s of run %s broke off", batch.act, item.run_id)
        open_one.update(code="broke_off", detail={"what": f"{type(problem).__name__}"}, done_at=clock.now())
    return True


class _DoneBefore(Exception):
    """Another process has had this run's result stored meanwhile; what this one did to it is rolled back."""
