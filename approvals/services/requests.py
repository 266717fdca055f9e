"""The life of a request for approval: opened, closed, expired, opened by a reader, and checked before sending.

Those taking a `run` are building blocks: they run inside the caller's open transaction, with the run's row locked.
"""

import datetime as dt
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max
from django_fsm import TransitionNotAllowed

from approvals import locks, seating
from approvals.binding import differences, page_digest
from approvals.evaluation import Verdict
from approvals.models import ApprovalRequest, Decision, PolicyVersion, Stage, StandingApproval, Viewing, Vote
from approvals.models.request import RequestState
from approvals.requirement import Answered
from approvals.seating import Seating
from approvals.services import stages, standing_use
from runs import clock, hot, record, transitions
from runs.models import Principal, Proposal, Run
from runs.services import principals
from runs.texts import one_line

ASK_LENGTH = 300
_CLOSES = {
    RequestState.SUPERSEDED: "supersede",
    RequestState.WITHDRAWN: "withdraw",
    RequestState.EXPIRED: "expire",
    RequestState.SENT_BACK: "send_back",
    RequestState.REJECTED: "reject",
}
_VOIDS = {RequestState.STALE: "go_stale", RequestState.EXPIRED: "expire", RequestState.REVOKED: "revoke"}


class AlreadyDecided(Exception):
    """The policy has decided this proposal before, on other grounds; deciding again needs a new proposal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """What a sender may rely on. `votes` are the yes votes whose voters are entitled still, `answered` the same by
    stage; `problem` is "" or "rejected", "not_approved" (the request was voided), "expired", "rights_lost". `standing`
    is set where people gave the approval beforehand, and whether it still covers the action is the caller's to ask
    (`approvals.standing`)."""

    decision: Decision
    request: ApprovalRequest | None
    votes: tuple[Vote, ...] = ()
    answered: tuple[Answered, ...] = ()
    in_order: bool = False
    problem: str = ""
    standing: StandingApproval | None = None

    @property
    def votes_for(self) -> int:
        return len(self.votes)


def open_request(
    *,
    run: Run,
    proposal: Proposal,
    version: PolicyVersion,
    verdict: Verdict,
    binding_digest: str,
    rows: Sequence[dict[str, str]],
    ask: str,
    supersedes: ApprovalRequest | None,
    actor: Principal,
) -> tuple[ApprovalRequest, list[Stage]]:
    """Ask people; returns the request and its stages. `rows` are {key, label, value} of everything bound, frozen as
    shown; `ask` is cut to one line.

    Inside the caller's transaction, run locked. Raises ValueError unless the verdict asks and the rows' keys differ.
    """
    need = verdict.need
    if need is None:
        raise ValueError("only a verdict that asks opens a request")
    page = [{"key": row["key"], "label": row["label"], "value": row["value"]} for row in rows]
    if len({row["key"] for row in page}) != len(page) or not page:
        raise ValueError("rows need at least one bound value, each under its own key")
    now = clock.now()
    respond_by = stages.counted(clock=need.clock)(now, need.respond_within)
    request = ApprovalRequest(
        run=run,
        proposal=proposal,
        supersedes=supersedes,
        changes=[] if supersedes is None else differences(old_rows=supersedes.page, new_rows=page),
        ask=one_line(text=ask, limit=ASK_LENGTH),
        action_digest=proposal.action_digest,
        binding_digest=binding_digest,
        page=page,
        page_digest=page_digest(rows=page),
        policy_version=version,
        rules=verdict.rules,
        group=need.group,
        quorum=sum(stage.quorum for stage in need.chain),
        confirm=need.confirm,
        clock=need.clock,
        when_late=need.when_late,
        created_at=now,
        respond_by=respond_by,
        valid_until=respond_by + need.valid_for,
    )
    asked = stages.every(request=request, need=need)
    request.quorum = request.quorum or len(asked)  # where only people added by name are asked
    hot.insert(request)
    stages.write(request=request, stages=asked, need=need)
    record.append(run=run, kind="request.opened", actor=actor, **_facts(request, proposal, asked))
    return request, asked


def _facts(request: ApprovalRequest, proposal: Proposal, asked: Sequence[Stage]) -> dict[str, Any]:
    return {
        "request": str(request.pk),
        "proposal": str(proposal.pk),
        "supersedes": str(request.supersedes_id or ""),
        "changes": request.changes,
        "binding_digest": request.binding_digest,
        "page_digest": request.page_digest,
        "policy_version": str(request.policy_version_id),
        "rules": [rule["id"] for rule in request.rules],
        "group": request.group,
        "quorum": request.quorum,
        "confirm": request.confirm,
        "stages": [
            {
                "name": stage.name,
                "groups": stage.groups,
                "conditions": stage.conditions,
                "quorum": stage.quorum,
                "reject_at": stage.reject_at,
                "in_turn": stage.in_turn,
                "added": stage.added_by_id is not None,
            }
            for stage in asked
        ],
        "clock": request.clock,
        "when_late": request.when_late,
        "respond_by": request.respond_by.isoformat(),
        "valid_until": request.valid_until.isoformat(),
    }


def close_open(*, run: Run, to: RequestState, why: str, actor: Principal) -> ApprovalRequest | None:
    """End the run's open request, if it has one, as superseded, withdrawn, sent back or expired; one that expires is
    rejected instead where its rule says so.

    Inside the caller's transaction, run locked. It does not wake the run.
    """
    request = ApprovalRequest.objects.select_for_update(of=("self",)).filter(run=run, state=RequestState.OPEN).first()
    if request is None:
        return None
    request.run = run
    if to == RequestState.EXPIRED and request.when_late == "reject":
        to, why = RequestState.REJECTED, f"{why}; the rule rejects then"
    edge: Callable[[], None] = getattr(request, _CLOSES[to])
    edge()
    request.closed_at = clock.now()
    _close(run, request, why, actor)
    return request


def close_approved(
    *, request: ApprovalRequest, to: RequestState, why: str, actor: Principal, run: Run | None = None
) -> None:
    """Void an approval that was not used: stale, expired or revoked.

    Inside the caller's transaction, run locked. `run` is the locked object (`request.run` when not given): its
    numbering of events has to be the caller's. Raises django_fsm.TransitionNotAllowed unless the request is approved.
    """
    _leave_approved(request, _VOIDS[to])
    _close(run or request.run, request, why, actor)


def spend(*, request: ApprovalRequest, actor: Principal, run: Run | None = None) -> None:
    """Mark an approval as used: its operation is created in this same transaction.

    As for `close_approved`, and the request was read under its lock (`lock_for_sending`).
    """
    _leave(request, "spend")
    _close(run or request.run, request, "", actor)


def _leave_approved(request: ApprovalRequest, edge_name: str) -> None:
    request.state = ApprovalRequest.objects.select_for_update(of=("self",)).get(pk=request.pk).state
    _leave(request, edge_name)


def _leave(request: ApprovalRequest, edge_name: str) -> None:
    if request.state != RequestState.APPROVED:  # an open one may expire as well, but not here
        raise TransitionNotAllowed(f"the request is {request.state}, not approved", object=request)
    edge: Callable[[], None] = getattr(request, edge_name)
    edge()


def _close(run: Run, request: ApprovalRequest, why: str, actor: Principal) -> None:
    request.close_reason, request.closed_by = why, actor
    hot.update(row=request, names=["state", "closed_at", "close_reason", "closed_by"])
    record.append(run=run, kind=f"request.{request.state}", actor=actor, request=str(request.pk), why=why)


def policy_decision(
    *,
    run: Run,
    proposal: Proposal,
    version: PolicyVersion,
    verdict: Verdict,
    binding_digest: str,
    valid_for: dt.timedelta,
    actor: Principal,
) -> Decision:
    """The policy alone allows it; made again on the same grounds, the first decision is returned.

    Inside the caller's transaction, run locked. Raises ValueError unless the verdict allows, and AlreadyDecided.
    """
    if verdict.effect != "allow":
        raise ValueError("only a verdict that allows makes a policy's decision")
    before = Decision.objects.filter(proposal=proposal, kind=Decision.Kind.POLICY).first()
    if before is not None:
        if (before.binding_digest, before.policy_version_id) == (binding_digest, version.pk):
            return before
        raise AlreadyDecided(str(proposal.pk))
    now = clock.now()
    decision = Decision.objects.create(
        kind=Decision.Kind.POLICY,
        approved=True,
        proposal=proposal,
        policy_version=version,
        rules=verdict.rules,
        binding_digest=binding_digest,
        decided_at=now,
        valid_until=now + valid_for,
    )
    record.append(
        run=run,
        kind="decision.policy",
        actor=actor,
        decision=str(decision.pk),
        proposal=str(proposal.pk),
        policy_version=str(version.pk),
        rules=[rule["id"] for rule in verdict.rules],
        binding_digest=binding_digest,
        valid_until=decision.valid_until.isoformat(),
    )
    return decision


_NEWEST = hot.Query(
    lambda proposal: Decision.objects.filter(proposal=proposal).order_by("-decided_at", "-id")[:1], share=True
)
_LOCKED = hot.Query(lambda request: ApprovalRequest.objects.select_for_update(of=("self",)).filter(pk=request))


def lock_for_sending(*, run: Run, proposal: Proposal) -> Authority | None:
    """The newest decision on the proposal, locked with all it depends on, and whether it may be used now.

    Holds the decision FOR SHARE, its request FOR UPDATE, then its voters' user rows FOR SHARE. A spent request passes
    here: that it was spent by the caller's own operation is the caller's to see (`operation.decision`). What the
    decision is bound to, and the policy in force, are the caller's to compare. Inside the caller's transaction, run
    locked.
    """
    if proposal.run_id != run.pk:
        return None
    newest = _NEWEST.first(proposal=proposal.pk)
    if newest is None:
        return None
    request = None
    if newest.request_id is not None:
        request = _LOCKED.one(request=newest.request_id)
        request.run, request.proposal = run, proposal  # one object, so that everybody numbers events by it
    if request is None:
        given = newest.standing_id
        return Authority(
            decision=newest,
            request=None,
            problem=_problem(newest, None, enough=True),
            standing=None if given is None else standing_use.hold(standing_id=given),
        )
    seated = with_voters(request=request)
    return Authority(
        decision=newest,
        request=request,
        votes=tuple(seated.counted),
        answered=tuple(seated.answered),
        in_order=seated.in_order,
        problem=_problem(newest, request, enough=all(seated.yes(one) >= one.quorum for one in seated.stages)),
    )


def with_voters(*, request: ApprovalRequest) -> Seating:
    """The request's votes with what is known of the voters and whom they stood in for, whose rows are held."""
    votes, asked = seating.votes_of(request=request), seating.stages_of(request=request)
    user_ids = {user_id for vote in votes for user_id in (vote.principal.user_id, vote.counts_for) if user_id}
    locks.share_users(user_ids=user_ids, groups=[name for stage in asked for name in stage.every_group])
    return seating.of_voters(request=request, stages=asked, votes=votes)


def _problem(decision: Decision, request: ApprovalRequest | None, *, enough: bool) -> str:
    if not decision.approved:
        return "rejected"
    if request is not None and request.state not in (RequestState.APPROVED, RequestState.SPENT):
        return "not_approved"
    if clock.now() >= decision.valid_until:
        return "expired"
    return "" if enough else "rights_lost"


_PROPOSAL = hot.Query(lambda proposal: Proposal.objects.filter(pk=proposal))
_RUN_OF = hot.Query(
    lambda request: Run.objects.select_for_update(of=("self",)).filter(
        pk__in=ApprovalRequest.objects.filter(pk=request).values("run_id")
    )
)


def lock_with_run(*, request_id: uuid.UUID) -> ApprovalRequest:
    """The request and its run, both locked in the fixed order. Raises ApprovalRequest.DoesNotExist."""
    run = _RUN_OF.first(request=request_id)
    if run is None:
        raise ApprovalRequest.DoesNotExist(f"there is no request {request_id}")
    request = _LOCKED.one(request=request_id)
    request.run, request.proposal = principals.known(run=run), _PROPOSAL.one(proposal=request.proposal_id)
    return request


def record_viewing(*, request_id: uuid.UUID, user: User) -> None:
    """Remember that the person opened the decision page; the first time counts. One durable transaction.

    While people may still answer, the bound facts are read again, so that the page learns of a change.
    """
    with transaction.atomic(durable=True):
        principal = principals.of_user(user=user)
        request = lock_with_run(request_id=request_id)
        viewing = Viewing(request_id=request_id, principal=principal, at=clock.now())
        Viewing.objects.bulk_create([viewing], ignore_conflicts=True)
        if request.state == RequestState.OPEN and request.run.facts_wanted_at is None and _old(request.run):
            transitions.want_facts(run=request.run)


def _old(run: Run) -> bool:
    """Were the facts read longer ago than they count as fresh? Each look of each colleague must not cost six reads."""
    read_at = run.evidence.aggregate(last=Max("retrieved_at"))["last"]
    return read_at is None or clock.now() - read_at > settings.FACT_FRESH
