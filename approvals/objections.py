"""Why somebody's word on a request would not count, from what is stored now. Reads only; the first reason found wins.

The voting transaction asks under its locks; pages ask without, to say beforehand what a click would be told.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User

from approvals import freezes, heard
from approvals import seating as seats_of
from approvals.evaluation import Verdict, satisfied
from approvals.models import ApprovalRequest, PolicyVersion, Stage, Vote
from approvals.models.request import RequestState
from approvals.requirement import Answered
from approvals.seating import Seating
from runs import hot
from runs.models import Principal, Proposal, Run
from runs.models.run import RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """A stable code (its sentence is in `approvals.words`) and what the sentence needs: texts and whole numbers."""

    code: str
    detail: dict[str, Any] = field(default_factory=dict)


def closed(*, request: ApprovalRequest, run: Run, user: User, now: dt.datetime) -> Objection | None:
    """The request takes no more votes: decided, superseded, cancelled, withdrawn or expired."""
    if request.state == RequestState.OPEN:
        if run.cancel_requested_at is not None or run.is_over:
            return _ended(request, run)
        until = freezes.answer_by(request=request, run=run, now=now)
        return Objection(code="expired", detail={"at": until.isoformat()}) if now >= until else None
    decided = _decided(request, user)
    if decided is not None:
        return decided
    if request.state == RequestState.SUPERSEDED:
        return Objection(code="superseded", detail=_successor(request))
    if request.state == RequestState.SENT_BACK and request.closed_at is not None:
        by = str(request.closed_by or "Somebody")
        return Objection(code="sent_back", detail={"by": by, "at": request.closed_at.isoformat()})
    if request.state in (RequestState.EXPIRED, RequestState.REJECTED):  # rejected without a decision: nobody answered
        return Objection(code="expired", detail={"at": request.respond_by.isoformat()})
    return _ended(request, run)


def _ended(request: ApprovalRequest, run: Run) -> Objection:
    detail: dict[str, Any] = {"reason": run.cancel_reason or request.close_reason}
    at = run.cancel_requested_at or request.closed_at
    if at is not None:
        detail["at"] = at.isoformat()
    if run.cancelled_by is not None:
        detail["by"] = run.cancelled_by.label
    cancelled = run.cancel_requested_at is not None or run.state == RunState.CANCELLED
    return Objection(code="cancelled" if cancelled else "withdrawn", detail=detail)


def _decided(request: ApprovalRequest, user: User) -> Objection | None:
    decision = getattr(request, "decision", None)
    if decision is None:
        return None
    votes = heard.deciders(request=request)
    return Objection(
        code="decided",
        detail={
            "choice": str(Vote.Choice.APPROVE if decision.approved else Vote.Choice.REJECT),
            "by": ", ".join(vote.whose for vote in votes),
            "at": decision.decided_at.isoformat(),
            "people": len(votes),
            "yours": any(vote.principal.user_id == user.pk for vote in votes),
            "state": str(request.state),
        },
    )


def _successor(request: ApprovalRequest) -> dict[str, Any]:
    """The newest request of the chain, as it was superseded again and again; none while the facts are being read."""
    successor = None
    following = ApprovalRequest.objects.filter(supersedes=request).first()
    while following is not None:
        successor, following = following, ApprovalRequest.objects.filter(supersedes=following).first()
    return {} if successor is None else {"successor": str(successor.pk)}


def entitlement(*, seating: Seating) -> Objection | None:
    """The person's account or rights do not allow it: no stage, now or later, asks them or whom they stand in for."""
    if seating.seats():
        return None
    if not User.objects.filter(pk=seating.user.pk, is_active=True).exists():
        return Objection(code="inactive")
    return Objection(code="no_right", detail={"group": whom(stages=seating.stages)})


def entitled_now(*, request: ApprovalRequest, user: User) -> Objection | None:
    """The same for who has not been looked at yet."""
    return entitlement(seating=seats_of.of(request=request, user=user))


def whom(*, stages: Sequence[Stage]) -> str:
    """`manager`, or `finance or controllers`: the groups of all stages, and the people added by name."""
    names = [name for stage in stages for name in stage.every_group]
    names += [stage.name for stage in stages if stage.person_id is not None]
    return " or ".join(dict.fromkeys(names))


def policy(*, request: ApprovalRequest, version: PolicyVersion | None, verdict: Verdict | None) -> Objection | None:
    """The policy in force (`version`) would not be content with what is asked here; None and no verdict never are."""
    if version is not None and version.pk == request.policy_version_id:
        return None
    if version is not None and verdict is not None and _would_do(request, verdict):
        return None
    return Objection(code="policy_changed", detail={} if version is None else {"policy": str(version)})


def _would_do(request: ApprovalRequest, verdict: Verdict) -> bool:
    """With every stage answered, the newer verdict would be content."""
    stages = Stage.objects.filter(request=request, added_by__isnull=True).order_by("position")
    answered = [Answered(need=stage.need, yes=stage.quorum, also=tuple(stage.also)) for stage in stages]
    in_order = any(stage.in_turn for stage in stages)
    return satisfied(
        decision_kind="people", asked=answered, in_order=in_order, confirm=request.confirm, verdict=verdict
    )


def involvement(*, run: Run, user: User) -> Objection | None:
    """Whoever started the run, runs it, or proposed or edited any action of it never approves in it."""
    principal = _PERSON.first(user=user.pk)
    if principal is None:
        return None
    own = principal.pk
    started = own in (run.initiator_id, run.run_as_id, run.agent_id)
    if not started and not _PROPOSED(run=run.pk, proposer=own):
        return None
    return Objection(code="own_request", detail={"part": "initiator" if run.initiator_id == own else "proposer"})


_PERSON = hot.Query(lambda user: Principal.objects.filter(user=user))
_PROPOSED = hot.Query(lambda run, proposer: Proposal.objects.filter(run=run, proposer=proposer)[:1])


def voted(*, seating: Seating) -> Objection | None:
    """They have given their word already, or somebody has for them, and it waits for others'."""
    own = seating.own_vote
    vote = own or seating.vote_instead
    if vote is None:
        return None
    detail: dict[str, Any] = {
        "choice": vote.choice,
        "at": vote.at.isoformat(),
        "votes_for": seating.yes_in_all,
        "quorum": seating.needed_in_all,
    }
    if own is None:
        return Objection(code="stand_in_voted", detail={**detail, "by": vote.principal.label})
    return Objection(code="already_voted", detail=detail)


def turn(*, seating: Seating) -> Objection | None:
    """No stage that asks them is asked now."""
    if seating.free():
        return None
    asked = [stage for stage in seating.stages if stage.is_asked]
    seats = seating.seats()
    if any(seat.stage.is_asked for seat in seats):  # those they stand in for have all answered
        away = next(seat.instead_of for seat in seats if seat.stage.is_asked and seat.instead_of)
        return Objection(code="away_has_voted", detail={"whom": away.name})
    now = " and ".join(stage.name for stage in asked)
    later = next((seat.stage for seat in seats if seat.stage.opened_at is None), None)
    if later is not None:
        return Objection(code="not_yet", detail={"stage": later.name, "now": now})
    return Objection(code="stage_met", detail={"stage": seats[0].stage.name, "now": now})


def needed_elsewhere(*, seating: Seating) -> Objection | None:
    """Each answers once: their yes now would leave another stage without its people. A no is always safe."""
    short = seats_of.leaves_short(seated=seating, seat=seats_of.choose(seated=seating))
    return None if short is None else Objection(code="needed_elsewhere", detail={"stage": short.name})


def first(*, request: ApprovalRequest, user: User, now: dt.datetime, seen: Seating | None = None) -> Objection | None:
    """The first reason why the person's word would not count now, or None; `seen` is how the person finds it, where
    that was read."""
    found = closed(request=request, run=request.run, user=user, now=now)
    if found is not None:
        return found
    seen = seats_of.of(request=request, user=user) if seen is None else seen
    return (
        entitlement(seating=seen)
        or involvement(run=request.run, user=user)
        or voted(seating=seen)
        or turn(seating=seen)
    )  # fmt: skip
