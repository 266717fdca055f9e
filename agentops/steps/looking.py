"""Before a run goes on: what was told about its settled operations is looked up, and a dispute is a person's."""

import datetime as dt

from agentops.reasons import Reason
from agentops.steps.base import Next, Step, committing, hand_over, park, wait
from reconciliation import late, reversing
from reconciliation.models import Operation
from reconciliation.models.operation import SETTLED
from reconciliation.services import looks
from runs import clock, hot, record, words
from runs.models import Event, Principal, Run
from runs.models.run import RunState

_SETTLED = hot.Query(lambda run: reversing.annotated(Operation.objects.filter(run=run, state__in=SETTLED)))


def held_up(run: Run, *, actor: Principal) -> Next | None:
    """Why the locked run may not go on to tell of what it did: it has to be looked up first, or it is in dispute, was
    corrected or is being undone, and a person has the run. None when nothing speaks against it."""
    settled = _SETTLED(run=run.pk)
    if any(late.is_unasked(one) for one in settled):
        return Next.LOOK
    disputed = late.disputed(settled)
    if not disputed and (changed := _corrected(run, settled)):
        return hand_over(run, code=Reason.IN_DISPUTE, reason=f"{changed}; nothing follows on it", actor=actor)
    if not disputed:
        undone = reversing.undone_in_words(operations=settled)
        if not undone:
            return None
        return hand_over(run, code=Reason.REVERSED, reason=f"{undone}; nothing follows on it", actor=actor)
    reason = late.disputes_in_words(operations=disputed)
    return hand_over(run, code=Reason.IN_DISPUTE, reason=reason, actor=actor)


def _corrected(run: Run, settled: list[Operation]) -> str:
    """What was put right since the action in hand was proposed, or, where it has none, since a person sent it on: a
    worker that reads or decides anew, after a wait or otherwise, has not asked anybody."""
    if not any(one.corrected for one in settled):
        return ""
    at = _sent_on(run)
    if run.state == RunState.EXECUTING:
        at = run.proposals.latest("number").created_at
    return late.corrected_since(operations=settled, at=at)


def _sent_on(run: Run) -> dt.datetime:
    """When a person sent the run on last; if nobody has, when it was started."""
    moved = Event.objects.filter(
        stream=record.stream_of(run_id=run.pk), kind="run.state", data__source=RunState.NEEDS_PERSON
    )
    last = moved.filter(actor__kind=Principal.Kind.PERSON).order_by("-seq").first()
    return run.created_at if last is None else last.at


def look(step: Step) -> Next:
    """Look up what is due; while the other side cannot be asked the run waits for it."""
    for operation in _unasked(step.run):
        looks.look(operation_id=operation.pk)
    with committing(step.lease, "run.advanced") as run:
        left = _unasked(run)
        if not left:
            return Next.GO_ON
        until = min(one.next_probe_at or clock.now() for one in left)
        waits_for = (
            f"{words.system(left[0].system)} to say what became of {left[0].external_reference or left[0].identity}"
        )
        if run.state in (RunState.GATHERING, RunState.DECIDING, RunState.EXECUTING):
            return wait(run, resume_to=RunState(run.state), until=until, waits_for=waits_for, actor=step.actor)
        return park(run, until=until, waits_for=waits_for)


def _unasked(run: Run) -> list[Operation]:
    settled = Operation.objects.filter(run=run, state__in=SETTLED, look_wanted_at__isnull=False)
    return [one for one in settled if late.is_unasked(one)]
