"""While people think: the run parks, and looks whether it is decided, over, or no longer what would be asked."""

import datetime as dt

from agentops import policy_now
from agentops.asked import people_to_decide, too_few
from agentops.reasons import Reason
from agentops.steps.base import Next, Step, committing, hand_over, out_of_date, park
from agentops.steps.cancelling import what_stays
from agentops.steps.gathering import keep_facts, read_facts
from agentops.steps.handed_back import sent_back, withdrawn
from approvals import freezes, objections, seating, staffing, talk
from approvals.models import ApprovalRequest
from approvals.models.request import RequestState
from approvals.queries import newest_binding
from approvals.services import policies, requests, stages
from runs import clock, hot, transitions
from runs.models import Run
from runs.models.run import RunState

_ASKED = hot.Query(
    lambda run: ApprovalRequest.objects.select_for_update(of=("self",)).filter(run=run).order_by("-created_at")[:1]
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
    """Whom it waits for; where too few of those are left, the next escalation comes at once, and else it says so."""
    votes = seating.votes_of(request=request)
    while True:
        chain = seating.stages_of(request=request)
        short = staffing.missing(request=request, stages=chain, votes=votes)
        if short is None:
            return people_to_decide(request)
        if not stages.escalate_now(request=request, run=run, now=clock.now()):
            return f"{staffing.NOBODY}: {too_few(short)}"


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
