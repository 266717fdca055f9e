"""Proposing another amount for what is asked: always a new proposal, which goes through policy again.

The old request is closed and linked with the new one. Whoever proposed the amount has a part in the run from then on,
so somebody else decides. One durable transaction on the locked run and request; the run's worker asks the policy.
"""

import uuid
from copy import copy
from typing import Any

from django.conf import settings

from agentops import policy_now
from agentops.workflows.base import Draft, Refused, TakesAnotherAmount
from agentops.workflows.registry import UnknownWorkflow, workflow
from approvals import capabilities, freezes, queries, seating
from approvals.evaluation import evaluate
from approvals.models import ApprovalRequest
from approvals.models.request import RequestState
from approvals.objections import Objection
from approvals.services import acting, policies, requests, stages
from approvals.services.acting import Acted, Channel, Hand
from reconciliation import windows
from runs import keeping, transitions
from runs.models import Principal, Proposal, Run
from runs.models.run import RunState
from runs.money import Money, MoneyError, parse_shown
from runs.tools.registry import UnknownTool, contract


def propose(*, request_id: uuid.UUID, principal: Principal, amount: str, reason: str, channel: Channel) -> Acted:
    """`amount` as it was typed, in the currency that is asked about.

    Refusals: those of a closed request, inactive, no_right, own_request, why_needed, comment_too_long; amount_fixed,
    amount_unreadable, amount_same, amount_not_possible (the workflow), amount_denied (the policy in force),
    amount_needs_you, frozen, out_of_date. Raises ApprovalRequest.DoesNotExist.
    """
    drafts: list[Draft] = []

    def possible(hand: Hand) -> Objection | None:
        found = _draft(hand, amount)
        if isinstance(found, Objection):
            return found
        drafts.append(found)
        return None

    return acting.carry_out(
        act="another_amount",
        request_id=request_id,
        principal=principal,
        text=reason,
        channel=channel,
        checks=(acting.undecided, acting.asked, acting.with_reason, _not_frozen, _up_to_date, possible),
        inner=lambda hand: _propose(hand, drafts[0]),
    )


def _not_frozen(hand: Hand) -> Objection | None:
    """A smaller amount may need no approval, so it is held like one."""
    freeze = freezes.over(workflow=hand.run.workflow, tool=hand.request.proposal.tool, lock=True)
    return None if freeze is None else Objection(code=freezes.FROZEN, detail={"freeze": freeze.words})


def _up_to_date(hand: Hand) -> Objection | None:
    newest = queries.newest_binding(run=hand.run, proposal=hand.request.proposal)
    waits = hand.run.state == RunState.AWAITING_APPROVAL
    return None if newest == hand.request.binding_digest and waits else Objection(code="out_of_date")


def can(*, run: Run, proposal: Proposal) -> bool:
    """Whether another amount may be proposed at all for this action of the run."""
    try:
        contract(proposal.tool)
        entry = workflow(run.workflow, run.workflow_version)
    except (UnknownTool, UnknownWorkflow):
        return False
    return proposal.amount_minor is not None and isinstance(entry, TakesAnotherAmount)


def _draft(hand: Hand, typed: str) -> Draft | Objection:
    proposal, run = hand.request.proposal, hand.run
    if not can(run=run, proposal=proposal):
        return Objection(code="amount_fixed")
    entry: Any = workflow(run.workflow, run.workflow_version)
    try:
        money = parse_shown(text=typed, currency=proposal.currency)
    except MoneyError as problem:
        return Objection(code="amount_unreadable", detail={"why": str(problem)})
    if money.minor == proposal.amount_minor:
        return Objection(code="amount_same")
    facts = keeping.newest_facts(run=run)
    found = entry.another_amount(action=proposal.action(), money=money, facts=facts)
    if isinstance(found, Refused):
        return Objection(code="amount_not_possible", detail={"why": found.reason})
    return _allowed(hand, entry, found, facts) or found


def _allowed(hand: Hand, entry: Any, draft: Draft, facts: Any) -> Objection | None:
    """What the run was not granted, or the policy in force would refuse, is not asked at all, so that the old request
    stays; nor is what nobody could decide, once whoever proposes it has a part in it."""
    run, old = hand.run, hand.request.proposal
    version = policies.governing(tool=draft.action.tool, lock=True)
    if version is None:
        return Objection(code="amount_denied", detail={"why": "No policy governs this."})
    variables = policy_now.variables(run=run, known=entry, action=draft.action, facts=facts)
    if no := capabilities.withheld(run=run, tool=draft.action.tool, variables=variables, now=hand.now):
        return Objection(code="amount_denied", detail={"why": f"{capabilities.sentence(objection=no).capitalize()}."})
    verdict = evaluate(document=version.rules, variables=variables, counted=windows.counted(proposal=old))
    if verdict.effect == "deny":
        return Objection(code="amount_denied", detail={"why": verdict.text})
    if verdict.need is None:
        return None
    like_it, money = copy(old), contract(draft.action.tool).money(draft.action.effect)
    assert money is not None
    like_it.amount_minor, like_it.currency = money.minor, money.currency
    asked = ApprovalRequest(run=run, proposal=like_it, supersedes=hand.request)
    # whoever was added by name is asked again, but for whoever proposes this
    chain = [one for one in stages.every(request=asked, need=verdict.need) if one.person_id != hand.user.pk]
    short = seating.short_of(request=asked, stages=chain, votes=[], without=hand.user)
    return None if short is None else Objection(code="amount_needs_you", detail={"stage": short.stage.name})


def _propose(hand: Hand, draft: Draft) -> dict[str, Any]:
    run, old = hand.run, hand.request.proposal
    facts = keeping.newest_facts(run=run)
    proposal = keeping.keep_proposal(
        run=run,
        installation=settings.INSTALLATION,
        step=old.step,
        action=draft.action,
        contract=contract(draft.action.tool),
        rests_on=[facts[kind] for kind in draft.rests_on],
        workings=draft.workings,
        rationale=hand.text,
        proposer=hand.principal,
    )
    assert proposal.amount_minor is not None and old.amount_minor is not None
    new, before = Money(proposal.amount_minor, proposal.currency), Money(old.amount_minor, old.currency)
    why = f"{new} instead of {before}: {hand.text}"
    requests.close_open(run=run, to=RequestState.SUPERSEDED, why=why, actor=hand.principal)
    # a worker that reads facts for the old request meanwhile finds its lease gone, and concludes nothing
    transitions.move(
        run=run,
        to=RunState.AUTHORISING,
        actor=hand.principal,
        why=why,
        refusals=[],
        lease_until=None,
        lease_holder="",
        claims_in_row=0,
    )
    transitions.wake(run=run)
    return {"new": str(new), "old": str(before)}
