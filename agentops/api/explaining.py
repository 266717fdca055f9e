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
    VoteOut,
)
from agentops.explain import Explained, explain
from agentops.pages.became import standing_sentence
from reconciliation.models import Operation
from runs.hiding import without_secrets


def explained(*, operation: Operation, known: OperationOut) -> ExplainedOut:
    """`operation` as `agentops.explain.found` gives it, `known` what is told of it with its run."""
    told = explain(operation=operation)
    return ExplainedOut(
        **known.dict(),
        run=operation.run_id,
        effect=without_secrets(operation.effect),
        business_key=operation.business_key,
        contract_version=operation.contract_version,
        proposed_by=str(operation.proposal.proposer),
        proposed_at=operation.proposal.created_at,
        allowed=_allowed(told),
        in_words=standing_sentence(operation=operation),
        **_happened(told),
    )


def _allowed(told: Explained) -> AllowedOut:
    decision = told.operation.decision
    votes = [
        VoteOut(
            by=str(one.principal), choice=one.choice, comment=one.comment, group=one.group, channel=one.channel,
            at=one.at,
        )
        for one in told.votes
    ]  # fmt: skip
    return AllowedOut(
        kind=decision.kind,
        policy=str(decision.policy_version),
        rules=decision.rules,
        binding_digest=decision.binding_digest,
        decided_at=decision.decided_at,
        beforehand=str(decision.standing) if decision.standing else "",
        votes=votes,
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
