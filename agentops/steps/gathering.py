"""Reading the facts, and what follows from them."""

import datetime as dt

from django.conf import settings

from agentops.asked import people_to_decide
from agentops.reasons import Reason
from agentops.steps.base import (
    Next,
    Step,
    committing,
    done_so_far,
    go_on_at_once,
    hand_over,
    park,
    settled_so_far,
    wait,
)
from agentops.steps.looking import held_up
from agentops.steps.waiting import begin_wait
from agentops.workflows.base import AskAgent, Complete, Draft, Follow, HandOver, WaitFor
from approvals import freezes
from approvals.models import ApprovalRequest
from approvals.models.request import RequestState
from reconciliation.services import gates
from runs import clock, keeping, record, retry, transitions, waiting
from runs.models import Evidence, ModelCall, Principal, Proposal, Run
from runs.models.run import RunState
from runs.texts import one_line
from runs.tools.base import NoSuchThing, Unreachable
from runs.tools.http import noting_asked
from runs.tools.registry import contract


def begin(step: Step) -> Next:
    with committing(step.lease, "run.advanced") as run:
        transitions.move(run=run, to=RunState.GATHERING, actor=step.actor)
    return Next.GO_ON


def read_facts(step: Step, *, resume_to: RunState, tool: str = "") -> dict[str, Evidence] | Next:
    """Read everything the workflow asks for, by kind; it is stored by the commit that follows from it. When a source
    is down the run waits and goes on at `resume_to`; when a thing does not exist a person has it. With `tool` named,
    nothing is read for a call that could not be made now."""
    systems = sorted({contract(name).system for name in step.workflow.tools})
    go = gates.may_read(systems=systems, tool=tool)
    if isinstance(go, gates.Wait):
        return wait_for_gate(step, go, resume_to=resume_to)
    asked_at, step.hand.quiet = go.now, go.quiet
    try:
        with noting_asked() as asked:
            read = step.workflow.gather(data=step.run.input)
        answered = asked | {one.source for one in read}  # the others were not asked, so nothing is known of them
        gates.heard_reading(systems=sorted(answered.intersection(systems)), go=go, problem=None)
        gates.end_trials(names=sorted(go.troubled - answered))
        readings = [*read, *waiting.readings(run=step.run)]
    except Unreachable as problem:
        gates.heard_reading(systems=systems, go=go, problem=problem)
        return _wait_for_source(step, resume_to, str(problem))
    except NoSuchThing as problem:
        gates.end_trials(names=sorted(go.troubled))
        if step.run.state == RunState.OUTCOME_UNKNOWN:  # settling comes first; until then nobody takes it over
            return _wait_for_source(step, resume_to, str(problem))
        with committing(step.lease, "run.advanced") as run:
            return hand_over(run, code=Reason.NOT_FOUND, reason=str(problem), actor=step.actor)
    return keeping.as_evidence(run=step.run, readings=readings, retrieved_at=asked_at)


def keep_facts(step: Step, run: Run, facts: dict[str, Evidence]) -> None:
    """Store what was read with the locked run, and what the run is called since."""
    run.customer = one_line(text=step.workflow.customer(facts=facts), limit=300)
    if run.customer:
        run.title = one_line(text=f"{step.workflow.title} for {run.customer}", limit=300)
    named = ("customer", "title", "refusals")
    keeping.keep_evidence(run=run, evidence=list(facts.values()), actor=step.actor, saving=named)
    step.hand.facts = facts


def _wait_for_source(step: Step, resume_to: RunState, problem: str) -> Next:
    with committing(step.lease, "run.advanced") as run:
        tries = run.tries_in_row + 1
        until = clock.now() + retry.backoff(attempt=tries, base=2, cap=120)
        record.append(run=run, kind="evidence.failed", actor=step.actor, detail=problem, tries=tries)
        run.tries_in_row = tries
        run.save(update_fields=["tries_in_row"])
        if run.state in (RunState.GATHERING, RunState.DECIDING, RunState.EXECUTING):
            waits_for = f"a source to answer: {problem}"
            return wait(
                run, resume_to=resume_to, until=until, waits_for=waits_for, why=problem, actor=step.actor
            )  # fmt: skip
        until, waits_for = _asked_meanwhile(run, until)
        return park(run, until=until, waits_for=waits_for or run.waits_for)


def wait_for_gate(step: Step, gate: gates.Wait, *, resume_to: RunState) -> Next:
    """A dependency may not be called now: wait in the line, visibly. It is no try, and concludes nothing."""
    with committing(step.lease, "run.advanced") as run:
        if run.state in (RunState.GATHERING, RunState.DECIDING, RunState.EXECUTING):
            wait(
                run, resume_to=resume_to, until=gate.until, waits_for=gate.waits_for, waits_on=gate.waits_on,
                why=gate.waits_for, actor=step.actor,
            )  # fmt: skip
        elif run.state == RunState.OUTCOME_UNKNOWN:
            park(run, until=gate.until, waits_for=gate.waits_for, waits_on=gate.waits_on)
        else:
            until, waits_for = _asked_meanwhile(run, gate.until)
            park(run, until=until, waits_for=waits_for or gate.waits_for)
    return Next.HELD


def _asked_meanwhile(run: Run, until: dt.datetime) -> tuple[dt.datetime, str]:
    """Not past the deadline of what is asked, since a source that is down holds up no expiry; and who is asked."""
    asked = ApprovalRequest.objects.filter(run=run, state=RequestState.OPEN).select_related("proposal").first()
    if asked is None:
        return until, ""
    return min(until, freezes.answer_by(request=asked, run=run, now=clock.now())), people_to_decide(asked)


def gather(step: Step) -> Next:
    facts = read_facts(step, resume_to=RunState.GATHERING)
    if isinstance(facts, Next):
        return facts
    with committing(step.lease, "run.gathered") as run:
        settled = settled_so_far(run)
        done = done_so_far(run, settled=settled)
        follow = step.workflow.follow(data=run.input, facts=facts, done=done)
        run.refusals = []
        keep_facts(step, run, facts)
        # where nothing was done, what comes next tells nobody of it, and is looked at before it is sent; but what was
        # called done, and by a correction was not, is done anew only if a person sends the run on
        to_look = done or any(one.corrected for one in settled) or isinstance(follow, Complete)
        if to_look and (stop := held_up(run, actor=step.actor)) is not None:
            return stop
        went = go_on(run, follow=follow, facts=facts, step=step)
        return go_on_at_once(step, run) if went == Next.GO_ON else went


def go_on(run: Run, *, follow: Follow, facts: dict[str, Evidence], step: Step) -> Next:
    """Take the locked run to what the workflow says comes next. The caller has looked (`held_up`) that what it has
    done is not in doubt."""
    if isinstance(follow, AskAgent):
        transitions.move(run=run, to=RunState.DECIDING, actor=step.actor)
    elif isinstance(follow, Draft):
        step.hand.proposal = propose(run, draft=follow, facts=facts, proposer=run.run_as, model_call=None)
        transitions.move(run=run, to=RunState.AUTHORISING, actor=step.actor)
    elif isinstance(follow, HandOver):
        return hand_over(run, code=follow.code, reason=follow.reason, actor=step.actor)
    elif isinstance(follow, WaitFor):
        return begin_wait(run, asked=follow, step=step)
    else:
        if run.state == RunState.GATHERING:
            transitions.move(run=run, to=RunState.DECIDING, actor=step.actor)
        transitions.move(
            run=run, to=RunState.COMPLETED, actor=step.actor, why=follow.outcome, outcome=follow.outcome
        )  # fmt: skip
        return Next.PARK
    return Next.GO_ON


def propose(
    run: Run, *, draft: Draft, facts: dict[str, Evidence], proposer: Principal, model_call: ModelCall | None
) -> Proposal:
    return keeping.keep_proposal(
        run=run,
        installation=settings.INSTALLATION,
        step=draft.step,
        action=draft.action,
        contract=contract(draft.action.tool),
        rests_on=[facts[kind] for kind in draft.rests_on],
        workings=draft.workings,
        rationale=draft.rationale,
        proposer=proposer,
        model_call=model_call,
    )
