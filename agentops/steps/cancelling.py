"""A cancel that was asked for: what is in flight is settled first, the rest never starts, what was done stays."""

from agentops.steps.base import Next, Step, abandon_unsent, close_requests, committing, done_so_far
from reconciliation.models import Operation
from reconciliation.models.operation import OperationState
from runs import transitions
from runs.models.run import RunState

S = OperationState


def in_flight(step: Step) -> bool:
    return Operation.objects.filter(run=step.run, state__in=[S.SENDING, S.UNKNOWN, S.ACCEPTED]).exists()


def cancel(step: Step) -> Next:
    """End the run. The caller has seen that nothing is in flight; it is looked at again under the lock."""
    with committing(step.lease, "run.advanced") as run:
        if in_flight(step):
            return Next.GO_ON
        actor = run.cancelled_by or step.actor
        close_requests(run, why=f"the run was cancelled: {run.cancel_reason}", actor=actor)
        abandon_unsent(run, why="the run was cancelled", actor=actor)
        done = done_so_far(run)
        before = "; ".join(f"{one.tool} {one.reference}" for one in done)
        outcome = f"Cancelled by {actor}: {run.cancel_reason}. " + (
            f"Done before, and staying: {before}." if done else "Nothing was done."
        )
        transitions.move(run=run, to=RunState.CANCELLED, actor=actor, why=run.cancel_reason, outcome=outcome)
    return Next.PARK
