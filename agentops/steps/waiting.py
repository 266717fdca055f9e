"""Waiting for what a workflow asked for, and for a worker that knows the run's workflow."""

import datetime as dt

from agentops.reasons import Reason
from agentops.starting import BadInput, start_workflow
from agentops.steps.base import Next, Step, committing, hand_over, park, wait
from agentops.workflows.base import Event, OtherRun, StartedRun, Timer, WaitFor
from agentops.workflows.registry import UnknownWorkflow
from runs import clock, faultpoints, leases, transitions, waiting
from runs.models import Run, Wait
from runs.models.run import RunState
from runs.services import principals, waits

SOONEST, LATEST = dt.timedelta(seconds=1), dt.timedelta(minutes=1)
KNOWS = "a worker that knows"


def begin_wait(run: Run, *, asked: WaitFor, step: Step) -> Next:
    """Write down what the locked run waits for and let go of it. A person has it when nothing could ever come."""
    on = asked.on
    try:
        if isinstance(on, Timer):
            made = waiting.begin(run=run, key=asked.key, kind=Wait.Kind.TIMER, within=on.after, actor=step.actor)
        elif isinstance(on, Event):
            if on.name not in step.workflow.events:
                raise waiting.Impossible(f"{step.workflow.title} knows no event {on.name!r}")
            made = waiting.begin(
                run=run, key=asked.key, kind=Wait.Kind.EVENT, event=on.name, within=asked.within, actor=step.actor
            )
        else:
            made = _begin_run(run, asked, on, step)
    except waiting.Impossible as problem:
        return hand_over(run, code=Reason.CANNOT_WAIT, reason=str(problem), actor=step.actor)
    until, waits_for = waiting.due(wait=made), made.words
    faultpoints.reach("wait.begun")
    return wait(run, resume_to=RunState.GATHERING, until=until, waits_for=waits_for, actor=step.actor)


def _begin_run(run: Run, asked: WaitFor, on: StartedRun | OtherRun, step: Step) -> Wait:
    return waiting.begin(
        run=run,
        key=asked.key,
        kind=Wait.Kind.RUN,
        starts={"workflow": on.workflow, "input": on.data} if isinstance(on, StartedRun) else None,
        other_id=on.run_id if isinstance(on, OtherRun) else None,
        within=asked.within,
        actor=step.actor,
    )


def resume(step: Step) -> Next:
    """A wait may be over: go on where it was going, or park again if it was woken too early."""
    found = waiting.open_wait(run=step.run)
    if found is None:  # it was held by time or a dependency, and tries again
        with committing(step.lease, "run.advanced") as run:
            transitions.move(run=run, to=RunState(run.resume_to), actor=step.actor)
        return Next.GO_ON
    if found.starts is not None and found.other is None:
        return _start(step, found)
    with committing(step.lease, "wait.looked") as run:
        made = Wait.objects.select_related("other").get(pk=found.pk)
        if not waiting.look(run=run, wait=made, actor=step.actor):
            return park(run, until=made.due_at, waits_for=made.words)
        why = f"{made.words}: {made.get_result_display().lower()}"
        transitions.move(run=run, to=RunState.GATHERING, actor=step.actor, why=why)
    return Next.GO_ON


def _start(step: Step, made: Wait) -> Next:
    """Start the run that is waited for, then note which it is. The wait's own id makes it one run, however often a
    worker dies in between."""
    assert made.starts is not None
    try:
        started = start_workflow(
            name=made.starts["workflow"],
            data=made.starts["input"],
            initiator=step.run.initiator,
            start_key=f"wait:{made.pk}",
        )
    except UnknownWorkflow as problem:
        return for_a_worker(step.lease, why=str(problem))
    except BadInput as problem:
        return _cannot(step, f"{made.starts['workflow']} does not take this input: {problem}")
    faultpoints.reach("wait.started")
    try:
        with committing(step.lease, "wait.linked") as run:
            waiting.link(run=run, wait=made, other=started.run, actor=step.actor)
    except waiting.Impossible as problem:
        return _cannot(step, str(problem))
    return Next.GO_ON


def _cannot(step: Step, reason: str) -> Next:
    with committing(step.lease, "run.advanced") as run:
        return hand_over(run, code=Reason.CANNOT_WAIT, reason=reason, actor=step.actor)


def for_a_worker(lease: leases.Lease, *, why: str) -> Next:
    """Let go of a run that this worker does not know how to advance: visibly, and it goes on by itself as soon as a
    worker that does takes it. The pauses grow with the time that it has waited."""
    actor = principals.system()
    with committing(lease, "run.advanced") as run:
        waits_for = f"{KNOWS} workflow {run.workflow} v{run.workflow_version}"
        now = clock.now()
        if run.state == RunState.QUEUED:
            transitions.move(run=run, to=RunState.GATHERING, actor=actor)
        until = now + min(max((now - run.state_since) / 4, SOONEST), LATEST)
        if run.state in (RunState.GATHERING, RunState.DECIDING, RunState.EXECUTING):
            resume_to = RunState(run.state)
            return wait(run, resume_to=resume_to, until=until, waits_for=waits_for, why=why, actor=actor)
        return park(run, until=until, waits_for=waits_for, waits_on=waits.A_WORKER)
