"""Signals from outside and pausing: before the wait, twice, late; and what goes on while nothing new begins."""

import pytest

from agentops import engine
from reconciliation.models import Operation
from runs.models import Run, Signal
from runs.services import operate, principals, signalling
from tests.engine.conftest import World


def told(world: World, run: Run, key: str = "doc-1", **payload: str) -> str:
    return signalling.send(
        run_id=run.pk, key=key, kind=signalling.DOCUMENT, payload=payload, sender=run.initiator
    ).code  # fmt: skip


def test_a_document_that_arrives_takes_the_run_on(world: World) -> None:
    run = world.work(world.start("CS-8836"))
    assert (run.state, run.person_code) == ("needs_person", "document_needed")
    assert run.wake_at is None
    before = run.evidence.latest("reading").reading
    assert told(world, run) == "stored"
    assert told(world, run) == "already"
    assert told(world, run, other="content") == "differs"
    engine.advance(run_id=run.pk)
    assert run.evidence.latest("reading").reading == before + 1
    assert [(one.result, one.applied_at is not None) for one in Signal.objects.filter(run=run)] == [("applied", True)]


def test_a_document_that_arrives_before_it_is_asked_for_is_not_lost(world: World) -> None:
    run = world.start("CS-8836")
    assert told(world, run) == "stored"
    run = world.work(run)
    engine.advance(run_id=run.pk)
    assert run.evidence.latest("reading").reading == 2
    run.refresh_from_db()
    assert (run.state, run.person_code) == ("needs_person", "document_needed")  # still not final: asked again, once
    assert engine.advance(run_id=run.pk) == 0


def test_a_signal_for_a_run_that_is_over_is_kept_and_changes_nothing(world: World) -> None:
    run = world.work(world.start("CS-8815"))
    assert run.state == "completed"
    assert told(world, run) == "over"
    assert Signal.objects.get(run=run).result == "the run was over"
    assert engine.advance(run_id=run.pk) == 0


def test_a_paused_run_sends_nothing_and_goes_on_when_resumed(world: World) -> None:
    priya = principals.of_user(user=world.people["priya"])
    run = world.work(world.start())
    assert operate.pause(run_id=run.pk, principal=priya, reason="  ").code == "reason_needed"
    assert operate.pause(run_id=run.pk, principal=priya, reason="month end").ok
    assert operate.pause(run_id=run.pk, principal=priya, reason="month end").code == "already_requested"
    assert world.vote(run).code == "approved"
    for _ in range(3):
        engine.advance(run_id=run.pk)
    run.refresh_from_db()
    assert (run.waits_for, run.wake_at) == ("a person to resume it", None)
    assert not Operation.objects.filter(run=run).exists() and not world.credits()
    assert operate.resume(run_id=run.pk, principal=priya, reason="done").ok
    assert operate.resume(run_id=run.pk, principal=priya, reason="done").code == "not_paused"
    assert world.work(run, until=lambda one: one.is_over).state == "completed"
    assert len(world.credits()) == 1


@pytest.mark.parametrize("mode", ["execute_and_timeout", "timeout_without_effect"])
def test_pausing_does_not_stop_the_settling_of_what_was_sent(world: World, mode: str) -> None:
    priya = principals.of_user(user=world.people["priya"])
    run = world.unknown(mode)
    assert operate.pause(run_id=run.pk, principal=priya, reason="wait").ok
    paused = "a person to resume it"
    run = world.work(run, until=lambda one: one.waits_for == paused or one.is_over, seconds=120)
    assert not run.is_over
    settled = Operation.objects.get(run=run, tool="billing.create_credit")
    assert settled.is_settled, settled.state
    assert operate.resume(run_id=run.pk, principal=priya, reason="go on").ok
    run = world.work(run)
    assert len(world.credits()) <= 1


def test_a_paused_run_can_be_cancelled(world: World) -> None:
    priya = principals.of_user(user=world.people["priya"])
    run = world.work(world.start())
    assert operate.pause(run_id=run.pk, principal=priya, reason="wait").ok
    engine.advance(run_id=run.pk)
    assert operate.cancel(run_id=run.pk, principal=priya, reason="no longer wanted").ok
    assert world.work(run, until=lambda one: one.is_over).state == "cancelled"
    assert world.request(run).state == "withdrawn"
