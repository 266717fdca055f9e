"""Reads about requests and drafts: the inbox, what is due, what a decision rests on. The number of queries is fixed."""

import uuid
from collections.abc import Iterable
from typing import Any, Literal

from django.contrib.auth.models import User
from django.db.models import BooleanField, Exists, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from approvals import objections, seating, voters
from approvals.binding import binding_digest
from approvals.involvement import involved_in
from approvals.models import ApprovalRequest, DraftRevision, Freeze, PolicyDraft, Stage, Vote
from approvals.models.draft import DraftState
from approvals.models.request import RequestState
from approvals.voters import Known
from runs import clock, keeping
from runs.models import Evidence, Principal, Proposal, Run

Tab = Literal["mine", "others", "decided", "all"]
MOST_COUNTED = 500
SHOWN = (
    "run__initiator",
    "run__agent",
    "run__cancelled_by",
    "proposal__proposer",
    "policy_version__policy",
    "supersedes",
    "decision",
)
# what no row shows, and what would be read out of its JSON for each
NOT_SHOWN = (
    "words",
    *(f"run__{name}" for name in ("input", "capabilities", "terms", "refusals")),
    *(f"proposal__{name}" for name in ("effect", "rests_on", "workings", "rationale")),
    *(f"supersedes__{name}" for name in ("page", "rules", "changes", "words")),
    "policy_version__rules",
    "decision__rules",
)


def scope(*, user: User, tab: Tab) -> QuerySet[ApprovalRequest]:
    """What a tab of the inbox holds, in no order: "mine" and "others" are open, "decided" closed, without those that
    were merely superseded, and "all" both of them."""
    if tab == "all":
        return ApprovalRequest.objects.exclude(state=RequestState.SUPERSEDED)
    return _decided() if tab == "decided" else _open(user=user, mine=tab == "mine")


def answered_by(*, user: User) -> QuerySet[Vote, Any]:
    """The requests that this person has voted on, by id."""
    return Vote.objects.filter(principal__user_id=user.pk).values("request")


def counted(*, rows: QuerySet[ApprovalRequest]) -> int:
    """How many there are, looked at no further than `MOST_COUNTED`; one more stands for any number above it. The rows
    come in an order that an index has, so that the database stops where the count does."""
    return rows[: MOST_COUNTED + 1].count()


def waiting_count(*, user: User, waiting: QuerySet[ApprovalRequest] | None = None) -> int:
    """How many requests wait for this very person, counted as in `counted`; `waiting` is the scope of them, where it is
    put together already."""
    found = _open(user=user, mine=True) if waiting is None else waiting
    return counted(rows=found.order_by("respond_by"))


def stood_for(*, user: User, requests: Iterable[ApprovalRequest]) -> dict[uuid.UUID, str]:
    """By request, of those that wait for the person in somebody else's place alone, whose place that is. Their stages
    are read along with them."""
    away = seating.covered(user=user)
    if not away:
        return {}
    people = voters.known(user_ids=[user.pk, *away])
    rows = list(requests)
    part = involved_in(runs=[request.run for request in rows], user_ids=away)
    votes = Vote.objects.filter(request__in=rows).select_related("principal", "instead_of")
    found: dict[uuid.UUID, str] = {}
    for request in rows:
        mine = [vote for vote in votes if vote.request_id == request.pk]
        able = seating.Seating(
            request=request,
            user=user,
            stages=list(request.stages.all()),
            votes=mine,
            people=people,
            covered=[pk for pk in away if pk not in part[request.run_id]],
        ).free()
        if able and able[0].instead_of is not None:
            found[request.pk] = able[0].instead_of.name
    return found


def drafts_waiting(*, user: User) -> int:
    """How many drafts of policies this person could publish: asked for, and written by others alone."""
    part = DraftRevision.objects.filter(draft=OuterRef("pk"), author__user_id=user.pk)
    waiting = PolicyDraft.objects.filter(~Exists(part), state=DraftState.ASKED)
    return waiting.exclude(asked_by__user_id=user.pk).count()


def may_vote(*, user: User, request: ApprovalRequest) -> str:
    """The code of the reason why the person's vote would be refused now, or "" (see `approvals.words`)."""
    found = objections.first(request=request, user=user, now=clock.now())
    return "" if found is None else found.code


def newest_binding(*, run: Run, proposal: Proposal) -> str | None:
    """The binding digest of the proposal over the run's newest reading, as `binding_over`."""
    return binding_over(proposal=proposal, facts=keeping.newest_reading(run_id=run.pk))


def binding_over(*, proposal: Proposal, facts: Iterable[Evidence]) -> str | None:
    """The binding digest of the proposal over what it rests on, as `facts` (one reading) have it.

    None when they have no such piece any more, or another document in its place: a fact that has disappeared is a fact
    that has changed.
    """
    now_there = list(facts)
    known = {str(one.pk): one for one in now_there}
    if not known.keys() >= set(proposal.rests_on):  # it rests on an earlier reading
        known = {str(one.pk): one for one in keeping.pieces(run_id=proposal.run_id, ids=proposal.rests_on)}
    places = [(known[one].kind, known[one].locator) for one in dict.fromkeys(proposal.rests_on) if one in known]
    newest = {(found.kind, found.locator): found for found in now_there}
    if len(places) != len(set(proposal.rests_on)) or not newest.keys() >= set(places):
        return None
    now = [newest[place] for place in places]
    return binding_digest(
        action_digest=proposal.action_digest,
        facts=[one.as_bound for one in now],
    )


def _open(*, user: User, mine: bool) -> QuerySet[ApprovalRequest]:
    # while something is frozen, or was a moment ago, the stored time may not be the one that counts
    in_time = Q(respond_by__gt=clock.ClockTimestamp()) | Exists(Freeze.objects.filter(thawed_at__isnull=True))
    still = ApprovalRequest.objects.filter(in_time, state=RequestState.OPEN, run__cancel_requested_at__isnull=True)
    people = voters.known(user_ids=[user.pk, *seating.covered(user=user)])
    if user.pk not in people:
        return still.none() if mine else still
    acting = Principal.objects.filter(user_id__in=people).values_list("user_id", "pk")
    free = {user_id: _has_no_part([pk for whose, pk in acting if whose == user_id]) for user_id in people}
    asked = Q()
    for user_id, one in people.items():
        asked |= _asks(one) if user_id == user.pk else _asks(one) & free[user_id]
    for_user = asked & free[user.pk]
    return still.filter(for_user) if mine else still.exclude(for_user)


def _asks(person: Known) -> Q:
    """A stage of the request is open to this very person."""
    stages = Stage.objects.filter(
        seating.stages_for(person=person),
        seating.handed_to(person=person),
        request=OuterRef("pk"),
        opened_at__isnull=False,
        met_at__isnull=True,
    )
    return _there(stages)


def _has_no_part(principals: list[uuid.UUID]) -> Q:
    """None of these is of the run or proposed anything in it, none has answered, and nobody has for them."""
    if not principals:
        return Q()
    own = Q(run__initiator__in=principals) | Q(run__run_as__in=principals) | Q(run__agent__in=principals)
    proposed = Proposal.objects.filter(run=OuterRef("run"), proposer__in=principals)
    answered = Q(principal__in=principals) | Q(instead_of__in=principals)
    votes = Vote.objects.filter(answered, request=OuterRef("pk"))
    return ~own & ~_there(proposed) & ~_there(votes)


def _there(rows: QuerySet[Any]) -> Q:
    """Whether there is such a row. No EXISTS: that is planned as a join with all that is open, and a page is to look no
    further than it shows."""
    found = Subquery(rows.order_by().values(yes=Value(True))[:1])
    return Q(Coalesce(found, Value(False), output_field=BooleanField()))


def _decided() -> QuerySet[ApprovalRequest]:
    return ApprovalRequest.objects.filter(closed_at__isnull=False).exclude(state=RequestState.SUPERSEDED)
