"""The only place where an attempt is opened. Phase 1 of three: everything is checked again under lock, and operation
and attempt have their rows before the call.

A failed check either HOLDS (tried later, nothing changes) or is VOID (the decision no longer counts). Both are
results, recorded where they change anything.
"""

import datetime as dt
import uuid
from dataclasses import dataclass

from django.db import transaction

from approvals import freezes
from approvals.models import Allowance
from approvals.models.request import RequestState
from approvals.services import requests
from reconciliation import late, moves, reversing, room
from reconciliation.attempts import seen_recorded, sent_attempts
from reconciliation.classification import Resend
from reconciliation.classification import resend as resend_rule
from reconciliation.models import Attempt, Operation, Reservation, WorkerProcess
from reconciliation.models.operation import OperationState
from reconciliation.services import gates, holds, processes
from reconciliation.still_allowed import Allowed, Facts, Void, allowed, in_dispute
from runs import clock, faultpoints, hot, keeping, leases, record
from runs.canonical import canonical_bytes
from runs.identity import wire_key
from runs.models import Principal, Proposal, Run
from runs.tools.base import Contract

START_WITHIN = dt.timedelta(seconds=5)  # a worker that is slower than this between commit and call doesn't call
RESOURCE_RETRY = dt.timedelta(seconds=60)  # the relay wakes who waits for a resource; this is for when it does not


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """`troubled`: the tool's calls failed lately, so a good answer is worth telling."""

    attempt: Attempt
    operation: Operation
    troubled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Tried later: `code` is stable, `detail` says what is waited for; `until` is when it is tried, if not in a moment,
    and `waits_on` the key of what is shared with others."""

    code: str
    detail: str
    until: dt.datetime | None = None
    waits_on: str = ""


def open_attempt(
    *,
    lease: leases.Lease,
    lease_seconds: float,
    proposal_id: uuid.UUID,
    contract: Contract,
    facts: Facts,
    sender: WorkerProcess,
    actor: Principal,
    resend: Resend = Resend.NO,
) -> Opened | Held | Void:
    """Check everything again, create the operation on first use, open an attempt, commit.

    `resend` says under which part of the resend rule an unknown operation is sent again; for any other state it is
    NO. Raises LeaseLost.
    """
    with transaction.atomic(durable=True):
        run = leases.hold(lease=lease, seconds=lease_seconds)
        with record.together(run=run):
            return _checked(run, proposal_id, contract, facts, sender, actor, resend)


_PROPOSAL = hot.Query(lambda proposal, run: Proposal.objects.filter(pk=proposal, run=run))
_OURS = hot.Query(lambda run: reversing.annotated(Operation.objects.filter(run=run)).select_for_update(of=("self",)))


def _checked(
    run: Run,
    proposal_id: uuid.UUID,
    contract: Contract,
    facts: Facts,
    sender: WorkerProcess,
    actor: Principal,
    resend: Resend,
) -> Opened | Held | Void:
    if facts.evidence:
        keeping.keep_evidence(run=run, evidence=facts.evidence, actor=actor)
    proposal = _PROPOSAL.one(proposal=proposal_id, run=run.pk)
    if run.paused_at is not None:
        return Held(code="paused", detail="the run is paused")
    authority = requests.lock_for_sending(run=run, proposal=proposal)
    if freeze := freezes.over(workflow=run.workflow, tool=proposal.tool, lock=True):
        return Held(code=freezes.FROZEN, detail=freeze.words)
    ours = _OURS(run=run.pk)
    found = next((one for one in ours if one.proposal_id == proposal.pk), None)
    if found is not None and found.attempts.filter(closed_at__isnull=True).exists():
        return Held(code="attempt_open", detail="an earlier attempt has not ended")
    if clock.now() - facts.read_at > facts.fresh_for:
        return Held(code="facts_old", detail="reading the facts took too long; they are read again")
    if any(late.is_unasked(one) for one in ours):
        return Held(code="look_first", detail="what was done before is looked up first")
    if contract.only_reverses and reversing.is_unlinked(run=run):
        return Held(code="unlinked", detail="the proposal that it carries out to name this run")
    good = in_dispute(run=run, ours=ours, proposal=proposal) or allowed(
        run=run, proposal=proposal, contract=contract, facts=facts, authority=authority, operation=found
    )
    made: Operation | Void
    if isinstance(good, Void):
        made = good
    else:
        made = found or _spend(run=run, proposal=proposal, contract=contract, by=good, actor=actor)
    if isinstance(made, Operation):
        assert isinstance(good, Allowed)
        return _open(
            run=run,
            operation=made,
            contract=contract,
            sender=sender,
            actor=actor,
            resend=resend,
            quiet=facts.quiet,
            valid_until=good.authority.decision.valid_until,
        )
    _give_up(run=run, operation=found, authority=authority, void=made, actor=actor)
    return made


def _spend(*, run: Run, proposal: Proposal, contract: Contract, by: Allowed, actor: Principal) -> Operation | Void:
    """Create the operation: the decision is spent, the business key taken, the totals reserved."""
    decision, request = by.authority.decision, by.authority.request
    totals = by.totals(amount_minor=proposal.amount_minor)
    over = room.lacking(totals=totals)  # first of all the locks: two for the same thing meet here, one after the other
    if other := late.holder(business_key=proposal.business_key):
        return Void(code="business_key_taken", detail=late.holder_in_words(other=other))
    if over is not None:
        return Void(code=over.code, detail=over.detail["why"])
    undoes = reversing.undoes(run=run, effect=proposal.effect) if contract.only_reverses else {}
    if undoes is None:
        return Void(code="not_proposed", detail=f"{proposal.tool} only undoes what was proposed to be undone")
    operation = Operation(
        run=run,
        proposal=proposal,
        decision=decision,
        tool=proposal.tool,
        contract_version=contract.version,
        system=contract.system,
        identity=proposal.identity,
        business_key=proposal.business_key,
        effect=proposal.effect,
        amount_minor=proposal.amount_minor,
        currency=proposal.currency,
        **undoes,
    )
    hot.insert(operation)
    for total in totals:
        allowance = Allowance.objects.get(pk=total.key)
        allowance.reserved_minor += total.amount_minor
        allowance.reserved_count += 0 if total.count_limit is None else 1
        allowance.save(update_fields=["reserved_minor", "reserved_count"])
        Reservation.objects.create(operation=operation, allowance=allowance, amount_minor=total.amount_minor)
    if request is not None:
        requests.spend(request=request, actor=actor, run=run)
    record.append(
        run=run,
        kind="operation.created",
        actor=actor,
        operation=str(operation.pk),
        identity=operation.identity,
        tool=operation.tool,
        amount_minor=operation.amount_minor,
        currency=operation.currency,
        decision=str(decision.pk),
    )
    return operation


def _open(
    *, run: Run, operation: Operation, contract: Contract, sender: WorkerProcess, actor: Principal, resend: Resend,
    quiet: bool, valid_until: dt.datetime,
) -> Opened | Held:  # fmt: skip
    """Open the next attempt of a locked, authorised (or, under the resend rule, unknown) operation."""
    if operation.state == OperationState.UNKNOWN and not _may_resend(operation, contract, resend):
        return Held(code="unknown", detail="the outcome is not known; it is asked, not sent")
    if operation.state not in (OperationState.AUTHORISED, OperationState.UNKNOWN):
        return Held(code="not_open", detail=f"the operation is {operation.state}")
    gate = _gate(operation=operation, contract=contract, quiet=quiet)
    if isinstance(gate, Held):
        return gate
    now = gate.now
    if now >= valid_until:  # while totals, resources or the tool's turn were waited for
        return _not_now(operation, gate, Held(code="ended", detail="the approval's end, which came meanwhile"))
    if not processes.hold(process=sender):
        why = "this process was recorded as ended, so it registers anew first"
        return _not_now(operation, gate, Held(code="sender_ended", detail=why))
    epoch = operation.epoch + (1 if resend == Resend.NEW_EPOCH else 0)
    moves.move(
        run=run,
        operation=operation,
        to=OperationState.SENDING,
        actor=actor,
        why="sent again: " + resend if resend != Resend.NO else "",
        epoch=epoch,
        attempts_made=operation.attempts_made + 1,
        next_attempt_at=None,
        next_probe_at=None,
        turn_at=None,
    )
    attempt = Attempt(
        operation=operation,
        number=operation.attempts_made,
        epoch=epoch,
        wire_key=wire_key(identity=operation.identity, epoch=epoch),
        request=canonical_bytes(operation.effect).decode(),
        sender=sender,
        opened_at=now,
        send_before=now + START_WITHIN,
        call_limit_seconds=contract.call_limit.total_seconds(),
    )
    hot.insert(attempt)
    record.append(
        run=run,
        kind="attempt.opened",
        actor=actor,
        operation=str(operation.pk),
        number=attempt.number,
        wire_key=attempt.wire_key,
    )
    faultpoints.reach("attempt.opened.before")
    return Opened(attempt=attempt, operation=operation, troubled=bool(gate.troubled))


def _not_now(operation: Operation, gate: gates.Go, held: Held) -> Held:
    """Give back what was taken for a call that is not made."""
    if operation.state == OperationState.AUTHORISED:
        holds.let_go(operation=operation)
    gates.end_trials(names=sorted(gate.troubled))
    return held


def _gate(*, operation: Operation, contract: Contract, quiet: bool) -> gates.Go | Held:
    """What is shared with other runs, after everything of the run's own: the resources it touches, then the tool."""
    if operation.next_attempt_at is not None and operation.turn_at is None and operation.next_attempt_at > clock.now():
        return Held(code="backoff", detail="it is too early for the next attempt")
    if operation.state == OperationState.AUTHORISED:  # one that is not confirmed holds them already
        busy = holds.take(operation=operation, names=contract.resources(operation.effect))
        if busy is not None:
            until = clock.now() + RESOURCE_RETRY
            return Held(code="resource_busy", detail=busy.waits_for, until=until, waits_on=busy.waits_on)
    seconds = (START_WITHIN + contract.call_limit).total_seconds()
    gate = gates.may_send(
        tool=contract.name, rate=contract.rate, turn=operation.turn_at, seconds=seconds, quiet=quiet
    )  # fmt: skip
    if isinstance(gate, gates.Go):
        return gate
    if operation.state == OperationState.AUTHORISED:
        holds.let_go(operation=operation)
        operation.next_attempt_at = gate.until
    operation.turn_at = gate.until
    operation.save(update_fields=["next_attempt_at", "turn_at"])
    return Held(code=gate.code, detail=gate.waits_for, until=gate.until, waits_on=gate.waits_on)


def _may_resend(operation: Operation, contract: Contract, wanted: Resend) -> bool:
    """The resend rule once more, under the lock: the latest word of the other side must be that there is none."""
    latest = operation.observations.order_by("-asked_at", "-at").first()
    if wanted == Resend.NO or latest is None or latest.source != "probe" or latest.finding != "absent":
        return False
    if operation.look_wanted_at is not None and operation.look_wanted_at > latest.asked_at:
        return False  # something was told of it since
    attempts = sent_attempts(operation=operation)
    return wanted == resend_rule(
        contract=contract,
        attempts=attempts,
        absent_at=latest.asked_at,
        now=clock.now(),
        seen=seen_recorded(operation=operation),
    )


_CLOSES = {"expired": RequestState.EXPIRED, "out_of_date": RequestState.STALE}


def _give_up(
    *, run: Run, operation: Operation | None, authority: requests.Authority | None, void: Void, actor: Principal
) -> None:
    """Record that the decision no longer counts. Only what was never sent is dropped."""
    if operation is not None and operation.state == OperationState.AUTHORISED:
        moves.move(run=run, operation=operation, to=OperationState.ABANDONED, actor=actor, why=void.detail)
    if authority is not None and authority.request is not None and authority.request.state == RequestState.APPROVED:
        requests.close_approved(
            request=authority.request,
            to=_CLOSES.get(void.code, RequestState.REVOKED),
            why=void.detail,
            actor=actor,
            run=run,
        )
