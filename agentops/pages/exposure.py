"""Other exposure of the customer a request is about: what is under way or not confirmed, and its running totals."""

from dataclasses import dataclass
from typing import Any

from agentops import policy_now
from agentops.workflows.registry import workflow
from approvals import policy_text
from approvals.evaluation import Verdict, evaluate
from approvals.models import Allowance, ApprovalRequest
from reconciliation import windows
from reconciliation.models import Operation
from reconciliation.models.operation import UNDER_WAY
from runs.models import Evidence, Proposal

SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A running total in minor units; the parts are in thousandths of the limit, for drawing."""

    label: str
    currency: str
    limit: int
    settled: int
    reserved: int
    this: int
    x_reserved: int
    x_this: int
    w_settled: int
    w_reserved: int
    w_this: int
    over: int


def under_way(*, request: ApprovalRequest) -> list[Operation]:
    """Operations for the same customer that are running or not confirmed, the oldest first; this one is left out."""
    if not request.run.customer:
        return []
    found = Operation.objects.filter(run__customer=request.run.customer, state__in=UNDER_WAY)
    return list(found.exclude(proposal_id=request.proposal_id).select_related("run").order_by("created_at")[:SHOWN])


def facts_of(request: ApprovalRequest) -> dict[str, Evidence]:
    """The facts the proposal was made from, by kind: the same facts always give the same words and figures."""
    pieces = Evidence.objects.filter(run=request.run, reading=request.proposal.reading)
    return {piece.kind: piece for piece in pieces}


def variables(request: ApprovalRequest, *, facts: dict[str, Evidence] | None = None) -> dict[str, Any]:
    """The policy's variables for the action, as when it was proposed. Raises LookupError for an unknown workflow."""
    known = workflow(request.run.workflow, request.run.workflow_version)
    facts = facts_of(request) if facts is None else facts
    return policy_now.variables(run=request.run, known=known, action=request.proposal.action(), facts=facts)


def lead(*, request: ApprovalRequest, facts: dict[str, Evidence]) -> str:
    """What will happen, in the workflow's sentence; empty when the workflow cannot say it any more."""
    try:
        known = workflow(request.run.workflow, request.run.workflow_version)
        return known.card(action=request.proposal.action(), facts=facts).lead
    except (LookupError, ValueError, TypeError):  # the workflow or its facts are of another time
        return ""


def judged(*, request: ApprovalRequest, facts: dict[str, Evidence]) -> Verdict | None:
    """What the frozen policy version says to the action with what is counted today; None when it cannot be worked out,
    which is said on the page and never read as "none"."""
    try:
        known = variables(request, facts=facts)
    except (LookupError, ValueError, TypeError):  # the workflow or its facts are of another time
        return None
    counted = windows.counted(proposal=request.proposal)
    return evaluate(document=request.policy_version.rules, variables=known, counted=counted)


def shares(*, verdict: Verdict | None) -> list[Share] | None:
    """The totals the action counts in, as the frozen policy version names them; None when they are not known."""
    if verdict is None or verdict.effect == "deny":
        return None
    needs = verdict.totals
    rows = {row.key: row for row in Allowance.objects.filter(key__in=[need.key for need in needs])}
    return [
        _share(
            label=need.label,
            currency=need.currency,
            limit=need.limit_minor,
            settled=rows[need.key].settled_minor if need.key in rows else 0,
            reserved=rows[need.key].reserved_minor if need.key in rows else 0,
            this=need.amount_minor,
        )
        for need in needs
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """What a rule counts together with this: its sentence now, and the other proposals, the newest first."""

    words: str
    others: list[Proposal]
    more: int


def together(*, verdict: Verdict | None) -> list[Together] | None:
    """As the frozen policy version counts it today; None when it is not known."""
    if verdict is None:
        return None
    found = []
    for one in verdict.windows:
        ids = one.proposals[::-1][:SHOWN]
        others = Proposal.objects.filter(pk__in=ids).select_related("run", "operation").order_by("-created_at")
        found.append(
            Together(words=policy_text.together(found=one), others=list(others), more=len(one.proposals) - len(ids))
        )
    return found


def _share(*, label: str, currency: str, limit: int, settled: int, reserved: int, this: int) -> Share:
    def part(value: int) -> int:
        return min(1000, round(1000 * value / limit)) if limit else 0

    return Share(
        label=label,
        currency=currency,
        limit=limit,
        settled=settled,
        reserved=reserved,
        this=this,
        w_settled=part(settled),
        x_reserved=part(settled),
        w_reserved=part(reserved),
        x_this=part(settled + reserved),
        w_this=part(this),
        over=max(0, settled + reserved + this - limit),
    )
