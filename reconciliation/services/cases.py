"""The desk: claiming a case and settling it with evidence. No verdict here sends anything.

Whoever acts is looked at under the run's lock: active, and holding the right to settle cases at that very moment.
"""

import datetime as dt
import uuid
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from reconciliation import moves
from reconciliation.attempts import sent_attempts, standing_references
from reconciliation.case_opening import resolve
from reconciliation.classification import conclusive_from
from reconciliation.models import Case, Observation, Operation, WorkerProcess
from reconciliation.models.case import CaseState
from reconciliation.models.operation import SETTLED_ABSENT, OperationState
from reconciliation.processes import ProcessName, is_running
from reconciliation.services.settle import succeed
from runs import clock, holding, record, rights, transitions
from runs.models import Principal, Run
from runs.money import MAX_MINOR
from runs.tools.base import Contract, Record

CLAIM_LAPSES = holding.CLAIM_LAPSES
SETTLE = "reconciliation.settle_case"
V = Case.Verdict
VERDICTS = (V.HAPPENED, V.DIFFERENTLY, V.DID_NOT, V.TWICE, V.NOTED)
NEED_REFERENCE = (V.HAPPENED, V.DIFFERENTLY, V.TWICE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """`code` is ok, or the refusal: resolved, claimed_by_other, not_claimed, reference_needed, reference_taken,
    evidence_needed, amount_needed, other_reference_needed, unknown_verdict, not_unknown, not_settled; of "it did not
    happen": sender_may_wake, seen_recorded, not_asked, unreachable, too_early; of a process: not_waited_for,
    still_running; of any act: no_right (recorded in the run's stream)."""

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
                "by": str(case.resolved_by),
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


def _state_of(operation: Operation) -> dict[str, Any]:
    return {"state": operation.get_state_display().lower(), "system": operation.system}


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
        if case.state == CaseState.CLAIMED:
            case.release()
        case.claim()
        case.claimed_by, case.claimed_at = principal, clock.now()
        case.save(update_fields=["state", "claimed_by", "claimed_at"])
        record.append(run=run, kind="case.claimed", actor=principal, case=case.label)
        return CaseResult(code="ok")


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
            return CaseResult(code="not_unknown", detail=_state_of(operation))
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
    by now and this is refused. `contract` is the tool's, None when there is no such tool any more to ask with.
    """
    with transaction.atomic(durable=True):
        run, operation, case = _lock(case_number)
        refused = _no_right(run, principal, "case.settle", case=case.label)
        refused = refused or _not_theirs(case, principal)
        refused = refused or _incomplete(verdict, evidence, reference, actual_minor, other_reference)
        refused = refused or _contradicted(operation, case, verdict, (reference, other_reference), contract)
        if refused:
            return refused
        if verdict == V.NOTED:
            resolve(run=run, case=case, verdict=V.NOTED, evidence=evidence, actor=principal)
            return CaseResult(code="ok")
        _observe(operation, verdict, evidence, reference, other_reference, principal)
        for one in Case.objects.filter(operation=operation).exclude(state=CaseState.RESOLVED):
            resolve(run=run, case=one, verdict=V(verdict), evidence=evidence, actor=principal)
        _apply(run, operation, verdict, evidence, reference, actual_minor, other_reference, principal)
        transitions.wake(run=run)
        return CaseResult(code="ok")


def sender_gone(*, case_number: int, principal: Principal, process_id: uuid.UUID, evidence: str) -> CaseResult:
    """Record a person's word that a process can never act again, where no kernel can prove it: its machine was started
    anew, or its container replaced. From then on its silence counts, and "none recorded" can be proof."""
    with transaction.atomic(durable=True):
        run, operation, case = _lock(case_number)
        refused = _no_right(run, principal, "process.gone", case=case.label)
        if refused := refused or _not_theirs(case, principal):
            return refused
        if not evidence.strip():
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


def _incomplete(
    verdict: str, evidence: str, reference: str, actual_minor: int | None, other_reference: str
) -> CaseResult | None:
    """Each verdict demands its own evidence."""
    if verdict not in VERDICTS:
        return CaseResult(code="unknown_verdict")
    if not evidence.strip():
        return CaseResult(code="evidence_needed")
    if verdict in NEED_REFERENCE and not reference.strip():
        return CaseResult(code="reference_needed")
    if verdict == V.DIFFERENTLY and (actual_minor is None or not 0 < actual_minor <= MAX_MINOR):
        return CaseResult(code="amount_needed")
    if verdict == V.TWICE and other_reference.strip() in ("", reference.strip()):
        return CaseResult(code="other_reference_needed")
    return None


def _contradicted(
    operation: Operation, case: Case, verdict: str, references: tuple[str, str], contract: Contract | None
) -> CaseResult | None:
    """What the database, the senders and the other side itself rule out."""
    if verdict == V.NOTED:
        return None if operation.is_settled else CaseResult(code="not_settled", detail=_state_of(operation))
    if not operation.is_unconfirmed:
        return CaseResult(code="not_unknown", detail=_state_of(operation))
    if verdict == V.DID_NOT:
        return _may_have_happened(operation, case, contract)
    named = [one.strip() for one in references if one.strip()]
    taken = Operation.objects.filter(system=operation.system, external_reference__in=named).exclude(pk=operation.pk)
    if other := taken.first():
        return CaseResult(code="reference_taken", detail={"reference": other.external_reference})
    return None


def _seconds_until(moment: dt.datetime) -> int:
    return max(1, round((moment - clock.now()).total_seconds() + 0.5))


def _may_have_happened(operation: Operation, case: Case, contract: Contract | None) -> CaseResult | None:
    """Why "it did not happen" cannot be recorded: it frees the business key for another try, so nobody may still be
    able to make it happen, the other side may never have shown it, and where it can say so it has just said "none"."""
    detail = _state_of(operation)
    attempts = sent_attempts(operation=operation)
    if any(one.can_wake for one in attempts):
        return CaseResult(code="sender_may_wake", detail=detail)
    if seen := standing_references(observations=operation.observations.order_by("at")):
        return CaseResult(code="seen_recorded", detail={**detail, "reference": ", ".join(seen)})
    # nor may a call still be on its way: until its limit is over, its effect may yet come
    over = max((one.send_before + one.call_limit for one in attempts), default=None)
    if over is not None and clock.now() <= over:
        return CaseResult(code="too_early", detail={**detail, "seconds": _seconds_until(over)})
    if contract is None or not contract.lookup_is_conclusive:
        return None  # nobody can be asked who would know: the person's evidence is all there is
    asked = operation.observations.filter(source=Observation.Source.PROBE).order_by("-asked_at", "-at").first()
    if asked is None or case.claimed_at is None or asked.asked_at <= case.claimed_at:
        return CaseResult(code="not_asked", detail=detail)
    if asked.finding == Observation.Finding.UNREACHABLE:
        return CaseResult(code="unreachable", detail={**detail, "problem": asked.summary})
    if attempts and asked.asked_at <= (proof := conclusive_from(contract=contract, attempts=attempts)):
        return CaseResult(code="too_early", detail={**detail, "seconds": _seconds_until(proof)})
    return None


def _observe(
    operation: Operation, verdict: str, evidence: str, reference: str, other_reference: str, principal: Principal
) -> None:
    findings = {
        V.HAPPENED: Observation.Finding.FOUND,
        V.DIFFERENTLY: Observation.Finding.DIFFERENT,
        V.DID_NOT: Observation.Finding.ABSENT,
        V.TWICE: Observation.Finding.SEVERAL,
    }
    Observation.objects.create(
        operation=operation,
        source=Observation.Source.PERSON,
        finding=findings[V(verdict)],
        conclusive=True,
        summary=evidence,
        raw={"reference": reference.strip(), "other_reference": other_reference.strip()},
        actor=principal,
        asked_at=clock.now(),
    )


def _apply(
    run: Run,
    operation: Operation,
    verdict: str,
    evidence: str,
    reference: str,
    actual_minor: int | None,
    other_reference: str,
    principal: Principal,
) -> None:
    """The verdict's consequence for the operation."""
    why = f"settled by {principal}: {evidence}"
    if verdict == V.DID_NOT:
        moves.move(
            run=run,
            operation=operation,
            to=OperationState.FAILED,
            actor=principal,
            why=why,
            failure=evidence,
            failure_code=SETTLED_ABSENT,
            settled_by="person",
        )
        return
    raw: dict[str, Any] = {"reference": reference.strip(), "settled_by_evidence": evidence}
    if verdict == V.DIFFERENTLY and actual_minor is not None:
        raw["actual_minor"] = str(actual_minor)
    if verdict == V.TWICE:
        raw["other_reference"] = other_reference.strip()
    found = Record(reference=reference.strip(), identity=operation.identity, raw=raw)
    succeed(run=run, operation=operation, found=found, by="person", why=why, actor=principal)
