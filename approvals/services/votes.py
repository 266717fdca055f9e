"""Casting a vote: one durable transaction that either counts it or records why it does not count.

Only people reach this: a vote takes a signed-in user, never a token. Locks go Run → Request → users, then freezes, then
the policy, shared, and everything is read after they are held.
"""

import datetime as dt
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from approvals import confirming, freezes, locks, objections, seating
from approvals.confirming import Given
from approvals.models import ApprovalRequest, Decision, Refusal, Vote
from approvals.models.request import RequestState
from approvals.objections import Objection
from approvals.seating import Seating
from approvals.services import deciding, policies, requests, stages
from approvals.services.deciding import Matter, Reevaluate
from approvals.words import ACCEPTED, is_blank, storable
from runs import clock, hot, record, transitions
from runs.models import Event, Principal
from runs.money import Money
from runs.services import principals

COMMENT_LENGTH = 4000
_WAITING = {"approve": "voted", "reject": "voted_no"}  # what a word is told that decides nothing yet


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteResult:
    """What became of the click: `code` is "approved", "rejected", "voted" or "voted_no" (others must still answer), or
    a refusal's code; `detail` fills its sentence (`approvals.words`); `decision` is set by the vote that decided.
    `repeated` says that this is the answer the same click had the first time."""

    code: str
    request: ApprovalRequest
    successor_id: uuid.UUID | None = None
    detail: dict[str, Any] = field(default_factory=dict)
    decision: Decision | None = None
    repeated: bool = False

    @property
    def accepted(self) -> bool:
        return self.code in ACCEPTED


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ballot(Matter):
    """One person's word on it."""

    user: User
    principal: Principal
    choice: str
    comment: str
    page_digest: str
    acknowledged: bool
    authenticated_by: str
    channel: str
    given: Given | None


def cast(
    *,
    request_id: uuid.UUID,
    user: User,
    choice: Literal["approve", "reject"],
    comment: str,
    page_digest: str,
    acknowledged: bool,
    authenticated_by: str,
    channel: Literal["page", "command"],
    reevaluate: Reevaluate | None = None,
    given: Given | None = None,
) -> VoteResult:
    """Count the person's word, or refuse and record it; refusals are returned, never raised.

    The same word on the same page again (a double click, a page sent twice) is answered as it was the first time, and
    leaves no trace.

    `page_digest` is what the page they saw carried; `acknowledged` that they confirmed having seen the changes;
    `authenticated_by` how and when their session was authenticated; `reevaluate` asks another version of the policy
    than the one that asked, and without it a vote under a changed policy is refused; `given` is what came with a yes
    beyond the click. Raises ApprovalRequest.DoesNotExist, and ValueError for an unknown choice or channel.
    """
    if choice not in Vote.Choice.values:
        raise ValueError("choice: write approve or reject")
    if channel not in ("page", "command"):
        raise ValueError("channel: people decide through page or command")
    with transaction.atomic(durable=True):
        principal = principals.of_user(user=user)
        request = requests.lock_with_run(request_id=request_id)
        seated = _seated(request, user)
        freeze = freezes.over(workflow=request.run.workflow, tool=request.proposal.tool, lock=True)
        governing = policies.governing(tool=request.proposal.tool, lock=True)
        ballot = _Ballot(
            request=request,
            run=request.run,
            user=user,
            principal=principal,
            now=clock.now(),
            choice=str(choice),
            comment=storable(text=comment),
            page_digest=storable(text=page_digest),
            acknowledged=acknowledged,
            authenticated_by=storable(text=authenticated_by)[:200],
            channel=channel,
            freeze=freeze,
            governing=governing,
            reevaluate=reevaluate,
            given=given,
            seating=seated,
        )
        if request.state == RequestState.OPEN:
            stages.ask_again(seating=seated, run=request.run)
        if (again := _repeat(ballot)) is not None:
            return again
        objection = next((found for check in _CHECKS if (found := check(ballot)) is not None), None)
        with record.together(run=ballot.run):
            return _count(ballot) if objection is None else _refuse(ballot, objection)


def _seated(request: ApprovalRequest, user: User) -> Seating:
    """Who may answer what, as it is once the rows of everybody concerned are held."""
    asked, votes = seating.stages_of(request=request), seating.votes_of(request=request)
    away = seating.covered(user=user)
    heard = {user_id for vote in votes for user_id in (vote.principal.user_id, vote.counts_for) if user_id is not None}
    locks.share_users(
        user_ids=[user.pk, *away, *heard], groups=[name for stage in asked for name in stage.every_group]
    )  # fmt: skip
    return seating.of(request=request, user=user, stages=asked, votes=votes, only=away)


# ---- the same click again

_STANDS = frozenset({RequestState.OPEN, RequestState.APPROVED, RequestState.REJECTED, RequestState.SPENT})


def _repeat(ballot: _Ballot) -> VoteResult | None:
    """What the same word got the first time, as long as it stands and its person is entitled to give it still.

    Another comment makes it another word: it is refused, so that nobody believes that the new comment was kept.
    """
    request = ballot.request
    if ballot.seating.own_vote is None:
        return None
    first = Vote.objects.filter(
        request=request, principal=ballot.principal, choice=ballot.choice, page_digest=ballot.page_digest
    ).first()
    if first is None or request.state not in _STANDS or ballot.comment not in ("", first.comment):
        return None
    closed = objections.closed(request=request, run=ballot.run, user=ballot.user, now=ballot.now)
    if closed is not None and closed.code != "decided":
        return None
    by_id = {stage.pk: stage for stage in ballot.seating.stages}
    if not ballot.seating.counts(first, by_id[first.stage_id]):
        return None
    decision = Decision.objects.filter(request=request, decided_at=first.at).first()
    code = _WAITING[first.choice] if decision is None else "approved" if decision.approved else "rejected"
    recorded = Event.objects.filter(stream=record.stream_of(run_id=ballot.run.pk), data__vote=str(first.pk)).first()
    detail = _so_far(ballot) | {"at": first.at.isoformat()}
    detail |= {name: recorded.data[name] for name in ("votes_for", "quorum")} if recorded else {}
    return VoteResult(code=code, request=request, detail=detail, decision=decision, repeated=True)


# ---- the checks, in the order in which their reasons are given


def _page_differs(ballot: _Ballot) -> Objection | None:
    return None if ballot.page_digest == ballot.request.page_digest else Objection(code="page_differs")


def _not_granted(ballot: _Ballot) -> Objection | None:
    """Rejecting is always safe, so only a yes takes it; as what follows."""
    return deciding.not_granted(ballot) if ballot.choice == Vote.Choice.APPROVE else None


def _frozen(ballot: _Ballot) -> Objection | None:
    return deciding.frozen(ballot) if ballot.choice == Vote.Choice.APPROVE else None


def _unread_changes(ballot: _Ballot) -> Objection | None:
    if ballot.choice != Vote.Choice.APPROVE or ballot.acknowledged or not ballot.request.changes:
        return None
    return Objection(code="unread_changes", detail={"changes": ballot.request.changes})


def _needed_elsewhere(ballot: _Ballot) -> Objection | None:
    return objections.needed_elsewhere(seating=ballot.seating) if ballot.choice == Vote.Choice.APPROVE else None


def _comment(ballot: _Ballot) -> Objection | None:
    if ballot.choice == Vote.Choice.REJECT and is_blank(text=ballot.comment):
        return Objection(code="reason_needed")
    if len(ballot.comment) > COMMENT_LENGTH:
        return Objection(code="comment_too_long", detail={"limit": COMMENT_LENGTH})
    return None


def _confirmed(ballot: _Ballot) -> Objection | None:
    """A yes takes what the policy wanted when it asked, on whatever path it comes."""
    if ballot.choice != Vote.Choice.APPROVE:
        return None
    proposal, level = ballot.request.proposal, ballot.request.confirm
    money = None if proposal.amount_minor is None else Money(proposal.amount_minor, proposal.currency)
    within = dt.timedelta(seconds=settings.ACCOUNT_REAUTHENTICATION_TIMEOUT)
    code = confirming.problem(level=level, money=money, given=ballot.given, now=ballot.now, within=within)
    return Objection(code=code, detail={"takes": confirming.words(level=level, money=money)}) if code else None


_CHECKS: tuple[Callable[[_Ballot], Objection | None], ...] = (
    lambda b: objections.closed(request=b.request, run=b.run, user=b.user, now=b.now),
    lambda b: objections.entitlement(seating=b.seating),
    lambda b: objections.involvement(run=b.run, user=b.user),
    lambda b: objections.voted(seating=b.seating),
    lambda b: objections.turn(seating=b.seating),
    _not_granted,
    _frozen,
    _page_differs,
    deciding.out_of_date,
    deciding.policy_changed,
    _unread_changes,
    _needed_elsewhere,
    _comment,
    _confirmed,
)


# ---- what follows


def _refuse(ballot: _Ballot, objection: Objection) -> VoteResult:
    """Record the refusal, and put right what it found: an overdue request expires, moved facts are read again."""
    request, run = ballot.request, ballot.run
    Refusal.objects.create(
        request=request,
        principal=ballot.principal,
        code=objection.code,
        detail=objection.detail,
        channel=ballot.channel,
        at=ballot.now,
    )
    record.append(
        run=run,
        kind="request.refused",
        actor=ballot.principal,
        request=str(request.pk),
        choice=ballot.choice,
        code=objection.code,
        channel=ballot.channel,
    )
    if objection.code == "expired" and request.state == RequestState.OPEN:
        closed = requests.close_open(
            run=run, to=RequestState.EXPIRED, why="nobody answered in time", actor=principals.system()
        )
        request = closed or request
        transitions.wake(run=run)
    if objection.code in deciding.READ_AGAIN:
        transitions.want_facts(run=run)
    successor = objection.detail.get("successor")
    return VoteResult(
        code=objection.code,
        request=request,
        successor_id=uuid.UUID(successor) if successor else None,
        detail=objection.detail,
    )


def _count(ballot: _Ballot) -> VoteResult:
    request, seated = ballot.request, ballot.seating
    seat = seating.choose(seated=seated)
    away = seat.instead_of
    vote = Vote(
        request=request,
        principal=ballot.principal,
        stage=seat.stage,
        instead_of=None if away is None else principals.of_user(user=away.user),
        choice=ballot.choice,
        comment=ballot.comment,
        page_digest=ballot.page_digest,
        binding_digest=request.binding_digest,
        authenticated_by=ballot.authenticated_by,
        group=seating.through(seat=seat, seated=seated),
        channel=ballot.channel,
        confirmed=request.confirm if ballot.choice == Vote.Choice.APPROVE else confirming.CLICK,
        at=ballot.now,
    )
    hot.insert(vote)
    ballot = replace(ballot, seating=replace(seated, votes=[*seated.votes, vote]))
    if ballot.seating.no(seat.stage) >= seat.stage.reject_at:
        return _decide(ballot, vote, approved=False)
    said_yes = vote.choice == Vote.Choice.APPROVE
    if said_yes and deciding.all_met(seating=ballot.seating):
        return _decide(ballot, vote, approved=True)
    _record_vote(ballot, vote, kind="request.vote")
    if said_yes:  # a no that does not end it leaves the stage to the others: it was not asked what a yes is
        stages.meet(seating=ballot.seating, run=ballot.run, now=ballot.now)
    stages.ask_again(seating=ballot.seating, run=ballot.run)
    return VoteResult(code=_WAITING[ballot.choice], request=request, detail=_so_far(ballot))


def _decide(ballot: _Ballot, vote: Vote, *, approved: bool) -> VoteResult:
    decision, request = deciding.decide(matter=ballot, approved=approved), ballot.request
    more = {"counted": deciding.whose(ballot.seating.counted)} if approved else {}
    _record_vote(ballot, vote, kind=f"request.{request.state}", decision=str(decision.pk), **more)
    transitions.wake(run=ballot.run)
    return VoteResult(code=str(request.state), request=request, detail=_so_far(ballot), decision=decision)


def _so_far(ballot: _Ballot) -> dict[str, Any]:
    return {
        "by": ballot.principal.label,
        "at": ballot.now.isoformat(),
        "votes_for": ballot.seating.yes_in_all,
        "quorum": ballot.seating.needed_in_all,
    }


def _record_vote(ballot: _Ballot, vote: Vote, *, kind: str, **more: str) -> None:
    if vote.instead_of is not None:
        more["instead_of"] = vote.instead_of.label
    record.append(
        run=ballot.run,
        kind=kind,
        actor=ballot.principal,
        request=str(ballot.request.pk),
        vote=str(vote.pk),
        choice=vote.choice,
        comment=vote.comment,
        page_digest=vote.page_digest,
        binding_digest=vote.binding_digest,
        authenticated_by=vote.authenticated_by,
        channel=vote.channel,
        confirmed=vote.confirmed,
        stage=vote.stage.name,
        votes_for=ballot.seating.yes_in_all,
        quorum=ballot.seating.needed_in_all,
        **more,
    )
