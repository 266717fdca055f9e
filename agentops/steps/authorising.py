"""Asking the policy what it says of an action, and people where it says so."""

import datetime as dt
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Q

from agentops import policy_now
from agentops.asked import people_to_decide, too_few
from agentops.reasons import Reason
from agentops.steps.base import AT_ONCE, Next, Step, committing, done_so_far, hand_over
from agentops.steps.deciding import refuse
from agentops.workflows.base import Refused
from approvals import capabilities, confirming, policy_text, staffing, standing
from approvals.binding import binding_digest
from approvals.evaluation import Verdict, evaluate
from approvals.models import Allowance, ApprovalRequest, PolicyVersion, StandingApproval
from approvals.models.request import RequestState
from approvals.requirement import Requirement
from approvals.seating import Short
from approvals.services import policies, requests, stages, standing_use, tallying
from reconciliation import late, windows
from runs import clock, hot, record, transitions
from runs.models import Evidence, Principal, Proposal, Run
from runs.models.run import RunState
from runs.money import Money

POINT = "run.authorised"
AUTOMATIC_VALID_FOR = dt.timedelta(hours=1)


def binding_of(proposal: Proposal, facts: dict[str, Evidence]) -> str:
    """The binding of a fresh proposal, from the very evidence it rests on."""
    wanted = set(proposal.rests_on)
    pieces = [one for one in facts.values() if str(one.pk) in wanted]
    if len(pieces) != len(wanted):
        raise ValueError("a proposal rests on facts that are not in hand")
    return binding_digest(
        action_digest=proposal.action_digest,
        facts=[one.as_bound for one in pieces],
    )


def authorise(step: Step) -> Next:
    with committing(step.lease, POINT) as run:
        return ask_policy(step, run)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Matter:
    """An action before the policy that governs it, and what that says. `before` is what was asked about this step and
    ended unused, `added` whether people had added somebody to that who could still answer."""

    step: Step
    run: Run
    proposal: Proposal
    facts: dict[str, Evidence]
    variables: dict[str, Any]
    version: PolicyVersion
    verdict: Verdict
    before: ApprovalRequest | None = None
    added: bool = False

    @property
    def binding_digest(self) -> str:
        return binding_of(self.proposal, self.facts)


def ask_policy(step: Step, run: Run) -> Next:
    """The step on the locked run. The first that holds: it is not allowed, the policy allows it by itself, it was
    approved beforehand, too few people could decide, people are asked."""
    weighed = _weigh(step, run)
    if isinstance(weighed, Next):
        return weighed
    matter = _with_those_added(weighed)
    if matter.verdict.effect == "allow":
        return _allow(matter)
    if (given := _given_beforehand(matter)) is not None:
        return _answered_beforehand(matter, given)
    if (short := _short(matter)) is not None:
        reason = f"too few people could decide: {too_few(short)}"
        return hand_over(run, code=Reason.NOBODY_TO_ASK, reason=reason, actor=step.actor)
    return _ask(matter)


def _weigh(step: Step, run: Run) -> _Matter | Next:
    """What the policy says of the action in hand, recorded; or what follows from that it is not allowed."""
    proposal, facts = step.proposal(), _facts_under(step, run)
    version = policies.governing(tool=proposal.tool, lock=True)
    if version is None:
        return _denied(step, run, proposal, f"no policy governs {proposal.tool}, so it is not allowed")
    variables = policy_now.variables(run=step.run, known=step.workflow, action=proposal.action(), facts=facts)
    tallying.tally(proposal=proposal, version=version, variables=variables)
    verdict = evaluate(document=version.rules, variables=variables, counted=windows.counted(proposal=proposal))
    record.append(
        run=run,
        kind="policy.checked",
        actor=step.actor,
        tool=proposal.tool,
        effect=verdict.effect,
        policy=str(version),
        rules=verdict.rules,
        reason=verdict.text,
        proposal=str(proposal.pk),
    )
    if no := capabilities.withheld(run=run, tool=proposal.tool, variables=variables, now=clock.now()):
        return _denied(step, run, proposal, capabilities.sentence(objection=no), code=no.code)
    if problem := _problem(proposal, verdict):
        return _denied(step, run, proposal, problem)
    return _Matter(
        step=step, run=run, proposal=proposal, facts=facts, variables=variables, version=version, verdict=verdict
    )  # fmt: skip


def _facts_under(step: Step, run: Run) -> dict[str, Evidence]:
    """The latest facts; of those that the proposal rests on the very ones, where they were read again since."""
    latest, rests_on = step.facts(), set(step.proposal().rests_on)
    if {str(one.pk) for one in latest.values()} >= rests_on:
        return latest
    return {**latest, **{one.kind: one for one in run.evidence.filter(pk__in=rests_on)}}


def _allow(matter: _Matter) -> Next:
    requests.policy_decision(
        run=matter.run,
        proposal=matter.proposal,
        version=matter.version,
        verdict=matter.verdict,
        binding_digest=matter.binding_digest,
        valid_for=AUTOMATIC_VALID_FOR,
        actor=matter.step.actor,
    )
    return _go_and_do(matter, why=f"automatic, by {matter.version}")


def _go_and_do(matter: _Matter, *, why: str) -> Next:
    transitions.move(run=matter.run, to=RunState.EXECUTING, actor=matter.step.actor, why=why)
    return Next.GO_ON


AT_ONCE[RunState.AUTHORISING] = (POINT, ask_policy)


def _with_those_added(matter: _Matter) -> _Matter:
    """What is allowed by itself now still takes those whom people had added to what was asked before, in as much time
    as they had."""
    run, proposal = matter.run, matter.proposal
    before = _SUPERSEDED.first(run=run.pk, step=proposal.step) if proposal.number > 1 else None
    if before is None or not stages.added_to(request_id=before.pk, run=run):
        return replace(matter, before=before)
    if matter.verdict.effect != "allow":
        return replace(matter, before=before, added=True)
    first_until = before.respond_by - before.stopped_for
    need = Requirement(
        group=before.group,
        quorum=0,
        respond_within=first_until - before.created_at,
        valid_for=before.valid_until - first_until,
        confirm=confirming.strictest(levels=[one for one in confirming.LEVELS if one == before.confirm]),
    )
    return replace(matter, before=before, added=True, verdict=replace(matter.verdict, effect="ask", need=need))


def _short(matter: _Matter) -> Short | None:
    """The stage for which there are too few people, whoever an escalation would ask included."""
    need = matter.verdict.need
    assert need is not None
    asked = ApprovalRequest(run=matter.run, proposal=matter.proposal, supersedes=matter.before)
    chain = stages.every(request=asked, need=need)
    return staffing.missing(request=asked, stages=chain, escalating=[one.group for one in need.escalations])


def _given_beforehand(matter: _Matter) -> StandingApproval | None:
    """A standing approval that answers it; none answers for people whom somebody added."""
    if matter.added:
        return None
    return standing.find(
        run=matter.run, proposal=matter.proposal, verdict=matter.verdict, variables=matter.variables
    )  # fmt: skip


def _answered_beforehand(matter: _Matter, given: StandingApproval) -> Next:
    standing_use.decide(
        run=matter.run,
        proposal=matter.proposal,
        version=matter.version,
        verdict=matter.verdict,
        standing=given,
        binding_digest=matter.binding_digest,
        valid_for=AUTOMATIC_VALID_FOR,
        actor=matter.step.actor,
    )
    return _go_and_do(matter, why=f"approved beforehand: {given}")


def _problem(proposal: Proposal, verdict: Verdict) -> str:
    """Why this cannot be allowed now, or nothing. Checked again at sending; here so that nobody is asked in vain."""
    if verdict.effect == "deny":
        return verdict.text
    if other := late.holder(business_key=proposal.business_key):
        return late.holder_in_words(other=other)
    for total in verdict.totals:
        row = Allowance.objects.filter(pk=total.key).first()
        used = row.reserved_minor + row.settled_minor if row else 0
        if used + total.amount_minor > total.limit_minor:
            return f"{total.label} would be exceeded"
    return ""


def _denied(step: Step, run: Run, proposal: Proposal, reason: str, *, code: str = Reason.DENIED) -> Next:
    """The agent hears why and may choose again; what a workflow proposed by itself is simply not allowed."""
    if proposal.model_call_id is not None:
        return refuse(step, run, Refused(code=code, reason=reason))
    if proposal.proposer.kind == Principal.Kind.PERSON:  # another amount, which the policy refused in the meantime
        return hand_over(run, code=Reason.AMOUNT_NOT_ALLOWED, reason=reason, actor=step.actor)
    if done_so_far(run):  # which stays; how it goes on from there is a person's to say
        return hand_over(run, code=code, reason=f"what follows is not allowed: {reason}", actor=step.actor)
    transitions.move(run=run, to=RunState.REJECTED, actor=step.actor, why=reason, outcome=f"Not allowed: {reason}")
    return Next.PARK


_GONE = [RequestState.SUPERSEDED, RequestState.STALE, RequestState.REVOKED, RequestState.EXPIRED]
_GONE += [RequestState.SENT_BACK, RequestState.WITHDRAWN]
_SUPERSEDED = hot.Query(
    lambda run, step: ApprovalRequest.objects.filter(
        Q(superseded_by__isnull=True), run=run, proposal__step=step, state__in=_GONE
    ).order_by("-created_at")[:1]
)


def _ask(matter: _Matter) -> Next:
    """Put it to people, as the workflow shows it and the policy wants it answered; the run waits for them."""
    run, proposal, actor = matter.run, matter.proposal, matter.step.actor
    card = matter.step.workflow.card(action=proposal.action(), facts=matter.facts)
    rows = [{"key": one.key, "label": one.label, "value": one.value} for one in card.rows]
    request, asked = requests.open_request(
        run=run,
        proposal=proposal,
        version=matter.version,
        verdict=matter.verdict,
        binding_digest=matter.binding_digest,
        rows=rows + _rows_of_the_policy(matter),
        ask=card.ask,
        supersedes=matter.before,
        actor=actor,
    )
    transitions.move(
        run=run,
        to=RunState.AWAITING_APPROVAL,
        actor=actor,
        why=request.ask,
        wake_at=request.respond_by,
        waits_for=people_to_decide(request, every=asked),
    )
    return Next.PARK


def _rows_of_the_policy(matter: _Matter) -> list[dict[str, str]]:
    verdict, proposal = matter.verdict, matter.proposal
    rows = [{"key": "policy", "label": "Policy", "value": str(matter.version)}]
    rows += [{"key": f"rule:{one['id']}", "label": "Rule", "value": one["text"]} for one in verdict.rules]
    if verdict.need is not None and verdict.need.confirm != confirming.CLICK:
        money = None if proposal.amount_minor is None else Money(proposal.amount_minor, proposal.currency)
        takes = confirming.words(level=verdict.need.confirm, money=money)
        rows.append({"key": "confirm", "label": "An approval takes", "value": takes})
    return rows + [
        {"key": f"window:{one.rule}", "label": "Counted together", "value": policy_text.together(found=one)}
        for one in verdict.windows
    ]
