"""What happens by itself while a request waits: reminders, and other groups being asked as well.

Each is a row with a due time, found by the relay and done once, under the locks of run and request; by the database's
clock, later by what freezes have stopped it. What somebody else has locked is left for the next look.
"""

import datetime as dt
import uuid

from django.db import transaction

from approvals import freezes, seating
from approvals.models import ApprovalRequest, Prompt
from approvals.models.request import RequestState
from approvals.services import requests, stages
from runs import clock, one_by_one, record
from runs.models import Run
from runs.services import principals

PART = 200
LOOK_AGAIN = dt.timedelta(seconds=30)  # while a freeze stands, its end is not known


def work_off(*, limit: int = PART) -> int:
    """What is due now; returns how many were done. Safe to run anywhere, any number at once.

    Raises `one_by_one.NotAll`; those it names wait.
    """
    due = Prompt.objects.filter(ended_at=None, due_at__lte=clock.ClockTimestamp()).order_by("due_at", "id")
    return one_by_one.work_off(
        items=list(due.values_list("pk", flat=True)[:limit]), do=_one, name=lambda pk: f"reminder or escalation {pk}"
    )


def _one(pk: uuid.UUID) -> bool:
    with transaction.atomic(durable=True):
        of_prompt = Prompt.objects.filter(pk=pk).values("request__run_id")
        if not Run.objects.select_for_update(of=("self",), skip_locked=True).filter(pk__in=of_prompt).exists():
            return False
        prompt = Prompt.objects.select_for_update(of=("self",), skip_locked=True).filter(pk=pk, ended_at=None).first()
        if prompt is None:
            return False
        request, now = requests.lock_with_run(request_id=prompt.request_id), clock.now()
        if request.state != RequestState.OPEN or request.run.cancel_requested_at is not None:
            return _end(prompt, Prompt.Result.NOT_NEEDED, now)
        due = freezes.later(request=request, run=request.run, at=prompt.asked_for, now=now)
        if due > now:
            frozen = freezes.over(workflow=request.run.workflow, tool=request.proposal.tool) is not None
            prompt.due_at = max(due, now + LOOK_AGAIN) if frozen else due
            prompt.save(update_fields=["due_at"])
            return False
        if prompt.kind == Prompt.Kind.REMIND:
            done = _remind(request)
        else:
            done = stages.escalate(request=request, run=request.run, group=prompt.group)
        return _end(prompt, Prompt.Result.DONE if done else Prompt.Result.NOT_NEEDED, now)


def _end(prompt: Prompt, result: Prompt.Result, now: dt.datetime) -> bool:
    prompt.ended_at, prompt.result = now, result
    prompt.save(update_fields=["ended_at", "result"])
    return True


def _remind(request: ApprovalRequest) -> bool:
    """A line of the record, which has those told who are asked and have not answered; nothing while there are none."""
    asks = seating.asked_now(
        request=request, stages=seating.stages_of(request=request), votes=seating.votes_of(request=request)
    )
    people = len({person.user.pk for _, person in asks})
    if people:
        record.append(
            run=request.run,
            kind="request.reminded",
            actor=principals.system(),
            request=str(request.pk),
            people=people,
        )
    return people > 0
