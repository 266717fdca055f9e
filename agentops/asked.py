"""Who is asked, in words: the same on pages, in mails and on what a run waits for."""

import datetime as dt
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from approvals.heard import Lost
from approvals.models import Absence, ApprovalRequest, Stage
from approvals.seating import Seating, Short
from runs import clock, words
from runs.models import Run

group_words = words.group


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


def asked_words(request: ApprovalRequest) -> str:
    """`support managers`, or `Finance and Legal`: those that are asked now, or all once none is."""
    return _asked_words(request, stages(request))


def _asked_words(request: ApprovalRequest, every: Sequence[Stage]) -> str:
    now = [stage for stage in every if stage.is_asked] or every
    return " and ".join(stage_words(stage) for stage in now) or group_words(request.group)


def people_to_decide(request: ApprovalRequest, *, every: Sequence[Stage] | None = None) -> str:
    """Whom a run waits for that asks for approval: `support managers to decide`, `Finance to decide, then Legal`;
    `every` are its stages where they are at hand."""
    every = stages(request) if every is None else every
    if len(every) == 1 and every[0].quorum > 1:
        return f"{every[0].quorum} of the {stage_words(every[0])} to decide"
    return f"{_asked_words(request, every)} to decide{then(every)}"


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


_LOST = {
    "account": "the account of {whose} is no longer active",
    "right": "{whose} no longer has the right to vote",
    "group": "{whose} is no longer in {groups}",
    "team": "{whose} is no longer of the team {team}",
    "region": "{whose} is no longer for the region {region}",
    "limit": "the limit of {whose} no longer covers the amount",
}


def lost_words(*, lost: Lost, stage: Stage) -> str:
    """Why somebody's yes counts no more, in words that follow a colon."""
    need, groups = stage.need.person, " or ".join(group_words(name) for name in stage.every_group)
    return _LOST[lost.what].format(whose=lost.whose, groups=groups, team=need.team, region=need.region)


def there_are(short: Short) -> str:
    """`there is nobody`, `there are 2 of the 3 still needed`: of those whom a stage takes, whoever could answer."""
    if short.there == 0:
        said = "there is nobody"
    else:
        needed = "needed" if short.needed == short.stage.quorum else "still needed"
        said = f"there {'is' if short.there == 1 else 'are'} {short.there} of the {short.needed} {needed}"
    return said if short.able == short.there else f"{said} beside those whom other stages need"


def too_few(short: Short) -> str:
    """Why a stage cannot have its people, in words that follow a colon."""
    return f"{there_are(short)}; it takes {needed(short.stage)}, with the right to vote and no part in this run"


def then(every: Sequence[Stage]) -> str:
    """`, then Legal`: the stages whose turn comes later."""
    later = [stage_words(stage) for stage in every if stage.opened_at is None]
    return "".join(f", then {one}" for one in later)


def progress(request: ApprovalRequest, *, yes: Counter[uuid.UUID]) -> str:
    """`Stage 1 of 2 – Finance; then: Legal`; of one stage how many have approved where it takes several; else nothing.
    `yes` are those that count, by stage (`approvals.heard`)."""
    every = stages(request)
    if len(every) == 1:
        return f"{yes[every[0].pk]} of {every[0].quorum} have approved" if every[0].quorum > 1 else ""
    now = [stage for stage in every if stage.is_asked]
    if not now:
        return f"{len(every)} stages"
    said = " and ".join(
        f"{stage_words(one)}{f' ({yes[one.pk]} of {one.quorum})' if one.quorum > 1 else ''}" for one in now
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
