"""All there is about one operation, as the API gives it."""

from typing import Any

from agentops.api.schemas import (
    AllowedOut,
    AttemptOut,
    CaseOut,
    CorrectionOut,
    ExplainedOut,
    ObservationOut,
    OperationOut,
    UndoesOut,
    UndoneOut,
    VerdictOut,
    VoteOut,
)
from agentops.explain import Explained, Undone, explain
from agentops.pages.became import standing_sentence
from agentops.pages.undone import look
from approvals.models import Vote
from reconciliation.models import Operation, ProposedVerdict, Reversal
from runs.hiding import without_secrets


def explained(*, operation: Operation, known: OperationOut) -> ExplainedOut:
    """`operation` as `agentops.explain.found` gives it, `known` what is told of it with its run."""
    told = explain(operation=operation)
    return ExplainedOut(
        **known.dict(),
        run=operation.run_id,
        effect=without_secrets(operation.effect),
        business_key=operation.business_key,
        may_be_done_anew=operation.anew_allowed,
        contract_version=operation.contract_version,
        proposed_by=str(operation.proposal.proposer),
        proposed_at=operation.proposal.created_at,
        allowed=_allowed(told),
        in_words=standing_sentence(operation=operation),
        undone=[_undone(one) for one in told.undone],
        undoes=_undoes(told),
        **_happened(told),
    )


def reversal_told(*, reversal: Reversal) -> dict[str, Any]:
    """As ReversalOut; its run and who proposed it are read with it."""
    return {
        "id": reversal.pk,
        "reference": reversal.reference,
        "tool": reversal.tool,
        "run": reversal.run_id,
        "by": str(reversal.proposed_by),
        "origin": reversal.origin,
        "reason": reversal.reason,
        "at": reversal.created_at,
        "state": look(reversal=reversal).word,
        "result": reversal.result or None,
        "what": reversal.what,
        "ended_at": reversal.ended_at,
        "tries": reversal.tries,
        "problem": reversal.problem,
    }


def _undone(one: Undone) -> UndoneOut:
    made = one.operation
    return UndoneOut(
        **reversal_told(reversal=one.reversal),
        operation=made.pk if made else None,
        outcome=made.state if made else None,
        allowed_by=made.decision.kind if made else None,
        votes=[_vote(vote) for vote in one.votes],
    )


def _undoes(told: Explained) -> UndoesOut | None:
    found = told.undoes
    if found is None:
        return None
    first = found.operation
    return UndoesOut(
        operation=first.pk, run=first.run_id, reference=found.reference, outcome=first.state,
        by=str(found.proposed_by), reason=found.reason, at=found.created_at,
    )  # fmt: skip


def _vote(one: Vote) -> VoteOut:
    return VoteOut(
        by=str(one.principal), choice=one.choice, comment=one.comment, group=one.group, channel=one.channel, at=one.at
    )


def _allowed(told: Explained) -> AllowedOut:
    decision = told.operation.decision
    return AllowedOut(
        kind=decision.kind,
        policy=str(decision.policy_version),
        rules=decision.rules,
        binding_digest=decision.binding_digest,
        decided_at=decision.decided_at,
        beforehand=str(decision.standing) if decision.standing else "",
        votes=[_vote(one) for one in told.votes],
    )


def _happened(told: Explained) -> dict[str, Any]:
    return {
        "attempts": [
            AttemptOut(
                number=one.number, wire_key=one.wire_key, sender=str(one.sender), opened_at=one.opened_at,
                send_before=one.send_before, closed_at=one.closed_at, result=one.result, detail=one.detail,
                request=without_secrets(one.request), answer=without_secrets(one.answer),
            )
            for one in told.attempts
        ],
        "learned": [
            ObservationOut(
                source=one.last.source, finding=one.last.finding, conclusive=one.last.conclusive,
                summary=one.last.summary, asked_at=one.last.asked_at, at=one.first.at, times=one.times,
                raw=without_secrets(one.last.raw),
            )
            for one in told.learned
        ],
        "cases": [
            CaseOut(
                case=one.label, kind=one.kind, state=one.state, why=one.why, verdict=one.verdict,
                evidence=one.evidence, by=one.settled_by if one.resolved_by_id else "",
                proposed=[_verdict(verdict) for verdict in one.proposals.all()],
            )
            for one in told.cases
        ],
        "corrections": [
            CorrectionOut(
                number=one.number, case=one.case.label, source=one.source, target=one.target, evidence=one.evidence,
                by=one.by, at=one.at, before=without_secrets(one.before),
            )
            for one in told.corrections
        ],
    }  # fmt: skip


def _verdict(one: ProposedVerdict) -> VerdictOut:
    return VerdictOut(
        verdict=one.verdict, evidence=one.evidence, reference=one.reference, other_reference=one.other_reference,
        actual_minor=None if one.actual_minor is None else str(one.actual_minor), by=str(one.proposed_by),
        at=one.proposed_at,
    )  # fmt: skip
