"""Whether there are people enough for what is asked, or would be. Reads only."""

import uuid
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
    """Stages asked now of groups, or of people by name, of whom none may vote any more; with this condition runs that
    wait for them are found, whatever took the right away."""
    asked = Stage.objects.filter(opened_at__isnull=False, met_at__isnull=True, request__state=RequestState.OPEN)
    groups = list(asked.filter(person__isnull=True).values_list("groups", "also").distinct())
    named = asked.filter(person__isnull=False).values("person_id")
    there = set(rights.voters().filter(groups__name__in={one for pair in groups for name in pair for one in name})
                .values_list("groups__name", flat=True))  # fmt: skip
    gone = Q(person__in=User.objects.filter(pk__in=named).exclude(pk__in=rights.voters()))
    for own, also in groups:
        if there.isdisjoint([*own, *also]):
            gone |= Q(person__isnull=True, groups=own, also=also)
    return gone
