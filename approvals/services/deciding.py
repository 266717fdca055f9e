"""What people's decision takes beside their words, looked at under the locks, and its writing, which happens here and
nowhere else.

Building blocks: they run inside the caller's transaction, which holds run, request, users, freezes and policy, in this
order, and read everything after that.
"""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from approvals import capabilities, freezes, objections, queries
from approvals.evaluation import Verdict
from approvals.models import ApprovalRequest, Decision, Freeze, PolicyVersion, Vote
from approvals.objections import Objection
from approvals.seating import Seating
from approvals.services import stages
from runs import hot
from runs.models import Run

READ_AGAIN = ("out_of_date", "policy_changed")  # objections with which the run reads the facts again


class Reevaluate(Protocol):
    """What a newer version of the policy says of what is asked; only the layer that knows the workflows can tell."""

    def __call__(self, *, request: ApprovalRequest, version: PolicyVersion) -> Verdict: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Matter:
    """A request with all that a decision on it depends on."""

    request: ApprovalRequest
    run: Run
    now: dt.datetime
    freeze: Freeze | None
    governing: PolicyVersion | None
    reevaluate: Reevaluate | None
    seating: Seating


def all_met(*, seating: Seating) -> bool:
    return all(seating.yes(stage) >= stage.quorum for stage in seating.stages)


def out_of_date(matter: Matter) -> Objection | None:
    newest = queries.newest_binding(run=matter.run, proposal=matter.request.proposal)
    return None if newest == matter.request.binding_digest else Objection(code="out_of_date")


def policy_changed(matter: Matter) -> Objection | None:
    request, version = matter.request, matter.governing
    verdict = None
    if version is not None and version.pk != request.policy_version_id and matter.reevaluate is not None:
        verdict = matter.reevaluate(request=request, version=version)
    return objections.policy(request=request, version=version, verdict=verdict)


def not_granted(matter: Matter) -> Objection | None:
    """A yes to what the run may not do any more would let nothing happen."""
    return capabilities.withheld(run=matter.run, tool=matter.request.proposal.tool, variables=None, now=matter.now)


def frozen(matter: Matter) -> Objection | None:
    if matter.freeze is None:
        return None
    return Objection(code=freezes.FROZEN, detail={"freeze": matter.freeze.words})


def whose(votes: Iterable[Vote], /) -> str:
    """`Anna, Bert for Carla`."""
    return ", ".join(one.whose for one in votes)


def decide(*, matter: Matter, approved: bool) -> Decision:
    """Write the decision and close the request; the caller records it and wakes the run."""
    request = matter.request
    if approved:
        stages.meet(seating=matter.seating, run=matter.run, now=matter.now)
    decision = Decision(
        kind=Decision.Kind.PEOPLE,
        approved=approved,
        proposal=request.proposal,
        request=request,
        policy_version_id=request.policy_version_id,
        rules=request.rules,
        votes=[str(one.pk) for one in (matter.seating.counted if approved else matter.seating.refusing)],
        binding_digest=request.binding_digest,
        decided_at=matter.now,
        valid_until=request.valid_until,
    )
    hot.insert(decision)
    if approved:
        request.approve()
    else:
        request.reject()
    request.closed_at = matter.now
    hot.update(row=request, names=["state", "closed_at"])
    return decision
