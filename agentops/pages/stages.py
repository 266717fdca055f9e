"""The stages of a request as its page shows them: who is asked, who has answered, who is away, what comes by itself."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils import timezone

from agentops import asked
from agentops.pages import handing
from approvals import heard, seating, working_calendar
from approvals.heard import Lost
from approvals.involvement import involved
from approvals.models import ApprovalRequest, Prompt, Stage, Vote
from approvals.models.request import RequestState
from approvals.seating import Seating, Short
from runs import clock

NAMED = 8  # people listed by name in one stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One stage. `state` is done, asked or later; `who` says whom it asks, `waiting` the names of those asked now."""

    stage: Stage
    name: str
    state: str
    who: str
    yes: int
    votes: list[tuple[Vote, str]] = field(default_factory=list)  # each with that it does not count, and why
    waiting: list[str] = field(default_factory=list)
    more: int = 0
    handed: str = ""
    short: str = ""  # how many there are, where it cannot have its people


def who(stage: Stage) -> str:
    """`2 of finance or treasury, within their own limit; 2 who say no end it`, or why the person was added."""
    if stage.person is not None:
        return f"added by {stage.added_by}: {stage.added_why}"
    said = asked.needed(stage)
    return f"{said}; {stage.reject_at} who say no end it" if stage.reject_at > 1 else said


def context(*, seated: Seating) -> dict[str, Any]:
    """What the part about stages shows to whom they are looked at for; `acts_for` is whom the reader answers for, and
    until when."""
    request, user, found = seated.request, seated.user, list(seated.stages)
    is_open = request.state == RequestState.OPEN
    waiting = _waiting(request, seated) if is_open else {}
    short = _short(seated, waiting) if is_open else None
    away = asked.acts_for(seated) if is_open else None
    prompts = Prompt.objects.filter(request=request, ended_at=None).order_by("due_at") if is_open else []
    yes, lost = heard.yes_in(seated=seated), heard.lost(seated=seated)
    may_hand_on = is_open and user.has_perm("approvals.reassign")
    if may_hand_on and involved(run=request.run, user_ids=[user.pk]):
        may_hand_on = False
    return {
        **(handing.choices(request=request, stages=found, votes=seated.votes) if may_hand_on else {}),
        "steps": [
            _step(stage, yes[stage.pk], _votes(stage, seated, lost), waiting.get(stage.pk, []), short)
            for stage in found
        ],
        "in_order": seated.in_order,
        "progress": asked.progress(request, yes=yes),
        "acts_for": away,
        "prompts": [(one, asked.group_words(one.group)) for one in prompts],
        "working": working_calendar.in_words() if request.clock == "working" else "",
        "zone": timezone.get_current_timezone_name(),
        "may_hand_on": may_hand_on,
    }


def _short(seated: Seating, waiting: dict[Any, list[str]]) -> Short | None:
    """The stage that cannot have its people any more."""
    if len(seated.stages) == 1:  # without asking again
        [stage] = seated.stages
        if len(waiting.get(stage.pk, [])) >= stage.quorum - seated.yes(stage):
            return None
    return seating.short_of(request=seated.request, stages=seated.stages, votes=seated.votes)


def _votes(stage: Stage, seated: Seating, lost: Mapping[uuid.UUID, Lost]) -> list[tuple[Vote, str]]:
    words = dict.fromkeys(
        heard.left_out(request=seated.request, votes=seated.votes),
        "did not count: they were not entitled to it when it was decided",
    )
    return [
        (vote, _lost(lost[vote.pk], stage) if vote.pk in lost else words.get(vote.pk, ""))
        for vote in seated.votes
        if vote.stage_id == stage.pk
    ]


def _lost(lost: Lost, stage: Stage) -> str:
    return f"no longer counts: {asked.lost_words(lost=lost, stage=stage)}; it counts again once that is put right"


def _step(stage: Stage, yes: int, votes: list[tuple[Vote, str]], waiting: list[str], short: Short | None) -> Step:
    state = "done" if stage.met_at is not None else "asked" if stage.is_asked else "later"
    return Step(
        stage=stage,
        name=asked.stage_words(stage),
        state=state,
        who=who(stage),
        yes=yes,
        votes=votes,
        waiting=waiting[:NAMED],
        more=max(len(waiting) - NAMED, 0),
        handed=_handed(stage),
        short=asked.there_are(short) if short is not None and short.stage.pk == stage.pk else "",
    )


def _handed(stage: Stage) -> str:
    if stage.handed_user is not None:
        return f"handed on to {stage.handed_user.get_full_name() or stage.handed_user.get_username()}"
    return f"handed on to {asked.group_words(stage.handed_group.name)}" if stage.handed_group is not None else ""


def _waiting(request: ApprovalRequest, seated: Seating) -> dict[Any, list[str]]:
    """By stage: `Anna`, or `Bert (away; Carla stands in)`."""
    asks = seating.asked_now(request=request, stages=seated.stages, votes=seated.votes)
    stand_ins = seating.stand_ins(user_ids=[person.user.pk for _, person in asks], now=clock.now())
    found: dict[Any, list[str]] = {}
    for stage, person in asks:
        for_them = [one.get_full_name() or one.get_username() for one in stand_ins.get(person.user.pk, [])]
        away = f" (away; {' or '.join(for_them)} stands in)" if for_them else ""
        found.setdefault(stage.pk, []).append(f"{person.name}{away}")
    return found
