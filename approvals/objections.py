"""Why somebody's word on a request would not count, from what is stored now. Reads only; the first reason found wins.

The voting transaction asks under its locks; pages ask without, to say beforehand what a click would be told.
"""

import datetime as dt
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User

from approvals import freezes, rights
from approvals.evaluation import Verdict, satisfied
from approvals.models import ApprovalRequest, PolicyVersion, Vote
from approvals.models.request import RequestState
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
    if request.state == RequestState.EXPIRED:
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
    choice = Vote.Choice.APPROVE if decision.approved else Vote.Choice.REJECT
    votes = list(Vote.objects.filter(request=request, choice=choice).select_related("principal").order_by("at", "id"))
    return Objection(
        code="decided",
        detail={
            "choice": str(choice),
            "by": ", ".join(vote.principal.label for vote in votes),
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


def entitlement(*, request: ApprovalRequest, user: User) -> Objection | None:
    """The person's account or rights do not allow it."""
    if rights.still_entitled(user_ids=[user.pk], group=request.group):
        return None
    if not User.objects.filter(pk=user.pk, is_active=True).exists():
        return Objection(code="inactive")
    return Objection(code="no_right", detail={"group": request.group})


def policy(*, request: ApprovalRequest, version: PolicyVersion | None, verdict: Verdict | None) -> Objection | None:
    """The policy in force (`version`) would not be content with what is asked here; None and no verdict never are."""
    if version is not None and version.pk == request.policy_version_id:
        return None
    if (
        version is not None
        and verdict is not None
        and satisfied(
            decision_kind="people",
            group=request.group,
            quorum=request.quorum,
            votes_for=request.quorum,
            confirm=request.confirm,
            verdict=verdict,
        )
    ):
        return None
    return Objection(code="policy_changed", detail={} if version is None else {"policy": str(version)})


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


def voted(*, request: ApprovalRequest, user: User) -> Objection | None:
    """They have given their word already, and it waits for others'."""
    vote = Vote.objects.filter(request=request, principal__user_id=user.pk).first()
    if vote is None:
        return None
    votes_for = Vote.objects.filter(request=request, choice=Vote.Choice.APPROVE).count()
    return Objection(
        code="already_voted",
        detail={
            "choice": vote.choice,
            "at": vote.at.isoformat(),
            "votes_for": votes_for,
            "quorum": request.quorum,
        },
    )
