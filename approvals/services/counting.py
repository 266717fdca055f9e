"""Counting what was said before, where people come or go between two votes.

A yes counts while its person is entitled to it. When one comes to count again nobody votes, so the relay looks at what
stands: a stage that has its people by the votes there are is met, as the next vote would find it, and where all are the
request is decided. Nobody's word is added, each was given to the very page that is asked, and everything that a yes
takes is looked at anew under the same locks. A stage whose people are not entitled any more is asked again.
"""

import uuid
from collections.abc import Callable, Iterable

from django.db import transaction

from approvals import freezes, objections
from approvals.involvement import involved
from approvals.models import ApprovalRequest, Stage
from approvals.models.request import RequestState
from approvals.objections import Objection
from approvals.services import deciding, policies, requests, stages
from approvals.services.deciding import Matter, Reevaluate
from runs import clock, one_by_one, record, transitions
from runs.models import Run
from runs.services import principals


def work_off(*, requests: Iterable[uuid.UUID], reevaluate: Reevaluate) -> int:
    """Count these anew; returns of how many anything changed. Safe to run anywhere, any number at once.

    Raises `one_by_one.NotAll`; those it names wait.
    """
    return one_by_one.work_off(
        items=requests, do=lambda pk: _one(pk, reevaluate), name=lambda pk: f"counting request {pk} again"
    )


def _one(pk: uuid.UUID, reevaluate: Reevaluate) -> bool:
    """In a durable transaction, locked as for a vote; what somebody else has locked is left for the next look."""
    with transaction.atomic(durable=True):
        of_request = ApprovalRequest.objects.filter(pk=pk).values("run_id")
        if not Run.objects.select_for_update(of=("self",), skip_locked=True).filter(pk__in=of_request).exists():
            return False
        request = requests.lock_with_run(request_id=pk)
        if request.state != RequestState.OPEN:
            return False
        seated = requests.with_voters(request=request)
        freeze = freezes.over(workflow=request.run.workflow, tool=request.proposal.tool, lock=True)
        governing = policies.governing(tool=request.proposal.tool, lock=True)
        matter = Matter(
            request=request,
            run=request.run,
            now=clock.now(),
            freeze=freeze,
            governing=governing,
            reevaluate=reevaluate,
            seating=seated,
        )
        if _closed(matter) is not None:
            return False
        with record.together(run=request.run):
            asked_again = stages.ask_again(seating=seated, run=request.run)
            met = [one for one in seated.stages if one.is_asked and seated.yes(one) >= one.quorum]
            return (_count(matter, met) if met else False) or asked_again


def _closed(matter: Matter) -> Objection | None:
    return objections.closed(request=matter.request, run=matter.run, user=matter.seating.user, now=matter.now)


def _part(matter: Matter) -> Objection | None:
    """Whoever has a part in the run by now has no word in it."""
    words = matter.seating.counted
    people = {user_id for one in words for user_id in (one.principal.user_id, one.counts_for) if user_id is not None}
    return Objection(code="own_request") if involved(run=matter.run, user_ids=people) else None


# what a yes takes beside its own person's click, in the order of a vote
_CHECKS: tuple[Callable[[Matter], Objection | None], ...] = (
    _part,
    deciding.not_granted,
    deciding.frozen,
    deciding.out_of_date,
    deciding.policy_changed,
)


def _count(matter: Matter, met: list[Stage]) -> bool:
    """Nothing is refused where nobody asked: what stands against it is looked at again the next time."""
    request, run = matter.request, matter.run
    objection = next((found for check in _CHECKS if (found := check(matter)) is not None), None)
    if objection is not None:
        if objection.code in deciding.READ_AGAIN and run.facts_wanted_at is None:
            transitions.want_facts(run=run)
        return False
    for stage in met:
        _record(matter, stage)
    if not deciding.all_met(seating=matter.seating):
        stages.meet(seating=matter.seating, run=run, now=matter.now)
        return True
    decision = deciding.decide(matter=matter, approved=True)
    record.append(
        run=run,
        kind=f"request.{request.state}",
        actor=principals.system(),
        request=str(request.pk),
        decision=str(decision.pk),
        binding_digest=request.binding_digest,
        counted=deciding.whose(matter.seating.counted),
        votes=[str(one.pk) for one in matter.seating.counted],
        votes_for=matter.seating.yes_in_all,
        quorum=matter.seating.needed_in_all,
    )
    transitions.wake(run=run)
    return True


def _record(matter: Matter, stage: Stage) -> None:
    votes = [one for one in matter.seating.counted if one.stage_id == stage.pk]
    record.append(
        run=matter.run,
        kind="request.counted",
        actor=principals.system(),
        request=str(matter.request.pk),
        stage=stage.name,
        stage_id=str(stage.pk),
        counted=deciding.whose(votes),
        votes=[str(one.pk) for one in votes],
        quorum=stage.quorum,
    )
