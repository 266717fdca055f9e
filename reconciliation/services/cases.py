"""The desk: claiming a case and settling it with evidence. No verdict here sends anything.

Whoever acts is looked at under the run's lock: active, and holding the right to settle cases at that very moment.
"""

import datetime as dt
import uuid
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from django.conf import settings
from django.db import transaction

from reconciliation import moves, their_names
from reconciliation.attempts import Shown
from reconciliation.case_opening import open_case, resolve
from reconciliation.corrections import correct, correctable
from reconciliation.models import Case, Observation, Operation, ProposedVerdict, WorkerProcess
from reconciliation.models.case import SETTLE, UNRESOLVED, CaseState
from reconciliation.models.operation import SETTLED_ABSENT, OperationState
from reconciliation.processes import ProcessName, is_running
from reconciliation.verdicts import NEED_REFERENCE, Given, V, basis, named_records, ruled_out, state_of, takes_two
from runs import clock, holding, record, rights, transitions
from runs.canonical import digest as digest_of
from runs.models import Principal, Run
from runs.money import Money
from runs.texts import typed
from runs.tools.base import Contract

CLAIM_LAPSES = holding.CLAIM_LAPSES


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """`code` is ok, or the refusal: resolved, claimed_by_other, not_claimed, reference_needed, reference_taken,
    evidence_needed, amount_needed, other_reference_needed, unknown_verdict, not_unknown, not_settled; of "it did not
    happen": sender_may_wake, seen_recorded, not_asked, unreachable, too_early; of what is said to have happened:
    none_recorded, undone, left_out, not_shown, same_record, not_final, not_as_sent, other_amount, no_amount; of a
    correction: as_recorded, done_anew, reversal_booked; of our record being right: not_right, shows_nothing; of
    confirming: nothing_proposed, proposal_changed, own_proposal, proposer_lost_right, evidence_changed; of a process:
    not_waited_for, still_running; of a doubt: not_correctable, reason_needed; of any act: no_right (recorded in the
    run's stream).

    A verdict whose amount takes two people is neither: `proposed`, recorded and without any effect so far."""

    code: str
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.code == "ok"


def _lock(case_number: int) -> tuple[Run, Operation, Case]:
    run, operation = moves.lock(operation_id=Case.objects.values_list("operation_id", flat=True).get(pk=case_number))
    return run, operation, Case.objects.select_for_update(of=("self",)).get(pk=case_number)


def _no_right(run: Run, principal: Principal, act: str, **about: str) -> CaseResult | None:
    code = rights.objection(run=run, principal=principal, permission=SETTLE, act=act, **about)
    return CaseResult(code=code) if code else None


def _not_theirs(case: Case, principal: Principal) -> CaseResult | None:
    """Why the person may not settle it now: it is settled, or they have not claimed it."""
    if case.state == CaseState.RESOLVED:
        return CaseResult(
            code="resolved",
            detail={
                "verdict": case.verdict,
                "by": case.settled_by,
                "evidence": case.evidence,
                "system": case.operation.system,
            },
        )
    if case.state != CaseState.CLAIMED or case.claimed_by_id != principal.pk:
        return _other_owner(case, principal) or CaseResult(code="not_claimed")
    return None


def _other_owner(case: Case, principal: Principal) -> CaseResult | None:
    """Somebody else works on it: their claim has not lapsed, and they may still settle it."""
    if case.state != CaseState.CLAIMED or case.claimed_by_id == principal.pk or case.claimed_at is None:
        return None
    owner = case.claimed_by
    if owner is None or clock.now() - case.claimed_at >= CLAIM_LAPSES:
        return None
    if not rights.entitled(principal=owner, permission=SETTLE):
        return None
    return CaseResult(code="claimed_by_other", detail={"by": str(case.claimed_by)})


def claim(*, case_number: int, principal: Principal) -> CaseResult:
    """Take the case; a lapsed claim of another is taken over. Claiming again renews it."""
    with transaction.atomic(durable=True):
        run, _, case = _lock(case_number)
        if refused := _no_right(run, principal, "case.claim", case=case.label):
            return refused
        if case.state == CaseState.RESOLVED:
            return CaseResult(code="resolved", detail={"verdict": case.verdict, "by": str(case.resolved_by)})
        if refused := _other_owner(case, principal):
            return refused
        _take(run, case, principal)
        return CaseResult(code="ok")


def _take(run: Run, case: Case, principal: Principal) -> None:
    if case.state == CaseState.CLAIMED:
        case.release()
    case.claim()
    case.claimed_by, case.claimed_at = principal, clock.now()
    case.save(update_fields=["state", "claimed_by", "claimed_at"])
    record.append(run=run, kind="case.claimed", actor=principal, case=case.label)


def release(*, case_number: int, principal: Principal) -> CaseResult:
    """Give the case back."""
    with transaction.atomic(durable=True):
        run, _, case = _lock(case_number)
        if refused := _no_right(run, principal, "case.release", case=case.label):
            return refused
        if case.state != CaseState.CLAIMED or case.claimed_by_id != principal.pk:
            return CaseResult(code="not_claimed")
        case.release()
        case.claimed_by = case.claimed_at = None
        case.save(update_fields=["state", "claimed_by", "claimed_at"])
        record.append(run=run, kind="case.released", actor=principal, case=case.label)
        return CaseResult(code="ok")


def probe_now(*, operation_id: uuid.UUID, principal: Principal) -> CaseResult:
    """Have the other side asked at the next opportunity. This is all that *try again* ever does to an unknown one."""
    with transaction.atomic(durable=True):
        run, operation = moves.lock(operation_id=operation_id)
        if refused := _no_right(run, principal, "probe", operation=str(operation.pk)):
            return refused
        if not operation.is_unconfirmed:
            return CaseResult(code="not_unknown", detail=state_of(operation))
        operation.next_probe_at = clock.now()
        operation.save(update_fields=["next_probe_at"])
        record.append(run=run, kind="probe.requested", actor=principal, operation=str(operation.pk))
        transitions.wake(run=run)
        return CaseResult(code="ok")


def settle(
    *,
    case_number: int,
    principal: Principal,
    contract: Contract | None,
    verdict: str,
    evidence: str,
    reference: str = "",
    actual_minor: int | None = None,
    other_reference: str = "",
) -> CaseResult:
    """Settle the operation by a person's evidence, or note what came to light after it was settled. Nothing is ever
    sent from here.

    The caller has asked the other side just before (`services.probe`): when that made it clear, the case is resolved
    by now and this is refused. `contract` is the tool's, None when there is no such tool any more to ask with. Above
    what the settings let one person settle alone it is only proposed, and another person confirms it.
    """
    with transaction.atomic(durable=True):
        run, operation, case = _lock(case_number)
        refused = _no_right(run, principal, "case.settle", case=case.label)
        refused = refused or _not_theirs(case, principal)
        given = Given(  # what was filled in for another verdict is no part of this one
            verdict=verdict,
            evidence=typed(text=evidence),
            reference=typed(text=reference) if verdict in NEED_REFERENCE else "",
            other_reference=typed(text=other_reference) if verdict == V.TWICE else "",
            actual_minor=actual_minor if verdict == V.DIFFERENTLY else None,
        )
        if refused := refused or _ruled_out(operation, case, given, contract):
            return refused
        if takes_two(operation=operation, given=given, alone_up_to=settings.SETTLE_ALONE_UP_TO):
            return _propose(run, case, given, principal)
        return _apply(run, operation, case, given, principal)


def _propose(run: Run, case: Case, given: Given, principal: Principal) -> CaseResult:
    """Keep the verdict for another person, who has to be able to claim the case."""
    ProposedVerdict.objects.create(
        case=case,
        digest=basis(case=case, given=given, proposer=principal),
        proposed_by=principal,
        **asdict(given),
    )
    case.release()
    case.claimed_by = case.claimed_at = None
    case.save(update_fields=["state", "claimed_by", "claimed_at"])
    record.append(
        run=run, kind="case.proposed", actor=principal, case=case.label, verdict=given.verdict, evidence=given.evidence,
        operation=str(case.operation_id),
    )  # fmt: skip
    return CaseResult(code="proposed")


def confirm(*, case_number: int, principal: Principal, contract: Contract | None, digest: str) -> CaseResult:
    """Have the verdict that another person proposed take effect, on the same evidence: `digest` is that of the proposal
    as it was shown, and the other side, which the caller has just asked, shows what it showed then."""
    with transaction.atomic(durable=True):
        run, operation, case = _lock(case_number)
        proposed = case.proposals.select_related("proposed_by").order_by("-number").first()
        rights.hold(principals=[principal] if proposed is None else [principal, proposed.proposed_by])
        refused = _no_right(run, principal, "case.confirm", case=case.label)
        if refused := refused or _not_theirs(case, principal):
            return refused
        if proposed is None:
            return CaseResult(code="nothing_proposed")
        proposer = proposed.proposed_by
        if proposed.digest != digest:
            return CaseResult(code="proposal_changed", detail={"by": str(proposer)})
        if proposer.pk == principal.pk:
            return CaseResult(code="own_proposal")
        if not rights.entitled(principal=proposer, permission=SETTLE):
            return CaseResult(code="proposer_lost_right", detail={"by": str(proposer)})
        given = Given(**{one.name: getattr(proposed, one.name) for one in fields(Given)})
        if basis(case=case, given=given, proposer=proposer) != digest:
            return CaseResult(code="evidence_changed", detail=state_of(operation))
        refused = _ruled_out(operation, case, given, contract)
        return refused or _apply(run, operation, case, given, proposer, confirmed_by=principal)


def _ruled_out(operation: Operation, case: Case, given: Given, contract: Contract | None) -> CaseResult | None:
    refusal = ruled_out(operation=operation, case=case, given=given, contract=contract)
    return CaseResult(code=refusal.code, detail=refusal.detail) if refusal else None


def doubt(*, operation_id: uuid.UUID, principal: Principal, reason: str) -> CaseResult:
    """Open a case about a settled operation because a person doubts our record of it, and claim it for them. Its run
    tells nobody anything meanwhile; our record changes only by the verdict. `detail["case"]` is its number."""
    with transaction.atomic(durable=True):
        run, operation = moves.lock(operation_id=operation_id)
        if refused := _no_right(run, principal, "case.doubt", operation=str(operation.pk)):
            return refused
        if not correctable(operation):
            return CaseResult(code="not_correctable", detail=state_of(operation))
        reason = typed(text=reason)
        if not reason:
            return CaseResult(code="reason_needed")
        why = f"{principal} doubts that our record is right: {reason}"
        said = f"said:{digest_of([str(principal.pk), reason])}"
        case = open_case(
            run=run, operation=operation, kind=Case.Kind.DOUBTED, doubts=[said], why=why, actor=principal
        )  # fmt: skip
        if refused := _other_owner(case, principal):
            return CaseResult(code=refused.code, detail={**refused.detail, "case": case.pk})
        _take(run, case, principal)
        return CaseResult(code="ok", detail={"case": case.pk})


def sender_gone(*, case_number: int, principal: Principal, process_id: uuid.UUID, evidence: str) -> CaseResult:
    """Record a person's word that a process can never act again, where no kernel can prove it: its machine was started
    anew, or its container replaced. From then on its silence counts, and "none recorded" can be proof."""
    with transaction.atomic(durable=True):
        run, operation, case = _lock(case_number)
        refused = _no_right(run, principal, "process.gone", case=case.label)
        if refused := refused or _not_theirs(case, principal):
            return refused
        evidence = typed(text=evidence)
        if not evidence:
            return CaseResult(code="evidence_needed")
        attempts = operation.attempts.select_related("sender").filter(sender_id=process_id)
        numbers = [one.number for one in attempts if one.may_wake]
        if not numbers:
            return CaseResult(code="not_waited_for")
        process = WorkerProcess.objects.select_for_update(no_key=True).get(pk=process_id)
        now = clock.now()
        if _shows_life(process, now):
            return CaseResult(code="still_running", detail={"process": str(process)})
        process.ended_at = now
        process.save(update_fields=["ended_at"])
        record.append(
            run=run,
            kind="process.ended",
            actor=principal,
            operation=str(operation.pk),
            case=case.label,
            process=str(process),
            attempts=numbers,
            evidence=evidence,
        )
        if operation.is_unconfirmed:
            operation.next_probe_at = now
            operation.save(update_fields=["next_probe_at"])
        transitions.wake(run=run)
        return CaseResult(code="ok")


def _shows_life(process: WorkerProcess, now: dt.datetime) -> bool:
    """The kernel shows that it runs, or it holds a lease, which it had to renew a moment ago."""
    name = ProcessName(process.host, process.boot, process.pid, process.start_ticks)
    return is_running(name) or Run.objects.filter(lease_holder=str(process.pk), lease_until__gt=now).exists()


def _apply(
    run: Run,
    operation: Operation,
    case: Case,
    given: Given,
    principal: Principal,
    confirmed_by: Principal | None = None,
) -> CaseResult:
    """The verdict's consequence: for the operation, its cases and its run together, or for none of them."""
    if given.verdict in (V.NOTED, V.STANDS):
        resolve(
            run=run,
            case=case,
            verdict=V(given.verdict),
            evidence=given.evidence,
            actor=principal,
            confirmed_by=confirmed_by,
        )
        return CaseResult(code="ok")
    records = named_records(operation=operation, given=given)
    names = [name for one in records for name in one.names]
    if taken := their_names.take(operation=operation, names=names):
        return CaseResult(code="reference_taken", detail={"reference": taken.name})
    by = f"{principal}, confirmed by {confirmed_by}," if confirmed_by else str(principal)
    to, said = _becomes(operation, given, records)
    if operation.is_settled:
        entry = correct(
            run=run, operation=operation, case=case, to=to, evidence=given.evidence, by=principal,
            confirmed_by=confirmed_by, **said,
        )  # fmt: skip
        if isinstance(entry, str):
            transaction.set_rollback(True)
            return CaseResult(code=entry, detail=state_of(operation))
        their_names.give_up(operation=operation, but=names)
    else:
        minor = (said.get("actual") or {}).get("actual_minor")
        at = f" at {Money(int(minor), operation.currency)}" if minor else ""
        why = f"{by} settled it{at} by evidence: {given.evidence}"
        moves.move(
            run=run, operation=operation, to=to, actor=confirmed_by or principal, why=why, settled_by="person", **said
        )  # fmt: skip
    _observe(operation, given, principal)
    for one in Case.objects.filter(UNRESOLVED, operation=operation):
        resolve(
            run=run,
            case=one,
            verdict=V(given.verdict),
            evidence=given.evidence,
            actor=principal,
            confirmed_by=confirmed_by,
        )
    transitions.wake(run=run)
    return CaseResult(code="ok")


def _becomes(operation: Operation, given: Given, records: list[Shown]) -> tuple[OperationState, dict[str, Any]]:
    """What the operation is by the verdict, and what is recorded of it. The reference is the record's own, by whichever
    name a person called it; the amounts are what was recorded."""
    if given.verdict == V.DID_NOT:
        return OperationState.FAILED, {"failure": given.evidence, "failure_code": SETTLED_ABSENT}
    raw: dict[str, Any] = {"reference": records[0].reference, "settled_by_evidence": given.evidence}
    real = [one.minor(sent=operation.amount_minor) for one in records]
    if given.verdict == V.DIFFERENTLY:
        raw["differently"], real[0] = "yes", given.actual_minor
    if given.verdict == V.TWICE:
        raw["other_reference"] = records[1].reference
        raw["other_minor"] = "" if real[1] is None else str(real[1])
    if real[0] is not None and real[0] != operation.amount_minor:
        raw["actual_minor"] = str(real[0])
    return OperationState.SUCCEEDED, {"external_reference": records[0].reference, "actual": raw}


def _observe(operation: Operation, given: Given, principal: Principal) -> None:
    findings = {
        V.HAPPENED: Observation.Finding.FOUND,
        V.DIFFERENTLY: Observation.Finding.DIFFERENT,
        V.DID_NOT: Observation.Finding.ABSENT,
        V.TWICE: Observation.Finding.SEVERAL,
    }
    Observation.objects.create(
        operation=operation,
        source=Observation.Source.PERSON,
        finding=findings[V(given.verdict)],
        conclusive=True,
        summary=given.evidence,
        raw={"reference": given.reference, "other_reference": given.other_reference},
        actor=principal,
        asked_at=clock.now(),
    )
