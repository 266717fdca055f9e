"""Whether there are people enough for what is asked, or would be. Reads only."""

import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from copy import copy

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from approvals import rights, seating
from approvals.models import ApprovalRequest, Stage, Vote
from approvals.models.request import RequestState
from runs import hot
from runs.models import Principal, Proposal

NOBODY = "somebody who may answer"  # how what a run waits for begins, while no such person is there
ENOUGH = 20  # members that are looked for at once
FEW = 20  # people of a stage's groups who are looked at one by one


def _free(group: str, run: uuid.UUID, initiator: uuid.UUID, run_as: uuid.UUID, agent: uuid.UUID) -> QuerySet[User]:
    part = Principal.objects.filter(
        Q(pk=initiator) | Q(pk=run_as) | Q(pk=agent) | Q(pk__in=Proposal.objects.filter(run=run).values("proposer")),
        user__isnull=False,
    )
    found = rights.voters().filter(groups__name=group).exclude(pk__in=part.values("user_id"))
    return found.order_by("pk")[:ENOUGH]


_FREE = hot.Query(_free)


def missing(
    *,
    request: ApprovalRequest,
    stages: Sequence[Stage],
    votes: Sequence[Vote] = (),
    escalating: Iterable[str] = (),
) -> Stage | None:
    """A stage that could not have its people if everybody answered who may, those included whom an escalation to the
    groups `escalating` will ask; None while there are enough. The request need not be stored."""
    if len(stages) == 1 and not votes and _plainly_enough(request, stages[0]):
        return None
    return seating.short_of(request=request, stages=_with(stages, escalating), votes=votes)


def _plainly_enough(request: ApprovalRequest, stage: Stage) -> bool:
    """One statement for what nearly all rules ask: so many of a group, whoever they are."""
    if stage.person_id is not None or stage.conditions or len(stage.groups) != 1:
        return False
    run = request.run
    free = _FREE(
        group=stage.groups[0], run=run.pk, initiator=run.initiator_id, run_as=run.run_as_id, agent=run.agent_id
    )
    return len(free) >= stage.quorum


def _with(stages: Sequence[Stage], escalating: Iterable[str]) -> list[Stage]:
    """An escalation asks every stage but the people added by name."""
    more, found = list(escalating), []
    for stage in stages:
        one = copy(stage)
        if one.person_id is None:
            one.also = [*stage.also, *more]
        found.append(one)
    return found


def unanswerable() -> Q:
    """Stages asked now of people of whom none may answer any more: none has the right to vote, meets what is asked of
    the person, and has neither a part in the run nor answered. With this condition runs that wait for them are found,
    whatever took the right away. Where more than `FEW` may vote, one of them is taken to be there."""
    asked = Stage.objects.filter(opened_at__isnull=False, met_at__isnull=True, request__state=RequestState.OPEN)
    groups = list(asked.filter(person__isnull=True).values_list("groups", "also", "conditions").distinct())
    named = asked.filter(person__isnull=False).values("person_id")
    every = {name for own, also, _ in groups for name in (*own, *also)}
    there = Counter(rights.voters().filter(groups__name__in=every).values_list("groups__name", flat=True))
    gone = Q(person__in=User.objects.filter(pk__in=named).exclude(pk__in=rights.voters()))
    for own, also, conditions in groups:
        names = {*own, *also}
        if sum(there[name] for name in names) > FEW:
            continue
        people = seating.known(groups=names)
        parts = _parts(people)
        somebody = Q(pk__in=[])
        for person in people.values():
            somebody |= seating.stages_for(person=person) & parts[person.user.pk]
        gone |= Q(person__isnull=True, groups=own, also=also, conditions=conditions) & ~somebody
    return gone


def _parts(people: Iterable[int]) -> dict[int, Q]:
    """By person, the stages of requests in whose run they have no part, and which nobody has answered as they."""
    own = defaultdict(list)
    for user_id, pk in Principal.objects.filter(user_id__in=list(people)).values_list("user_id", "pk"):
        own[user_id].append(pk)
    return {user_id: _no_part(own[user_id]) for user_id in people}


def _no_part(own: list[uuid.UUID]) -> Q:
    if not own:
        return Q()
    run = Q(request__run__initiator__in=own) | Q(request__run__run_as__in=own) | Q(request__run__agent__in=own)
    proposed = Proposal.objects.filter(proposer__in=own, run__finished_at__isnull=True).values("run")
    answered = Q(principal__in=own) | Q(instead_of__in=own)
    votes = Vote.objects.filter(answered, request__state=RequestState.OPEN).values("request")
    return ~run & ~Q(request__run__in=proposed) & ~Q(request__in=votes)
