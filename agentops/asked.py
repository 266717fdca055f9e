"""Who is asked, in words: the same on pages, in mails and on what a run waits for."""

import datetime as dt
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from agentops.permissions import GROUP_WORDS
from approvals.models import Absence, ApprovalRequest, Stage
from approvals.seating import Seating
from runs import clock
from runs.models import Run


def group_words(name: str) -> str:
    return GROUP_WORDS.get(name, name)


def stage_words(stage: Stage) -> str:
    """Its name; the group's words where a group by itself is asked."""
    return group_words(stage.name)


def stages(request: ApprovalRequest) -> list[Stage]:
    """In order, as read along with the request where they were."""
    return sorted(request.stages.all(), key=lambda stage: stage.position)


def newest(*, run: Run) -> ApprovalRequest | None:
    """The newest request of the run, with its stages and votes."""
    found = ApprovalRequest.objects.filter(run=run).prefetch_related("stages", "votes")
    return found.order_by("-created_at").first()


def yes(request: ApprovalRequest) -> Counter[uuid.UUID]:
    """How many have said yes, by the stage's id."""
    return Counter(vote.stage_id for vote in request.votes.all() if vote.choice == "approve")


def asked_words(request: ApprovalRequest) -> str:
    """`support managers`, or `Finance and Legal`: those that are asked now, or all once none is."""
    every = stages(request)
    now = [stage for stage in every if stage.is_asked] or every
    return " and ".join(stage_words(stage) for stage in now) or group_words(request.group)


def people_to_decide(request: ApprovalRequest) -> str:
    """Whom a run waits for that asks for approval: `support managers to decide`, `Finance to decide, then Legal`."""
    every = stages(request)
    if len(every) == 1 and every[0].quorum > 1:
        return f"{every[0].quorum} of the {stage_words(every[0])} to decide"
    return f"{asked_words(request)} to decide{then(every)}"


def needed(stage: Stage) -> str:
    """`2 of finance or treasury, within their own limit, of the team emea`, or the name of a person added."""
    if stage.person_id is not None:
        return stage.name
    groups = " or ".join(group_words(name) for name in stage.every_group)
    said = f"{'one' if stage.quorum == 1 else stage.quorum} of {groups}"
    need = stage.need.person
    if need.within_limit:
        said += ", within their own limit"
    said += f", of the team {need.team}" if need.team else ""
    return said + (f", for the region {need.region}" if need.region else "")


def nobody_for(stage: Stage) -> str:
    """Why a stage cannot have its people, in words that follow a colon."""
    return f"{needed(stage)}, with the right to vote and no part in this run; there are too few"


def then(every: Sequence[Stage]) -> str:
    """`, then Legal`: the stages whose turn comes later."""
    later = [stage_words(stage) for stage in every if stage.opened_at is None]
    return "".join(f", then {one}" for one in later)


def progress(request: ApprovalRequest) -> str:
    """`Stage 1 of 2 – Finance; then: Legal`; of one stage how many have approved where it takes several; else nothing.
    Reads the votes along with the request where they were."""
    every = stages(request)
    said_yes = yes(request)
    if len(every) == 1:
        return f"{said_yes[every[0].pk]} of {every[0].quorum} have approved" if every[0].quorum > 1 else ""
    now = [stage for stage in every if stage.is_asked]
    if not now:
        return f"{len(every)} stages"
    said = " and ".join(
        f"{stage_words(one)}{f' ({said_yes[one.pk]} of {one.quorum})' if one.quorum > 1 else ''}" for one in now
    )
    later = [stage_words(stage) for stage in every if stage.opened_at is None]
    met = sum(1 for stage in every if stage.met_at is not None)
    number = f"Stage {now[0].position} of {len(every)}" if len(now) == 1 else f"{met} of {len(every)} stages done"
    return f"{number} – {said}{'; then: ' if later else ''}{', '.join(later)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActsFor:
    """Somebody who is away, in whose place a person would answer."""

    name: str
    until: dt.datetime


def acts_for(seated: Seating) -> ActsFor | None:
    """Whom the person would answer for: nobody as long as there is a place of their own."""
    free = seated.free()
    if not free or free[0].instead_of is None:
        return None
    away = free[0].instead_of
    current = Absence.objects.filter(person=away.user, stand_in=seated.user, ended_at=None, ends__gt=clock.now())
    absence = current.order_by("begins").first()
    return None if absence is None else ActsFor(name=away.name, until=absence.ends)
