"""Asking the policy, and people where the policy says so. The run parks while they think."""

import datetime as dt
from dataclasses import replace

from django.db.models import Q

from agentops import policy_now
from agentops.asked import nobody_for, people_to_decide
from agentops.reasons import Reason
from agentops.steps.base import AT_ONCE, Next, Step, committing, done_so_far, hand_over, out_of_date, park
from agentops.steps.cancelling import what_stays
from agentops.steps.deciding import refuse
from agentops.steps.gathering import keep_facts, read_facts
from agentops.steps.handed_back import sent_back, withdrawn
from agentops.workflows.base import Refused
from approvals import capabilities, confirming, freezes, objections, policy_text, seating, staffing, standing, talk
from approvals.binding import binding_digest
from approvals.evaluation import Verdict, evaluate
from approvals.models import Allowance, ApprovalRequest, PolicyVersion, Stage, StandingApproval
from approvals.models.request import RequestState
from approvals.queries import newest_binding
from approvals.requirement import Requirement
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
        facts=[(one.kind, one.locator, one.version, one.bound_digest) for one in pieces],
    )


def authorise(step: Step) -> Next:
    with committing(step.lease, POINT) as run:
        return ask_policy(step, run)


def ask_policy(step: Step, run: Run) -> Next:
    """The step on the locked run."""
    proposal, every = step.proposal(), step.facts()
    if not {str(one.pk) for one in every.values()} >= set(proposal.rests_on):  # read again since
        every = {**every, **{one.kind: one for one in run.evidence.filter(pk__in=proposal.rests_on)}}
    version = policies.governing(tool=proposal.tool, lock=True)
    if version is None:
        return _denied(step, run, proposal, f"no policy governs {proposal.tool}, so it is not allowed")
    variables = policy_now.variables(run=step.run, known=step.workflow, action=proposal.action(), facts=every)
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
    problem = _problem(run, proposal, verdict)
    if problem:
        return _denied(step, run, proposal, problem)
    digest = binding_of(proposal, every)
    before, added = _asked_before(run, proposal)
    if before is not None and added:
        verdict = _of_those_added(verdict, before)
    if verdict.effect == "allow":
        requests.policy_decision(
            run=run,
            proposal=proposal,
            version=version,
            verdict=verdict,
            binding_digest=digest,
            valid_for=AUTOMATIC_VALID_FOR,
            actor=step.actor,
        )
        transitions.move(run=run, to=RunState.EXECUTING, actor=step.actor, why=f"automatic, by {version}")
        return Next.GO_ON
    given = None if added else standing.find(run=run, proposal=proposal, verdict=verdict, variables=variables)
    if given is not None:
        return _answered_beforehand(step, run, proposal, version, verdict, given, digest)
    if (short := _short(run, proposal, verdict, before)) is not None:
        reason = f"too few people could decide: it takes {nobody_for(short)}"
        return hand_over(run, code=Reason.NOBODY_TO_ASK, reason=reason, actor=step.actor)
    request = _ask(step, run, proposal, version, verdict, digest, every, before)
    transitions.move(
        run=run,
        to=RunState.AWAITING_APPROVAL,
        actor=step.actor,
        why=request.ask,
        wake_at=request.respond_by,
        waits_for=people_to_decide(request),
    )
    return Next.PARK


AT_ONCE[RunState.AUTHORISING] = (POINT, ask_policy)


def _asked_before(run: Run, proposal: Proposal) -> tuple[ApprovalRequest | None, bool]:
    """What was asked about this step and ended unused, which takes an earlier proposal; whether people had added
    somebody who could still answer."""
    before = _SUPERSEDED.first(run=run.pk, step=proposal.step) if proposal.number > 1 else None
    return before, before is not None and bool(stages.added_to(request_id=before.pk, run=run))


def _of_those_added(verdict: Verdict, before: ApprovalRequest) -> Verdict:
    """What is allowed by itself now still takes those whom people had added, in as much time as they had."""
    if verdict.effect != "allow":
        return verdict
    first_until = before.respond_by - before.stopped_for
    need = Requirement(
        group=before.group,
        quorum=0,
        respond_within=first_until - before.created_at,
        valid_for=before.valid_until - first_until,
        confirm=confirming.strictest(levels=[one for one in confirming.LEVELS if one == before.confirm]),
    )
    return replace(verdict, effect="ask", groups=need)


def _short(run: Run, proposal: Proposal, verdict: Verdict, before: ApprovalRequest | None) -> Stage | None:
    """The stage for which there are too few people, whoever an escalation would ask included."""
    need = verdict.groups
    assert need is not None
    asked = ApprovalRequest(run=run, proposal=proposal, supersedes=before)
    chain = stages.every(request=asked, need=need)
    return staffing.missing(request=asked, stages=chain, escalating=[one.group for one in need.escalations])


def _answered_beforehand(
    step: Step,
    run: Run,
    proposal: Proposal,
    version: PolicyVersion,
    verdict: Verdict,
    given: StandingApproval,
    digest: str,
) -> Next:
    standing_use.decide(
        run=run,
        proposal=proposal,
        version=version,
        verdict=verdict,
        standing=given,
        binding_digest=digest,
        valid_for=AUTOMATIC_VALID_FOR,
        actor=step.actor,
    )
    transitions.move(run=run, to=RunState.EXECUTING, actor=step.actor, why=f"approved beforehand: {given}")
    return Next.GO_ON


def _problem(run: Run, proposal: Proposal, verdict: Verdict) -> str:
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
_ASKED = hot.Query(
    lambda run: ApprovalRequest.objects.select_for_update(of=("self",)).filter(run=run).order_by("-created_at")[:1]
)


def _ask(
    step: Step,
    run: Run,
    proposal: Proposal,
    version: PolicyVersion,
    verdict: Verdict,
    digest: str,
    facts: dict[str, Evidence],
    before: ApprovalRequest | None,
) -> ApprovalRequest:
    card = step.workflow.card(action=proposal.action(), facts=facts)
    rows = [{"key": one.key, "label": one.label, "value": one.value} for one in card.rows]
    rows.append({"key": "policy", "label": "Policy", "value": str(version)})
    rows += [{"key": f"rule:{one['id']}", "label": "Rule", "value": one["text"]} for one in verdict.rules]
    if verdict.groups is not None and verdict.groups.confirm != confirming.CLICK:
        money = None if proposal.amount_minor is None else Money(proposal.amount_minor, proposal.currency)
        takes = confirming.words(level=verdict.groups.confirm, money=money)
        rows.append({"key": "confirm", "label": "An approval takes", "value": takes})
    rows += [
        {"key": f"window:{one.rule}", "label": "Counted together", "value": policy_text.together(found=one)}
        for one in verdict.windows
    ]
    return requests.open_request(
        run=run,
        proposal=proposal,
        version=version,
        verdict=verdict,
        binding_digest=digest,
        rows=rows,
        ask=card.ask,
        supersedes=before,
        actor=step.actor,
    )


def await_approval(step: Step) -> Next:
    """Look whether it is decided; read the facts again where somebody wants to know; else park."""
    if step.run.facts_wanted_at and _answers_count(step.run):
        facts = read_facts(step, resume_to=RunState.GATHERING)
        if isinstance(facts, Next):
            return facts
        with committing(step.lease, "run.gathered") as run:
            keep_facts(step, run, facts)
    with committing(step.lease, "run.advanced") as run:
        request = _ASKED.one(run=run.pk)
        if request.state == RequestState.OPEN:
            return _still_open(step, run, request)
        if request.state == RequestState.APPROVED:
            transitions.move(run=run, to=RunState.EXECUTING, actor=step.actor, why="approved")
            return Next.GO_ON
        if request.state == RequestState.REJECTED:
            return _rejected(step, run, request)
        if request.state == RequestState.SENT_BACK:
            return sent_back(step, run, request)
        if request.state == RequestState.WITHDRAWN:
            return withdrawn(step, run, request)
        if request.state == RequestState.EXPIRED:
            return _expired(step, run, request)
        return out_of_date(run, why=request.close_reason or "the request went out of date", actor=step.actor)


def _rejected(step: Step, run: Run, request: ApprovalRequest) -> Next:
    """By people, or because nobody answered in time and the rule says no to that; then nobody's reason is there."""
    if request.close_reason:
        return _end_rejected(step, run, f"Rejected: {request.close_reason}")
    said = request.votes.filter(choice="reject").select_related("principal", "instead_of").order_by("-at").first()
    reason = f"Rejected by {said.whose}: {said.comment}" if said else "Rejected"
    if step.workflow.asks_again_when_rejected and request.proposal.model_call_id:
        transitions.move(run=run, to=RunState.DECIDING, actor=step.actor, why=reason, refusals=[*run.refusals, reason])
        return Next.GO_ON
    return _end_rejected(step, run, reason)


def _end_rejected(step: Step, run: Run, reason: str) -> Next:
    """With what it did before, which stays: *rejected* says nothing of that."""
    stays = what_stays(run)
    outcome = f"{reason.rstrip('.')}. {stays}" if stays else reason
    transitions.move(run=run, to=RunState.REJECTED, actor=step.actor, why=reason, outcome=outcome)
    return Next.PARK


def _answers_count(run: Run) -> bool:
    until = deadline(run)
    return until is not None and clock.now() < until


def deadline(run: Run) -> dt.datetime | None:
    """Until when people may answer what the run asks; None when it asks nothing."""
    asked = ApprovalRequest.objects.filter(run=run, state=RequestState.OPEN).select_related("proposal").first()
    return None if asked is None else freezes.answer_by(request=asked, run=run, now=clock.now())


def is_overdue(run: Run) -> bool:
    """Has nobody answered in time? Pausing a run stops no deadline; a freeze does."""
    until = deadline(run)
    return until is not None and clock.now() >= until


def _too_late(request: ApprovalRequest, run: Run) -> bool:
    now = clock.now()
    return now >= freezes.answer_by(request=request, run=run, now=now)


def _still_open(step: Step, run: Run, request: ApprovalRequest) -> Next:
    proposal = step.proposal()
    if _too_late(request, run):
        late = requests.close_open(run=run, to=RequestState.EXPIRED, why="nobody answered in time", actor=step.actor)
        if late is not None and late.state == RequestState.REJECTED:
            return _rejected(step, run, late)
        return _expired(step, run, request)
    if newest_binding(run=run, proposal=proposal) != request.binding_digest:
        why = "a fact it rests on has changed"
        requests.close_open(run=run, to=RequestState.SUPERSEDED, why=why, actor=step.actor)
        return out_of_date(run, why=why, actor=step.actor)
    if policy := _policy_moved(run, request):
        requests.close_open(run=run, to=RequestState.SUPERSEDED, why=policy, actor=step.actor)
        return out_of_date(run, why=policy, actor=step.actor)
    if run.facts_wanted_at:  # wanted once more since they were read
        return Next.GO_ON
    question = "; a question waits for an answer" if talk.open_questions(request=request) else ""
    return park(run, until=request.respond_by, waits_for=f"{_awaited(run, request)}{question}")


def _awaited(run: Run, request: ApprovalRequest) -> str:
    """Whom it waits for; where nobody is left of those, the next escalation comes at once, and else it says so."""
    votes = seating.votes_of(request=request)
    while True:
        chain = seating.stages_of(request=request)
        short = staffing.missing(request=request, stages=chain, votes=votes)
        if short is None:
            return people_to_decide(request)
        if not stages.escalate_now(request=request, run=run, now=clock.now()):
            return f"{staffing.NOBODY}: {nobody_for(short)}"


def _policy_moved(run: Run, request: ApprovalRequest) -> str:
    """Why what is asked is not what the policy in force would ask, or nothing."""
    version = policies.governing(tool=request.proposal.tool, lock=True)
    if version is None:
        return f"no policy governs {request.proposal.tool} any more"
    if version.pk == request.policy_version_id:
        return ""
    request.run = run
    verdict = policy_now.verdict(request=request, version=version)
    moved = objections.policy(request=request, version=version, verdict=verdict)
    return "" if moved is None else f"{version} would not ask this"


def _expired(step: Step, run: Run, request: ApprovalRequest) -> Next:
    reason = f"nobody answered “{request.ask}” in time; nothing was sent"
    return hand_over(run, code=Reason.APPROVAL_EXPIRED, reason=reason, actor=step.actor)
