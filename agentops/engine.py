"""Advancing a run: claim it, take as many steps as it allows, let go. Any worker, any time, any number of times.

A lost worker loses one commit at most, and the next claim starts from the last one. A step is one durable commit, but
for steps that need nobody and nothing from outside: those are part of the commit before them.
"""

import datetime as dt
import logging
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from django.conf import settings
from django.db import transaction

from agentops import hints
from agentops.patience import patiently
from agentops.reasons import Reason
from agentops.steps import (
    authorising,
    awaiting,
    cancelling,
    deciding,
    executing,
    freezing,
    gathering,
    looking,
    settling,
    waiting,
)
from agentops.steps.base import InHand, Next, Step, hand_over, park
from agentops.workflows.registry import UnknownWorkflow, workflow
from approvals import freezes
from reconciliation.case_opening import open_case
from reconciliation.models import Case, Operation
from reconciliation.models.operation import IN_FLIGHT
from reconciliation.services import processes
from runs import clock, faultpoints, holding, hot, leases, record, retry
from runs.models import Run
from runs.models.run import RunState
from runs.services import principals, signalling
from runs.services.operate import PAUSED

log = logging.getLogger(__name__)
MAX_CLAIMS = 5  # claims in a row without one committed step: the run kills its workers, or the code is wrong
MAX_STEPS = 200
SLOWLY = dt.timedelta(minutes=5)

STEPS: dict[RunState, Callable[[Step], Next]] = {
    RunState.QUEUED: gathering.begin,
    RunState.GATHERING: gathering.gather,
    RunState.DECIDING: deciding.decide,
    RunState.AUTHORISING: authorising.authorise,
    RunState.AWAITING_APPROVAL: awaiting.await_approval,
    RunState.EXECUTING: executing.carry_out,
    RunState.OUTCOME_UNKNOWN: settling.settle_step,
    RunState.WAITING: waiting.resume,
}


def advance(*, run_id: uuid.UUID) -> int:
    """Take the run as far as it goes now and return the number of steps; 0 when it is not due, or another has it."""
    holder = str(processes.current().pk)
    lease = leases.claim(run_id=run_id, holder=holder, seconds=settings.LEASE_SECONDS, any_freeze=freezes.ANY)
    if lease is None:
        return 0
    faultpoints.reach("run.claimed")
    steps, hand = 0, InHand()
    try:
        while steps < MAX_STEPS:
            steps += 1
            went = _step(lease, hand)
            if steps == 1:
                leases.worked(lease=lease)
            if went != Next.GO_ON:
                break
        else:
            _let_go(lease, reason="it took too many steps at once")
    except leases.LeaseLost:
        log.warning("run %s: another worker has it now", run_id)
    except Exception as problem:
        log.exception("run %s: a step failed", run_id)
        # without this, a run whose database went away would stay with this worker until the lease runs out
        patiently(partial(_let_go, lease, reason=f"{type(problem).__name__}: {problem}"))
    if lease.run is None:
        hints.publish(run_id=run_id, seq=Run.objects.values_list("event_seq", flat=True).get(pk=run_id))
    return steps


_RUN = hot.Query(lambda run: Run.objects.filter(pk=run))


def _step(lease: leases.Lease, hand: InHand) -> Next:
    run = principals.known(run=lease.run or _RUN.one(run=lease.run_id))
    if run.any_freeze is None:
        run.any_freeze = bool(freezes.in_force())
    lease.run = None
    if run.is_over:
        return Next.PARK
    actor = principals.system()
    if run.cancel_requested_at is not None and not cancelling.in_flight(run):
        # asked for by a person, so tried however often it has failed, and never left to somebody else
        return cancelling.cancel(lease, system=actor)
    if run.claims_in_row > MAX_CLAIMS:
        reason = f"{run.claims_in_row - 1} workers failed on it in a row"
        return _give_up(lease, code=Reason.KEEPS_FAILING, reason=reason)
    if run.paused_at is not None and not cancelling.in_flight(run) and not awaiting.is_overdue(run):
        return _park_paused(lease)
    if run.state == RunState.NEEDS_PERSON:
        return _park_for_person(lease)
    try:
        knows = workflow(run.workflow, run.workflow_version)
    except UnknownWorkflow as problem:
        return _leave_to_others(lease, run, why=str(problem))
    step = Step(lease=lease, run=run, workflow=knows, actor=actor, hand=hand)
    held = freezing.hold(step) if run.any_freeze else None
    if held is None:
        lease.run = None
    went = held or STEPS[run.as_state()](step)
    return looking.look(step) if went == Next.LOOK else went


def _give_up(lease: leases.Lease, *, code: Reason, reason: str) -> Next:
    """The machine cannot go on: a person has the run, or an admin the operation that is not settled."""
    return _open_case(lease, code=code, reason=reason) or _hand_over(lease, code=code, reason=reason)


def _leave_to_others(lease: leases.Lease, run: Run, *, why: str) -> Next:
    """Another worker may know the run's version, now or after a release; what was sent is an admin's after a while."""
    if clock.now() - run.state_since > SLOWLY and (told := _open_case(lease, code="unknown_workflow", reason=why)):
        return told
    return waiting.for_a_worker(lease, why=why)


def _hand_over(lease: leases.Lease, *, code: Reason, reason: str) -> Next:
    with transaction.atomic(durable=True):
        run = leases.hold(lease=lease)
        if run.state == RunState.NEEDS_PERSON:
            return park(run, until=None, waits_for=run.waits_for)
        return hand_over(run, code=code, reason=reason, actor=principals.system())


def _open_case(lease: leases.Lease, *, code: str, reason: str) -> Next | None:
    """While an operation is not settled its run stays with it: an admin is told, and it is tried again slowly."""
    with transaction.atomic(durable=True):
        run = leases.hold(lease=lease, seconds=settings.LEASE_SECONDS)
        operation = Operation.objects.filter(run=run, state__in=IN_FLIGHT).first()
        if operation is None:
            return None
        actor = principals.system()
        kind = Case.Kind.NOT_CONFIRMED
        case = open_case(run=run, operation=operation, kind=kind, doubts=[str(code)], why=reason, actor=actor)
        return park(run, until=clock.now() + SLOWLY, waits_for=f"an admin to settle {case.label}")


def _park_for_person(lease: leases.Lease) -> Next:
    with transaction.atomic(durable=True):
        run = leases.hold(lease=lease, seconds=settings.LEASE_SECONDS)
        if run.cancel_requested_at is not None or run.state != RunState.NEEDS_PERSON:
            return Next.GO_ON
        if run.person_code == Reason.DOCUMENT_NEEDED and signalling.use(
            run=run, kind=signalling.DOCUMENT, to=RunState.GATHERING, actor=principals.system()
        ):
            return Next.GO_ON
        return park(run, until=None, waits_for=holding.awaited(run=run))


def _park_paused(lease: leases.Lease) -> Next:
    """Nothing new begins until somebody resumes the run; what was in flight has been settled by now."""
    with transaction.atomic(durable=True):
        run = leases.hold(lease=lease, seconds=settings.LEASE_SECONDS)
        if run.cancel_requested_at is not None or run.paused_at is None:
            return Next.GO_ON
        return park(run, until=awaiting.deadline(run), waits_for=PAUSED)


def _let_go(lease: leases.Lease, *, reason: str) -> None:
    """Give the run back after a failure of code or database, with a growing pause; the claims are counted."""
    with suppress(leases.LeaseLost), transaction.atomic(durable=True):  # then another worker has it already
        run = leases.hold(lease=lease)
        if run.is_over:
            return
        run.wake_at = clock.now() + retry.backoff(attempt=run.claims_in_row, base=1, cap=60)
        run.lease_until, run.lease_holder = None, ""
        run.save(update_fields=["wake_at", "lease_until", "lease_holder"])
        record.append(run=run, kind="run.step_failed", actor=principals.system(), reason=reason[:500])
