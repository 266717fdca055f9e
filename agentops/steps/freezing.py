"""Holding a run under a freeze: at the next boundary, held by nothing, until the freeze is lifted."""

from agentops.steps import awaiting, cancelling
from agentops.steps.base import Next, Step, committing, park
from approvals import freezes
from approvals.models import ApprovalRequest
from approvals.models.request import RequestState
from reconciliation.models import Operation
from reconciliation.models.operation import SETTLED
from runs import record
from runs.models import Run
from runs.models.run import RunState

# where an action is in hand that a freeze of its tool would stop
IN_HAND = (RunState.AUTHORISING, RunState.AWAITING_APPROVAL, RunState.EXECUTING)
STANDS = (RequestState.OPEN, RequestState.APPROVED)


def hold(step: Step) -> Next | None:
    """Park the run if a freeze holds what it would do next; None lets it go on. Asked only while something is frozen.

    What is in flight is settled and asked about as always, an answer that has come is taken, and what is overdue
    expires: an approval is good no longer than it was said.
    """
    if freezes.over(workflow=step.run.workflow, tool=_tool_in_hand(step, step.run)) is None:
        return None
    if cancelling.in_flight(step.run) or awaiting.is_overdue(step.run):
        return None
    with committing(step.lease, "run.advanced") as run:
        found = freezes.over(workflow=run.workflow, tool=_tool_in_hand(step, run), lock=True)
        if found is None:
            return None
        asked = ApprovalRequest.objects.filter(run=run).order_by("-created_at").first()
        is_open = asked is not None and asked.state == RequestState.OPEN
        if run.state == RunState.AWAITING_APPROVAL and asked is not None and asked.state not in STANDS:
            return None
        if run.frozen_by != found.pk:
            record.append(run=run, kind="run.frozen", actor=step.actor, freeze=str(found.pk), why=found.words)
        until = asked.valid_until if asked is not None and is_open else None
        return park(run, until=until, waits_for=found.words, frozen_by=found.pk)


def _tool_in_hand(step: Step, run: Run) -> str:
    """The tool of the action that the run is about to carry out; empty when there is none, or it is settled."""
    if run.state not in IN_HAND:
        return ""
    proposal = step.proposal()
    settled = Operation.objects.filter(proposal=proposal, state__in=SETTLED).exists()
    return "" if settled else proposal.tool
