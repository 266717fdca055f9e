"""Whose yes counts, for what pages and words say of it: while something hangs on it, that of people who are entitled to
it still; of what was decided and is over, that which made the decision; of what ended without one, that of all who gave
one. Reads only."""

import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from django.contrib.auth.models import User
from django.db.models import prefetch_related_objects

from approvals import seating
from approvals.models import ApprovalRequest, Vote
from approvals.models.request import RequestState
from approvals.seating import Seating, Unfit
from approvals.voters import known

_LIVE = (RequestState.OPEN, RequestState.APPROVED)  # an approval is looked at again before it is used


def yes(*, requests: Iterable[ApprovalRequest]) -> Counter[uuid.UUID]:
    """How many count, by the stage's id: one query for all of the requests, and one each for their stages, votes and
    principals where these were not read along with them."""
    rows = list(requests)
    prefetch_related_objects(rows, "stages", "votes__principal", "votes__instead_of")
    prefetch_related_objects([one for one in rows if one.state not in _LIVE], "decision")
    live = [vote for request in rows if request.state in _LIVE for vote in request.votes.all()]
    people = known(
        user_ids={user_id for vote in live for user_id in (vote.principal.user_id, vote.counts_for) if user_id}
    )
    found: Counter[uuid.UUID] = Counter()
    for request in rows:
        found += yes_in(
            seated=Seating(
                request=request,
                user=User(),
                stages=list(request.stages.all()),
                votes=list(request.votes.all()),
                people=people,
                covered=(),
            )
        )
    return found


def yes_in(*, seated: Seating) -> Counter[uuid.UUID]:
    """The same for a request that is looked at already."""
    counted = seated.counted if seated.request.state in _LIVE else after(request=seated.request, votes=seated.votes)
    return Counter(vote.stage_id for vote in counted if vote.choice == Vote.Choice.APPROVE)


def after(*, request: ApprovalRequest, votes: Iterable[Vote]) -> list[Vote]:
    """Of these votes of a request that is decided those that made the decision; all where it ended without one."""
    decision = getattr(request, "decision", None)
    return [vote for vote in votes if decision is None or decision.made_by(vote)]


def deciders(*, request: ApprovalRequest) -> list[Vote]:
    """The votes that made the decision on a request that is decided, with their people, in the order given."""
    votes = Vote.objects.filter(request=request).select_related("principal", "instead_of").order_by("at", "id")
    return after(request=request, votes=votes)


def left_out(*, request: ApprovalRequest, votes: Iterable[Vote]) -> set[uuid.UUID]:
    """The ids of those a yes of which made no part of what was decided, once that can no longer change."""
    decision = getattr(request, "decision", None)
    if decision is None or request.state in _LIVE or not decision.approved:
        return set()
    return {vote.pk for vote in votes if vote.choice == Vote.Choice.APPROVE and not decision.made_by(vote)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """What is missing that a yes counts: `whose`, and of what; an account that is not active, the right to vote, or
    what their stage asks of them."""

    whose: str
    what: Literal["account", "right"] | Unfit


def lost(*, seated: Seating) -> dict[uuid.UUID, Lost]:
    """By the vote's id, of each yes that something hangs on and that does not count."""
    if seated.request.state not in _LIVE:
        return {}
    by_id = {stage.pk: stage for stage in seated.stages}
    yes = [vote for vote in seated.votes if vote.choice == Vote.Choice.APPROVE]
    gone = [vote for vote in yes if not seated.counts(vote, by_id[vote.stage_id])]
    if not gone:
        return {}
    people = {one.user_id: str(one) for vote in gone for one in (vote.principal, vote.instead_of) if one is not None}
    ended = User.objects.filter(pk__in=[pk for pk in people if pk], is_active=False)
    inactive = set(ended.values_list("pk", flat=True))
    found: dict[uuid.UUID, Lost] = {}
    for vote in gone:
        out = next((pk for pk in (vote.principal.user_id, vote.counts_for) if pk not in seated.people), None)
        if out is not None:
            found[vote.pk] = Lost(whose=people[out], what="account" if out in inactive else "right")
            continue
        holder = seated.people[vote.counts_for or 0]
        what = seating.unfit(stage=by_id[vote.stage_id], person=holder, proposal=seated.request.proposal)
        if what is not None:
            found[vote.pk] = Lost(whose=people[holder.user.pk], what=what)
    return found
