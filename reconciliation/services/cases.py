"""The desk: claiming a case and settling it with evidence. No verdict here sends anything."""

import datetime as dt
import uuid
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from reconciliation import moves
from reconciliation.attempts import sent_attempts
from reconciliation.case_opening import resolve
from reconciliation.models import Case, Observation, Operation
from reconciliation.models.case import CaseState
from reconciliation.models.operation import OperationState
from reconciliation.services.settle import succeed
from runs import clock, record, transitions
from runs.models import Principal, Run
from runs.money import MAX_MINOR
from runs.tools.base import Record

CLAIM_LAPSES = dt.timedelta(minutes=30)
VERDICTS = (Case.Verdict.HAPPENED, Case.Verdict.DIFFERENTLY, Case.Verdict.DID_NOT, Case.Verdict.TWICE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """`code` is ok, or the refusal: resolved, claimed_by_other, not_claimed, reference_needed, reference_taken,
    evidence_needed, amount_needed, other_reference_needed, unknown_verdict, sender_may_wake, too_early,
    not_unknown."""

    code: str
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.code == "ok"


def _lock(case_number: int) -> tuple[Run, Operation, Case]:
    run, operation = moves.lock(operation_id=Case.objects.values_list("operation_id", flat=True).get(pk=case_number))
    return run, operation, Case.objects.select_for_update(of=("self",)).get(pk=case_number)


def _other_owner(case: Case, principal: Principal) -> CaseResult | None:
    """Somebody else works on it, and the claim has not lapsed."""
    if case.state != CaseState.CLAIMED or case.claimed_by_id == principal.pk or case.claimed_at is None:
        return None
    if clock.now() - case.claimed_at >= CLAIM_LAPSES:
        return None
    return CaseResult(code="claimed_by_other", detail={"by": str(case.claimed_by)})


def claim(*, case_number: int, principal: Principal) -> CaseResult:
    """Take the case; a lapsed claim of another is taken over. Claiming again renews it."""
    with transaction.atomic(durable=True):
        run, _, case = _lock(case_number)
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
        if operation.state not in (OperationState.UNKNOWN, OperationState.ACCEPTED):
            return CaseResult(code="not_unknown", detail={"state": operation.state})
        operation.next_probe_at = clock.now()
        operation.save(update_fields=["next_probe_at"])
        record.append(run=run, kind="probe.requested", actor=principal, operation=str(operation.pk))
        transitions.wake(run=run)
        return CaseResult(code="ok")


def settle(
    *,
    case_number: int,
    principal: Principal,
    verdict: str,
    evidence: str,
    reference: str = "",
    actual_minor: int | None = None,
    other_reference: str = "",
) -> CaseResult:
    """Settle the operation by a person's evidence. The caller has asked the other side just before (`probe`): when it
    has meanwhile become clear the case is resolved already and this is refused. Nothing is ever sent from here."""
    with transaction.atomic(durable=True):
        run, operation, case = _lock(case_number)
        if case.state == CaseState.RESOLVED:
            return CaseResult(code="resolved", detail={"verdict": case.verdict, "by": str(case.resolved_by)})
        if case.state != CaseState.CLAIMED or case.claimed_by_id != principal.pk:
            return _other_owner(case, principal) or CaseResult(code="not_claimed")
        refused = _incomplete(verdict, evidence, reference, actual_minor, other_reference)
        refused = refused or _contradicted(run, operation, verdict, reference)
        if refused:
            return refused
        _observe(operation, verdict, evidence, reference, other_reference, principal)
        _apply(run, operation, verdict, evidence, reference, actual_minor, principal)
        for one in Case.objects.filter(operation=operation).exclude(state=CaseState.RESOLVED):
            resolve(run=run, case=one, verdict=Case.Verdict(verdict), evidence=evidence, actor=principal)
        transitions.wake(run=run)
        return CaseResult(code="ok")


def _incomplete(
    verdict: str, evidence: str, reference: str, actual_minor: int | None, other_reference: str
) -> CaseResult | None:
    """Each verdict demands its own evidence."""
    if verdict not in VERDICTS:
        return CaseResult(code="unknown_verdict")
    if not evidence.strip():
        return CaseResult(code="evidence_needed")
    if verdict != Case.Verdict.DID_NOT and not reference.strip():
        return CaseResult(code="reference_needed")
    if verdict == Case.Verdict.DIFFERENTLY and (actual_minor is None or not 0 < actual_minor <= MAX_MINOR):
        return CaseResult(code="amount_needed")
    if verdict == Case.Verdict.TWICE and other_reference.strip() in ("", reference.strip()):
        return CaseResult(code="other_reference_needed")
    return None


def _contradicted(run: Run, operation: Operation, verdict: str, reference: str) -> CaseResult | None:
    """What the database and the senders themselves rule out."""
    if operation.state not in (OperationState.UNKNOWN, OperationState.ACCEPTED):
        return CaseResult(code="not_unknown", detail={"state": operation.state})
    if verdict == Case.Verdict.DID_NOT:
        # "did not happen" frees the business key for another try, so nobody may still be able to make it happen
        open_attempts = operation.attempts.filter(closed_at__isnull=True, sender__ended_at__isnull=True)
        if open_attempts.exists():
            return CaseResult(code="sender_may_wake")
        # nor may a call still be on its way: until its limit is over, its effect may yet come
        over = max((one.send_before + one.call_limit for one in sent_attempts(operation=operation)), default=None)
        if over is not None and clock.now() <= over:
            return CaseResult(code="too_early", detail={"at": f"{over:%H:%M:%S} UTC"})
        return None
    taken = Operation.objects.filter(system=operation.system, external_reference=reference.strip())
    if taken.exclude(pk=operation.pk).exists():
        return CaseResult(code="reference_taken", detail={"reference": reference.strip()})
    return None


def _observe(
    operation: Operation, verdict: str, evidence: str, reference: str, other_reference: str, principal: Principal
) -> None:
    findings = {
        Case.Verdict.HAPPENED: Observation.Finding.FOUND,
        Case.Verdict.DIFFERENTLY: Observation.Finding.DIFFERENT,
        Case.Verdict.DID_NOT: Observation.Finding.ABSENT,
        Case.Verdict.TWICE: Observation.Finding.SEVERAL,
    }
    Observation.objects.create(
        operation=operation,
        source=Observation.Source.PERSON,
        finding=findings[Case.Verdict(verdict)],
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
    principal: Principal,
) -> None:
    """The verdict's consequence for the operation."""
    why = f"settled by {principal}: {evidence}"
    if verdict == Case.Verdict.DID_NOT:
        moves.move(
            run=run,
            operation=operation,
            to=OperationState.FAILED,
            actor=principal,
            why=why,
            failure=evidence,
            settled_by="person",
        )
        return
    raw: dict[str, Any] = {"reference": reference.strip(), "settled_by_evidence": evidence}
    if verdict == Case.Verdict.DIFFERENTLY and actual_minor is not None:
        raw["actual_minor"] = str(actual_minor)
    found = Record(reference=reference.strip(), identity=operation.identity, raw=raw)
    succeed(run=run, operation=operation, found=found, by="person", why=why, actor=principal)
