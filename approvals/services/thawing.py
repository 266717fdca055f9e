"""After a freeze was lifted: deadlines move on by the time it stopped them, and what it held is woken, part by part.

Every part is a transaction of its own and may be done twice; a process that dies in between loses nothing. What
somebody else has locked is left for the next time, and holds up nothing else.
"""

import uuid
from itertools import takewhile

from django.db import connection, transaction

from approvals import freezes
from approvals.models import ApprovalRequest, Freeze
from approvals.models.request import RequestState
from approvals.services import requests
from runs import clock, record
from runs.models import Principal, Run
from runs.services import principals

PART = 200  # requests, and then runs, at one go

_WAKE = """
UPDATE runs_run SET wake_at = clock_timestamp(), frozen_by = NULL, woken = woken OR lease_until IS NOT NULL,
       waits_for = 'a worker, now that the freeze is lifted'
 WHERE id IN (SELECT id FROM runs_run WHERE frozen_by = %s AND finished_at IS NULL ORDER BY id LIMIT %s
              FOR UPDATE SKIP LOCKED)
"""


def thaw(*, limit: int = PART) -> int:
    """One part of what the lifts so far have left to do, and how many runs it concerned; 0 when nothing is left."""
    lifted = Freeze.objects.filter(lifted_at__isnull=False, thawed_at__isnull=True).order_by("lifted_at").first()
    if lifted is None:
        return 0
    actor = principals.system()
    stopped = _stopped(lifted, limit)
    locked = [request_id for request_id in stopped if not _move_on(request_id, actor)]
    done = list(takewhile(lambda request_id: request_id not in locked, stopped))
    if done:
        Freeze.objects.filter(pk=lifted.pk).update(thaw_after=done[-1])
    if stopped and (not locked or len(stopped) == limit):
        return len(done)
    with connection.cursor() as cursor:
        cursor.execute(_WAKE, [lifted.pk, limit])
        woken = int(cursor.rowcount)
        cursor.execute("SELECT EXISTS (SELECT FROM runs_run WHERE frozen_by = %s AND finished_at IS NULL)", [lifted.pk])
        row = cursor.fetchone()
    if row is not None and not row[0] and not locked:
        Freeze.objects.filter(pk=lifted.pk, thawed_at__isnull=True).update(thawed_at=clock.now())
    return len(done) + woken


def _stopped(lifted: Freeze, limit: int) -> list[uuid.UUID]:
    asked = ApprovalRequest.objects.filter(
        freezes.requests_under(scope=lifted.scope), state=RequestState.OPEN, created_at__lt=lifted.lifted_at
    )
    if lifted.thaw_after is not None:
        asked = asked.filter(pk__gt=lifted.thaw_after)
    return list(asked.order_by("pk").values_list("pk", flat=True)[:limit])


def _move_on(request_id: uuid.UUID, actor: Principal) -> bool:
    """False when somebody else has its run locked."""
    with transaction.atomic(durable=True):
        of_request = ApprovalRequest.objects.filter(pk=request_id).values("run_id")
        if not Run.objects.select_for_update(of=("self",), skip_locked=True).filter(pk__in=of_request).first():
            return False
        request = requests.lock_with_run(request_id=request_id)
        if request.state != RequestState.OPEN:
            return True
        until = freezes.moved(request=request, run=request.run, now=clock.now())
        by = until - request.respond_by
        if not by:
            return True
        request.respond_by, request.stopped_for = until, request.stopped_for + by
        request.save(update_fields=["respond_by", "stopped_for"])
        record.append(
            run=request.run,
            kind="request.moved_on",
            actor=actor,
            request=str(request.pk),
            respond_by=until.isoformat(),
            seconds=int(by.total_seconds()),
        )
        return True
