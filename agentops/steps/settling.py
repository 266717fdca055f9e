"""Finding out what really happened: ask the other side by the operation's identity, and send again only by the rule."""

import datetime as dt

from django.db.models import Max

from agentops.reasons import Reason
from agentops.steps.base import Next, Step, committing, park
from agentops.steps.executing import attempt
from reconciliation.attempts import seen_recorded, sent_attempts
from reconciliation.classification import Resend, resend
from reconciliation.models import Case, Observation, Operation
from reconciliation.models.case import UNRESOLVED
from reconciliation.models.operation import SETTLED, OperationState
from reconciliation.services import answers, gates, lookups, processes
from reconciliation.services.probe import ask
from runs import clock, transitions, words
from runs.models import Proposal
from runs.models.run import RunState
from runs.tools.base import Tool
from runs.tools.registry import tool

S = OperationState
ASK_AT_LEAST = dt.timedelta(minutes=5)


def settle_step(step: Step) -> Next:
    proposal = step.proposal()
    operation = Operation.objects.get(proposal=proposal)
    if operation.is_settled:
        with committing(step.lease, "run.advanced") as run:
            operation.refresh_from_db()  # it may have been put right since
            other_side = words.system(operation.system)
            why = f"{other_side}: {operation.get_state_display().lower()}, by {operation.settled_words}"
            transitions.move(run=run, to=RunState.EXECUTING, actor=step.actor, why=why)
        return Next.GO_ON
    processes.record_ended()
    answers.close_dead_attempt(operation_id=operation.pk, claimer=processes.current(), actor=step.actor)
    with committing(step.lease, "run.advanced") as run:
        operation.refresh_from_db()
        due = operation.next_probe_at
        if due is not None and due > clock.now() and not operation.is_settled:
            return park(run, until=due, waits_for=_waits_for(operation))
    step.lease.run = None  # asking takes its time, and changes the run
    connector = tool(operation.tool)
    gate = gates.may_read(systems=[connector.contract.system])
    if isinstance(gate, gates.Wait) and not _asked_too_long_ago(operation):
        return _wait_to_ask(step, operation, gate)
    observation = ask(operation=operation, connector=connector, actor=step.actor)
    if observation.finding != "absent":
        return Next.GO_ON
    return _after_absence(step, proposal, operation, connector, observation)


def _after_absence(
    step: Step, proposal: Proposal, operation: Operation, connector: Tool, observation: Observation
) -> Next:
    """None recorded: send again if the resend rule and every check allow it; fail it if absence is proved; else ask
    again later."""
    attempts = sent_attempts(operation=operation)
    rule = resend(
        contract=connector.contract,
        attempts=attempts,
        absent_at=observation.asked_at,
        now=clock.now(),
        seen=seen_recorded(operation=operation),
    )
    went = Next.GO_ON
    if rule != Resend.NO and step.run.cancel_requested_at is None:
        went = attempt(step, proposal, connector, resend=rule)
        if went == Next.HELD:  # a shared limit: it is asked and sent later, and not given up meanwhile
            return went
        operation.refresh_from_db()
        if operation.state != S.UNKNOWN or operation.observations.latest("at").pk != observation.pk:
            return went  # it was sent
    if observation.conclusive:
        code = Reason.GAVE_UP if len(attempts) >= connector.contract.max_attempts else "absent"
        lookups.fail_as_absent(
            operation_id=operation.pk, contract=connector.contract, code=code, actor=step.actor
        )  # fmt: skip
    return went


def _asked_too_long_ago(operation: Operation) -> bool:
    """A circuit spreads the questions and starves none: each operation is asked for at least this often."""
    asked = operation.observations.filter(source="probe").aggregate(last=Max("asked_at"))["last"]
    since = asked or operation.unknown_since
    return since is not None and clock.now() - since > ASK_AT_LEAST


def _wait_to_ask(step: Step, operation: Operation, gate: gates.Wait) -> Next:
    """The system does not answer now: this question waits in the line. Nothing was asked, so nothing is counted."""
    with committing(step.lease, "run.advanced") as run:
        if Operation.objects.filter(pk=operation.pk, state__in=SETTLED).exists():
            return Next.GO_ON
        case = _case(operation)
        waits_for = f"an admin to settle {case.label}; {gate.waits_for}" if case is not None else gate.waits_for
        park(run, until=gate.until, waits_for=waits_for, waits_on=gate.waits_on)
        return Next.HELD


def _case(operation: Operation) -> Case | None:
    return Case.objects.filter(UNRESOLVED, operation=operation).order_by("number").first()


def _waits_for(operation: Operation) -> str:
    case = _case(operation)
    if case is not None:
        return f"an admin to settle {case.label}"
    return f"{words.system(operation.system)} to confirm"
