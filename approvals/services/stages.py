"""The stages of a request: written when it is opened, opened one after the other, met and unmet as people answer.

Building blocks: they run inside the caller's open transaction, with the run's and the request's rows locked.
"""

import datetime as dt
import uuid
from collections.abc import Callable, Sequence

from approvals import rights, working_time
from approvals.involvement import involved
from approvals.models import ApprovalRequest, Prompt, Stage
from approvals.requirement import Clock, Requirement
from approvals.seating import Seating, asked_now, is_handed_to, stages_of
from approvals.working_calendar import calendar
from runs import hot, record, transitions
from runs.models import Run
from runs.services import principals

MOST_REMINDERS = 3  # for one request


def counted(*, clock: Clock) -> Callable[[dt.datetime, dt.timedelta], dt.datetime]:
    """How a time is added to a moment: as elapsed time, or as working time of the installation's calendar."""
    if clock == "working":
        return lambda since, by: working_time.later(calendar=calendar(), since=since, by=by)
    return lambda since, by: since + by


def write(*, request: ApprovalRequest, stages: Sequence[Stage], need: Requirement) -> None:
    """Write the stages as they are asked, and what happens by itself meanwhile."""
    hot.insert(*stages)
    if prompts := _prompts(request, need):
        hot.insert(*prompts)


def every(*, request: ApprovalRequest, need: Requirement) -> list[Stage]:
    """All stages of the request, the first (or all, where the order does not matter) asked at once; nothing is written.
    Whoever was added by name to what this replaces is asked again, unless they could not answer: they have a part in
    the run by now, such as another amount, or no right to vote any more."""
    stages = of_need(request=request, need=need)
    return stages + [
        Stage(
            request=request,
            position=number,
            name=one.name,
            person_id=one.person_id,
            quorum=1,
            added_by_id=one.added_by_id,
            added_why=one.added_why,
            opened_at=request.created_at,
        )
        for number, one in enumerate(added_to(request_id=request.supersedes_id, run=request.run), start=len(stages) + 1)
    ]


def added_to(*, request_id: uuid.UUID | None, run: Run) -> list[Stage]:
    """The stages of people added by name to a request that has ended, who could still answer in the run."""
    if request_id is None:
        return []
    added = list(
        Stage.objects.filter(request=request_id, added_by__isnull=False, person__in=rights.voters())
        .select_related("person")
        .order_by("position")
    )
    out = involved(run=run, user_ids=[one.person_id for one in added if one.person_id is not None]) if added else set()
    return [one for one in added if one.person_id not in out]


def of_need(*, request: ApprovalRequest, need: Requirement) -> list[Stage]:
    """What the policy asks, as stages of the request; nothing is written."""
    return [
        Stage(
            request=request,
            position=number,
            name=stage.name,
            groups=list(stage.groups),
            conditions=stage.person.stored(),
            quorum=stage.quorum,
            reject_at=stage.reject_at,
            in_turn=need.in_order and number > 1,
            opened_at=None if need.in_order and number > 1 else request.created_at,
        )
        for number, stage in enumerate(need.chain, start=1)
    ]


def _prompts(request: ApprovalRequest, need: Requirement) -> list[Prompt]:
    later = counted(clock=need.clock)
    found: list[tuple[Prompt.Kind, str, dt.datetime]] = []
    if need.remind_after is not None:
        at = request.created_at
        for _ in range(MOST_REMINDERS):
            at = later(at, need.remind_after)
            found.append((Prompt.Kind.REMIND, "", at))
    for step in need.escalations:
        found.append((Prompt.Kind.ESCALATE, step.group, later(request.created_at, step.after)))
    return [
        Prompt(request=request, kind=kind, group=group, asked_for=at, due_at=at)
        for kind, group, at in found
        if at < request.respond_by
    ]


def ask_again(*, seating: Seating, run: Run) -> bool:
    """A stage whose people are no longer all entitled is asked again, and one that was handed on to people of whom none
    is left to answer is asked of all whom it asks; True where there was any."""
    again: list[Stage] = []
    for stage in seating.stages:
        if stage.met_at is not None and seating.yes(stage) < stage.quorum:
            stage.met_at = None
            stage.save(update_fields=["met_at"])
            _record_again(seating, stage, run, "somebody whose approval counted is no longer entitled")
            again.append(stage)
    handed = [one for one in seating.stages if one.is_asked and (one.handed_user_id or one.handed_group_id)]
    if not handed:
        return bool(again)
    asks = asked_now(request=seating.request, stages=seating.stages, votes=seating.votes)
    for stage in handed:
        if not any(one is stage and is_handed_to(stage=stage, person=person) for one, person in asks):
            stage.handed_user = stage.handed_group = None
            stage.save(update_fields=["handed_user", "handed_group"])
            _record_again(seating, stage, run, "nobody is left to answer of those whom it was handed on to")
            again.append(stage)
    return bool(again)


def _record_again(seating: Seating, stage: Stage, run: Run, why: str) -> None:
    transitions.wake(run=run)  # it says anew whom it waits for
    record.append(
        run=run,
        kind="request.stage_reopened",
        actor=principals.system(),
        request=str(seating.request.pk),
        stage=stage.name,
        stage_id=str(stage.pk),
        why=why,
    )


def meet(*, seating: Seating, run: Run, now: dt.datetime) -> bool:
    """Note which stages have their people now and open the next one; True when every stage has."""
    for stage in seating.stages:
        if stage.is_asked and seating.yes(stage) >= stage.quorum:
            stage.met_at = now
            stage.save(update_fields=["met_at"])
    waiting = next((stage for stage in seating.stages if stage.opened_at is None), None)
    if waiting is not None and all(
        stage.met_at is not None for stage in seating.stages if stage.position < waiting.position
    ):
        waiting.opened_at = now
        waiting.save(update_fields=["opened_at"])
        transitions.wake(run=run)  # it says anew whom it waits for
        record.append(
            run=run,
            kind="request.stage_opened",
            actor=principals.system(),
            request=str(seating.request.pk),
            stage=waiting.name,
            stage_id=str(waiting.pk),
            groups=waiting.every_group,
            quorum=waiting.quorum,
        )
        _escalate_late(seating.request, run, waiting)
    return all(stage.met_at is not None for stage in seating.stages)


ESCALATED = "nobody had decided in the time that the rule names"


def escalate(*, request: ApprovalRequest, run: Run, group: str, why: str = ESCALATED) -> bool:
    """Every stage that waits now, but for people added by name, may be answered by the group as well; True where that
    changes anything."""
    waiting = [one for one in stages_of(request=request) if one.is_asked]
    return sum(_also(request, run, stage, group, why) for stage in waiting) > 0


def _escalate_late(request: ApprovalRequest, run: Run, stage: Stage) -> None:
    """A stage whose turn comes when the time for an escalation is over is escalated as it is opened."""
    done = Prompt.objects.filter(request=request, kind=Prompt.Kind.ESCALATE, ended_at__isnull=False).order_by("due_at")
    for group in done.values_list("group", flat=True):
        _also(request, run, stage, group, ESCALATED)


def _also(request: ApprovalRequest, run: Run, stage: Stage, group: str, why: str) -> bool:
    if stage.person_id is not None or group in stage.every_group:
        return False
    stage.also = [*stage.also, group]
    stage.save(update_fields=["also"])
    record.append(
        run=run,
        kind="request.escalated",
        actor=principals.system(),
        request=str(request.pk),
        stage=stage.name,
        stage_id=str(stage.pk),
        also=group,
        why=why,
    )
    return True


def escalate_now(*, request: ApprovalRequest, run: Run, now: dt.datetime) -> str:
    """Too few of those who are asked are left: the next escalation comes at once. The group, or "" where none is."""
    pending = Prompt.objects.select_for_update(of=("self",)).filter(
        request=request, kind=Prompt.Kind.ESCALATE, ended_at__isnull=True
    )
    for prompt in pending.order_by("due_at", "id"):
        done = escalate(request=request, run=run, group=prompt.group, why="too few are left to answer of those asked")
        prompt.ended_at, prompt.result = now, Prompt.Result.DONE if done else Prompt.Result.NOT_NEEDED
        prompt.save(update_fields=["ended_at", "result"])
        if done:
            return str(prompt.group)
    return ""
