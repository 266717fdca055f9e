"""Whether what was allowed may still be done, on the facts as they were read just now. Reads under the caller's locks,
and writes nothing; the policy is held from here.
"""

import datetime as dt
from dataclasses import dataclass
from typing import Any

from approvals import capabilities, standing
from approvals.evaluation import TotalNeed, Verdict, evaluate, satisfied
from approvals.services import policies, requests
from reconciliation import late, reversing, windows
from reconciliation.models import Operation
from reconciliation.unaltered import altered
from runs import clock
from runs.models import Evidence, Proposal, Run
from runs.tools.base import Contract


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What was read for this attempt, stored with it: the binding as it is now, when it was read, the policy's
    variables, and what the workflow itself now objects to (facts that nothing is bound to, such as a credit somebody
    gave meanwhile). `quiet`: all was well with the tool then."""

    binding_digest: str
    read_at: dt.datetime
    fresh_for: dt.timedelta
    variables: dict[str, Any]
    objection: str = ""
    quiet: bool = False
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Void:
    """The decision in hand no longer counts. `code`: cancelled, expired, out_of_date, rights_lost, rejected,
    not_approved, policy_changed, contract_changed, altered, business_key_taken, over_limit, no_decision, in_dispute,
    reversed, not_proposed, not_granted or another of `approvals.capabilities`, lapsed (as expired, where nobody was
    asked), standing_over (the approval given beforehand no longer covers it, or is used up)."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What allows the action now: the decision with its request, and what the policy in force says."""

    authority: requests.Authority
    verdict: Verdict

    def totals(self, *, amount_minor: int | None) -> list[TotalNeed]:
        """Every total that it counts in: the policy's, and what is left of a standing approval."""
        own = self.authority.standing
        given = [] if own is None else [standing.need(standing=own, amount_minor=amount_minor or 0)]
        return [*self.verdict.totals, *given]


def in_dispute(*, run: Run, ours: list[Operation], proposal: Proposal) -> Void | None:
    """Nothing follows on what is in dispute, is being undone, or was put right after this was proposed."""
    if run.cancel_requested_at is not None:
        return None
    if disputed := late.disputed(ours):
        return Void(code="in_dispute", detail=late.disputes_in_words(operations=disputed).rstrip("."))
    if changed := late.corrected_since(operations=ours, at=proposal.created_at):
        return Void(code="in_dispute", detail=changed)
    undone = reversing.undone_in_words(operations=ours)
    return Void(code="reversed", detail=undone) if undone else None


_PROBLEMS = {
    "rejected": "the action was rejected",
    "not_approved": "the approval was voided before it was used",
    "expired": "the approval was not used in time",
    "rights_lost": "a voter that counted has lost the right since",
}


def _late(authority: requests.Authority) -> Void:
    if authority.request is None:
        return Void(code="lapsed", detail="what the policy allowed was not done in time, so it is asked again")
    return Void(code="expired", detail=_PROBLEMS["expired"])


def allowed(
    *,
    run: Run,
    proposal: Proposal,
    contract: Contract,
    facts: Facts,
    authority: requests.Authority | None,
    operation: Operation | None,
) -> Allowed | Void:
    """The checks that void a decision, in the order in which they are told to people. The policy is held from here."""
    if run.cancel_requested_at is not None:
        return Void(code="cancelled", detail="the run was cancelled before anything was sent")
    if authority is None:
        return Void(code="no_decision", detail="nobody has allowed this action")
    if authority.problem == "expired":
        return _late(authority)
    if authority.problem:
        return Void(code=authority.problem, detail=_PROBLEMS[authority.problem])
    if proposal.contract_version != contract.version:
        return Void(code="contract_changed", detail=f"{proposal.tool} has changed since this was proposed")
    if what := altered(proposal=proposal, contract=contract, authority=authority, operation=operation):
        return Void(code="altered", detail=f"{what} is not what it was when this was allowed")
    if facts.objection:
        return Void(code="out_of_date", detail=facts.objection)
    if facts.binding_digest != authority.decision.binding_digest:
        return Void(code="out_of_date", detail="a fact that the decision rests on has changed since")
    if no := capabilities.withheld(run=run, tool=proposal.tool, variables=facts.variables, now=clock.now()):
        return Void(code=no.code, detail=capabilities.sentence(objection=no))
    version = policies.governing(tool=proposal.tool, lock=True)
    if version is None:
        return Void(code="policy_changed", detail=f"no policy governs {proposal.tool} any more")
    if clock.now() >= authority.decision.valid_until:  # it ended while a freeze or the policy was waited for
        return _late(authority)
    verdict = evaluate(document=version.rules, variables=facts.variables, counted=windows.counted(proposal=proposal))
    if authority.standing is not None:
        why = standing.unfit(
            standing=authority.standing, run=run, proposal=proposal, verdict=verdict, variables=facts.variables
        )
        return Void(code="standing_over", detail=why) if why else Allowed(authority=authority, verdict=verdict)
    good = satisfied(
        decision_kind=authority.decision.kind,
        asked=authority.answered,
        in_order=authority.in_order,
        confirm=authority.request.confirm if authority.request else "",
        verdict=verdict,
    )
    if not good:
        return Void(code="policy_changed", detail=f"under {version} this decision is no longer enough")
    return Allowed(authority=authority, verdict=verdict)
