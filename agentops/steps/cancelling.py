"""A cancel that was asked for: what is in flight is settled first, the rest never starts, what was done stays."""

from agentops.steps.base import Next, abandon_unsent, close_requests, committing, done_so_far
from agentops.workflows.base import Done
from agentops.workflows.registry import UnknownWorkflow, workflow
from reconciliation import reversing
from reconciliation.models import Operation, Reversal
from reconciliation.models.operation import IN_FLIGHT, OperationState
from reconciliation.queries import disputes
from runs import leases, transitions, words
from runs.models import Principal, Run
from runs.models.run import RunState
from runs.money import Money


def in_flight(run: Run) -> bool:
    return Operation.objects.filter(run=run, state__in=IN_FLIGHT).exists()


def cancel(lease: leases.Lease, *, system: Principal) -> Next:
    """End the run. The caller has seen that nothing is in flight; it is looked at again under the lock."""
    with committing(lease, "run.advanced") as run:
        if in_flight(run):
            return Next.GO_ON
        actor = run.cancelled_by or system
        close_requests(run, why=f"the run was cancelled: {run.cancel_reason}", actor=actor)
        abandon_unsent(run, why="the run was cancelled", actor=actor)
        why = f"The run was cancelled: {run.cancel_reason}"
        undoing = reversing.propose_all(run=run, origin=reversing.Origin.CANCELLED, principal=actor, reason=why)
        follows = _to_be_undone(run, undoing)
        outcome = f"Cancelled by {actor}: {run.cancel_reason}. {_done(run)} {follows}".strip()
        transitions.move(run=run, to=RunState.CANCELLED, actor=actor, why=run.cancel_reason, outcome=outcome)
    return Next.PARK


def _done(run: Run) -> str:
    return what_stays(run) or "Nothing was done."


def what_stays(run: Run) -> str:
    """What the run has done in the world, which stays however it ends; empty when it has done nothing."""
    done = done_so_far(run)
    told = [f"{one.tool} {one.reference}{_evidence(one)}" for one in done if not one.reversed]
    said = [f"Done before, and staying: {'; '.join(told)}."] if told else []
    if undone := [one.reference for one in done if one.reversed]:
        said.append(f"Done before, and reversed since: {'; '.join(undone)}.")
    for operation in Operation.objects.filter(run=run, state=OperationState.SUCCEEDED):
        if other := operation.other_reference:
            said.append(f"{words.system(operation.system)} has it twice: {other} has to be reversed there.")
    said += [case.dispute for case in disputes().filter(operation__run=run)]
    return " ".join(said)


def left_by_failing(run: Run, *, principal: Principal, reason: str) -> str:
    """The same of a run that is given up as failed. Where its workflow recovers backward, the undoing of what it did is
    proposed now."""
    stays = what_stays(run)
    try:
        recovery = workflow(run.workflow, run.workflow_version).recovery
    except UnknownWorkflow:
        return stays
    if recovery == "forward":
        return stays
    why = f"The run was given up: {reason}"
    undoing = reversing.propose_all(run=run, origin=reversing.Origin.FAILED, principal=principal, reason=why)
    return f"{stays} {_to_be_undone(run, undoing)}".strip()


def _to_be_undone(run: Run, undoing: list[Reversal]) -> str:
    return f"{reversing.in_words(reversals=undoing)} {reversing.left_in_words(run=run)}".strip()


def _evidence(done: Done) -> str:
    """How an admin settled it, where nobody else has confirmed it, and the amount where it is not the one sent."""
    if not done.by_evidence:
        return ""
    sent = done.effect.get("amount_minor", "")
    if done.real_minor is None or str(done.real_minor) == sent:
        return " (settled by an admin's evidence)"
    return f" (settled at {Money(done.real_minor, done.effect['currency'])} by an admin's evidence)"
