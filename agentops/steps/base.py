"""What every step has in hand, and the one way it commits."""

import datetime as dt
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from django.conf import settings
from django.db import transaction

from agentops import hints
from agentops.reasons import Reason
from agentops.workflows.base import Done, Workflow
from approvals import freezes
from approvals.models import ApprovalRequest
from approvals.models.request import RequestState
from approvals.services import requests
from reconciliation import moves
from reconciliation.models import Operation
from reconciliation.models.operation import SETTLED, OperationState
from runs import clock, faultpoints, hot, keeping, leases, record, transitions
from runs.models import Evidence, Principal, Proposal, Run
from runs.models.run import RunState
from runs.services import signalling

MAX_OUT_OF_DATE = 3
MAX_REFUSED = 3


class Next(Enum):
    GO_ON = "go on"
    PARK = "park"  # the lease has been given back
    HELD = "held"  # given back too: a shared limit let nothing begin, and nothing is concluded from that
    LOOK = "look"  # something was told about what was done before: it is looked up first


@dataclass(slots=True)
class InHand:
    """What was read or written under this claim and need not be read twice, above all rows that never change."""

    proposal: Proposal | None = None
    facts: dict[str, Evidence] = field(default_factory=dict)
    quiet: bool = False  # all was well with the tool when the facts for its call were read


@dataclass(frozen=True, slots=True)
class Step:
    """`run` is a snapshot read without a lock; a step that writes locks the row again and trusts only that."""

    lease: leases.Lease
    run: Run
    workflow: Workflow
    actor: Principal
    hand: InHand = field(default_factory=InHand)

    def proposal(self) -> Proposal:
        """The action in hand: always the newest, and only the holder of the run makes a newer one."""
        if self.hand.proposal is None:
            self.hand.proposal = _NEWEST.one(run=self.run.pk)
        return self.hand.proposal

    def facts(self) -> dict[str, Evidence]:
        """The latest reading, by kind; empty before the first."""
        if not self.hand.facts:
            self.hand.facts = keeping.newest_facts(run=self.run)
        return self.hand.facts


_NEWEST = hot.Query(lambda run: Proposal.objects.filter(run=run).order_by("-number")[:1])


@contextmanager
def committing(lease: leases.Lease, point: str) -> Iterator[Run]:
    """One durable transaction that holds the run under its lease. Raises LeaseLost, with nothing written."""
    points = lease.points = [point]
    with transaction.atomic(durable=True):
        run = leases.hold(lease=lease, seconds=settings.LEASE_SECONDS, any_freeze=freezes.ANY)
        before = run.state
        with record.together(run=run):
            yield run
        reach_all(points, "before")
    committed(lease, run)
    reach_all(points, "after")
    if RunState.AWAITING_APPROVAL in (before, run.state):
        hints.lists_moved()


def reach_all(points: list[str], end: str) -> None:
    for one in points:
        faultpoints.reach(f"{one}.{end}")


def committed(lease: leases.Lease, run: Run) -> None:
    """The locked run was committed as it is, so it need not be read again to go on from here."""
    lease.run = run
    hints.publish(run_id=run.pk, seq=run.event_seq)


# steps that need nobody and nothing from outside, given the locked run; each may be part of another step's commit
AT_ONCE: dict[str, tuple[str, Callable[["Step", Run], Next]]] = {}


def may_go_on(run: Run) -> bool:
    """Whether nothing that an engine looks for between two steps has come for the locked run, and nothing is frozen,
    as was asked with its row; where that was not asked, the engine looks."""
    return run.cancel_requested_at is None and run.paused_at is None and run.any_freeze is False


def go_on_at_once(step: "Step", run: Run) -> Next:
    """Take the next step within this very commit where that can be; it is replayed with it after a crash."""
    if run.state not in AT_ONCE or not may_go_on(run):
        return Next.GO_ON
    point, take = AT_ONCE[run.state]
    step.lease.points.insert(0, point)
    return take(step, run)


def park(
    run: Run, *, until: dt.datetime | None, waits_for: str, waits_on: str = "", frozen_by: uuid.UUID | None = None
) -> Next:
    """Let go of the locked run until `until`, or until somebody wakes it. The caller has looked, under this lock, that
    nothing it waits for has happened. `waits_on` is the key of the shared thing it waits for, `frozen_by` a freeze."""
    changed = ["frozen_by"] if frozen_by != run.frozen_by else []
    run.frozen_by = frozen_by
    run.wake_at, run.waits_for, run.waits_on = transitions.due(run=run, at=until), waits_for[:300], waits_on[:300]
    run.lease_until, run.lease_holder, run.claims_in_row = None, "", 0
    saved = ["wake_at", "waits_for", "waits_on", "lease_until", "lease_holder", "claims_in_row", *changed]
    record.save(run=run, names=saved)
    return Next.PARK


def wait(
    run: Run,
    *,
    resume_to: RunState,
    until: dt.datetime | None,
    waits_for: str,
    actor: Principal,
    why: str = "",
    **fields: Any,
) -> Next:
    """Park the locked run in the state *waiting*, to go on at `resume_to` when the time has come, or it is woken."""
    transitions.move(
        run=run,
        to=RunState.WAITING,
        actor=actor,
        why=why,
        resume_to=resume_to,
        waits_for=waits_for[:300],
        wake_at=until,
        **fields,
    )
    return Next.PARK


def hand_over(run: Run, *, code: str, reason: str, actor: Principal) -> Next:
    """A person goes on with the locked run; no worker holds it, and no decision about it stands meanwhile."""
    # a cancel that was asked for is carried out next; and what was asked for may have come before it was waited for
    at_once = run.cancel_requested_at is not None or signalling.unused(run=run, kind=signalling.DOCUMENT)
    close_requests(run, why=reason, actor=actor)
    abandon_unsent(run, why=reason, actor=actor)
    if run.state == RunState.QUEUED:
        transitions.move(run=run, to=RunState.GATHERING, actor=actor)
    elif run.state == RunState.WAITING:
        transitions.move(run=run, to=RunState(run.resume_to), actor=actor)
    transitions.move(
        run=run,
        to=RunState.NEEDS_PERSON,
        actor=actor,
        why=reason,
        person_code=code,
        person_reason=reason,
        waits_for="a person to go on",
        wake_at=clock.now() if at_once else None,
    )
    return Next.PARK


def close_requests(run: Run, *, why: str, actor: Principal) -> None:
    """Nothing of the locked run is asked any more, and no unused approval is left behind."""
    requests.close_open(run=run, to=RequestState.WITHDRAWN, why=why, actor=actor)
    for request in ApprovalRequest.objects.select_for_update(of=("self",)).filter(run=run, state=RequestState.APPROVED):
        requests.close_approved(request=request, to=RequestState.REVOKED, why=why, actor=actor, run=run)


def abandon_unsent(run: Run, *, why: str, actor: Principal) -> None:
    """What was never sent is given up: nothing would ever send it, and it keeps its business key and its totals."""
    unsent = Operation.objects.select_for_update(of=("self",)).filter(run=run, state=OperationState.AUTHORISED)
    for one in unsent:
        moves.move(run=run, operation=one, to=OperationState.ABANDONED, actor=actor, why=why)


def out_of_date(run: Run, *, why: str, actor: Principal) -> Next:
    """The facts moved: read them again, a bounded number of times."""
    if run.times_out_of_date >= MAX_OUT_OF_DATE:
        reason = f"the facts kept changing ({run.times_out_of_date} times); last: {why}"
        return hand_over(run, code=Reason.KEEPS_CHANGING, reason=reason, actor=actor)
    transitions.move(
        run=run, to=RunState.GATHERING, actor=actor, why=why, times_out_of_date=run.times_out_of_date + 1
    )  # fmt: skip
    return Next.GO_ON


def settled_so_far(run: Run) -> list[Operation]:
    """What became of the run's actions, oldest first: done, undone since, and not done."""
    return list(_SETTLED(run=run.pk))


def done_so_far(run: Run, *, known: Proposal | None = None, settled: list[Operation] | None = None) -> list[Done]:
    """The run's actions that the other side has recorded, oldest first; also those that were undone since, after which
    nothing follows. `known` is one of their proposals, `settled` what was settled, where that was read."""
    found = settled_so_far(run) if settled is None else settled
    return [
        Done(
            step=_step_of(one, known),
            tool=one.tool,
            effect=one.effect,
            reference=one.external_reference or "",
            at=one.settled_at or one.created_at,
            real_minor=one.real_minor,
            by_evidence=one.by_evidence,
            reversed=one.state == OperationState.COMPENSATED,
        )
        for one in found
        if one.state in _DONE
    ]


def _step_of(operation: Operation, known: Proposal | None) -> str:
    if known is not None and known.pk == operation.proposal_id:
        return known.step
    return _PROPOSAL.one(proposal=operation.proposal_id).step


_PROPOSAL = hot.Query(lambda proposal: Proposal.objects.filter(pk=proposal))
_DONE = (OperationState.SUCCEEDED, OperationState.COMPENSATED)
_SETTLED = hot.Query(lambda run: Operation.objects.filter(run=run, state__in=SETTLED).order_by("created_at"))
