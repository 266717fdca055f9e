"""What follows for a run whose request was ended without a decision: sent back, or withdrawn."""

from agentops.reasons import Reason
from agentops.steps.base import Next, Step, hand_over
from agentops.steps.deciding import refuse
from agentops.workflows.base import Refused
from approvals.models import ApprovalRequest
from runs.models import Run


def sent_back(step: Step, run: Run, request: ApprovalRequest) -> Next:
    """The agent that proposed it hears why and may propose anew; what it did not propose goes to a person."""
    reason = f"{request.closed_by or 'Somebody'} sent it back: {request.close_reason}"
    if request.proposal.model_call_id is not None:
        return refuse(step, run, Refused(code="sent_back", reason=reason))
    return hand_over(run, code=Reason.SENT_BACK, reason=reason, actor=step.actor)


def withdrawn(step: Step, run: Run, request: ApprovalRequest) -> Next:
    reason = f"{request.closed_by or 'Somebody'} withdrew what was asked: {request.close_reason}"
    return hand_over(run, code=Reason.WITHDRAWN, reason=reason, actor=step.actor)
