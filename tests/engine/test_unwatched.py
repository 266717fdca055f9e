"""Guards that no test watched: each was taken out, and nothing noticed."""

import datetime as dt
import time

import pytest

from agentops import engine
from agentops.demo.world import STORIES
from agentops.steps import settling
from reconciliation.attempts import sent_attempts
from reconciliation.models import Attempt, Operation
from reconciliation.services import lookups, probe
from runs import clock
from runs.models import Run
from runs.services import principals
from runs.tools.billing.client import client
from runs.tools.registry import connection, tool
from tests.engine.conftest import World
from tests.engine.test_together import approved_runs, limit_the_month


def test_a_credit_given_by_hand_meanwhile_on_a_paid_invoice_is_seen_just_before_sending(world: World) -> None:
    """On a paid invoice nothing that the approval is bound to changes: only the workflow's own objection knows."""
    story = next(one for one in STORIES if one.ticket == "CS-8812")
    world.sandbox.pay(world.named(story.invoice))
    run = world.approved()
    effect = world.request(run).proposal.effect
    assert effect["balance_minor"] == effect["amount_minor"] == "120000"
    with client(connection("billing")) as billing:
        billing.v1.credit_notes.create(
            {
                "invoice": effect["invoice_id"],
                "amount": 120_000,
                "credit_amount": 120_000,
                "metadata": {"incident": effect["incident"]},
            }
        )
    run = world.work(run)
    assert world.credits() == [] and not Operation.objects.filter(run=run).exists()
    assert run.state == "needs_person", run.outcome


def test_a_limit_lowered_below_what_is_used_holds_at_once(world: World) -> None:
    limit_the_month(500_000)
    runs = approved_runs(world, 3)
    for run in runs[:2]:
        assert world.work(run).state == "completed"
    limit_the_month(130_000)
    last = world.work(runs[2])
    assert sum(one["amount_minor"] for one in world.credits()) == 240_000
    assert (last.state, last.person_code) == ("needs_person", "over_limit")


def test_an_absence_proved_before_the_newest_attempt_fails_nothing(world: World) -> None:
    """Between the proof and its use another worker has sent it, as the resend rule lets it."""
    run = world.unknown("timeout_without_effect")
    operation = world.credit(run)
    create = tool(operation.tool)
    [first] = sent_attempts(operation=operation)
    proved = first.send_before + create.contract.call_limit + create.contract.settling
    while clock.now() <= proved:
        time.sleep(0.05)
    seen = probe.ask(operation=operation, connector=create, actor=principals.system())
    assert (seen.finding, seen.conclusive) == ("absent", True)
    world.fault("execute_and_timeout")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("runs.retry.backoff", lambda **_: dt.timedelta(hours=1))
        patch.setattr(settling, "ask", lambda **_: seen)  # the other worker had the same word
        Operation.objects.filter(run=run).update(next_probe_at=clock.ClockTimestamp())
        Run.objects.filter(pk=run.pk).update(wake_at=clock.ClockTimestamp())
        world.work(run, until=lambda one: Attempt.objects.filter(operation=operation, number=2, result="ambiguous"))
    assert len(world.credits()) == 1 and world.credit(run).state == "unknown"
    failed = lookups.fail_as_absent(
        operation_id=operation.pk, contract=create.contract, code="absent", actor=principals.system()
    )
    assert not failed and world.credit(run).state == "unknown"


def test_a_wake_that_was_met_is_over(world: World) -> None:
    """Else the run would be due again the moment it is parked, for good."""
    run = world.work(world.start())
    Run.objects.filter(pk=run.pk).update(woken=True, wake_at=clock.ClockTimestamp())
    assert engine.advance(run_id=run.pk)
    run.refresh_from_db()
    assert run.state == "awaiting_approval" and run.wake_at is not None and run.wake_at > clock.now()
