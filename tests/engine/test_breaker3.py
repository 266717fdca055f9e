"""What a reviewer broke in waits, freezes, acts on many runs and limits. Each test says what should hold."""

import datetime as dt
import time
from typing import Any

import psycopg
import pytest
from django.db import IntegrityError, OperationalError

from agentops import acts, batches, engine
from agentops.pages.operating import ACTS
from agentops.relay import Relay
from agentops.steps import authorising, cancelling
from approvals.models import Freeze
from approvals.services import freezing
from reconciliation.models import Operation
from reconciliation.services import execute, holds
from runs import clock, retry
from runs.models import Batch, BatchItem, Event, Principal, Run
from runs.services import operate, principals
from tests.engine.conftest import World
from tests.engine.test_together import approved_runs
from tests.engine.test_versions import only


@pytest.fixture(autouse=True)
def quiet_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentops.relay.advance.apply_async", lambda args, retry: None)


def priya(world: World) -> Principal:
    return principals.of_user(user=world.people["priya"])


def batch_of(world: World, runs: list[Run], act: str = "pause") -> Batch:
    chosen = Run.objects.filter(pk__in=[run.pk for run in runs])
    found = batches.start(act=act, runs=chosen, chosen="ticked", principal=priya(world), reason="x").batch
    assert found is not None
    return found


def due(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(wake_at=clock.ClockTimestamp())


def test_a_run_with_a_person_does_not_say_that_it_waits_to_be_resumed(world: World) -> None:
    run = world.work(world.start("CS-8836"))
    assert run.state == "needs_person"
    assert operate.claim(run_id=run.pk, principal=priya(world)).ok
    assert acts.perform(act="pause", run_id=run.pk, principal=priya(world), reason="x").ok
    engine.advance(run_id=run.pk)
    assert acts.perform(act="resume", run_id=run.pk, principal=priya(world), reason="x").ok
    engine.advance(run_id=run.pk)
    run.refresh_from_db()
    assert (run.state, run.paused_at, run.waits_for) == ("needs_person", None, f"{priya(world)} to go on")


def test_who_waits_longest_for_a_resource_is_next(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A newcomer that takes it first does not send the woken one to the end of the line."""
    monkeypatch.setattr(execute, "RESOURCE_RETRY", dt.timedelta(minutes=10))
    first, longest, second, newcomer = approved_runs(world, 4)

    def loses_track(run: Run) -> None:
        world.fault("execute_and_timeout")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(retry, "backoff", lambda **_: dt.timedelta(hours=1))
            world.work(run, until=lambda one: one.state == "outcome_unknown" and one.lease_until is None)

    def settles(run: Run) -> None:
        due(run)
        Operation.objects.filter(run=run, state="unknown").update(next_probe_at=clock.ClockTimestamp())
        world.work(run)

    loses_track(first)
    for run in (longest, second):
        world.work(run, until=lambda one: one.state == "waiting")
        assert run.waits_on.startswith("resource:")
    settles(first)
    assert holds.wake_waiting() == 1
    longest.refresh_from_db()
    assert longest.wake_at is not None and longest.wake_at <= clock.read()
    loses_track(newcomer)  # comes in between
    longest = world.work(longest, until=lambda one: one.state == "waiting")
    assert longest.waits_on.startswith("resource:")
    settles(newcomer)
    assert holds.wake_waiting() == 1
    longest.refresh_from_db(), second.refresh_from_db()
    now = clock.read()
    assert longest.wake_at is not None and second.wake_at is not None
    assert longest.wake_at <= now < second.wake_at


def test_trying_again_says_nothing_false_of_a_run_that_waits_for_its_own_timer(world: World) -> None:
    run = world.work(world.scripted("t", {"key": "quiet", "timer": 900_000}), until=lambda o: o.state == "waiting")
    assert "waits for a time goes on now" in ACTS["again"].does
    result = acts.perform(act="again", run_id=run.pk, principal=priya(world), reason="x")
    for _ in range(3):
        engine.advance(run_id=run.pk)
    run.refresh_from_db()
    assert not result.ok or run.state != "waiting", (result.code, ACTS["again"].done, run.waits_for)


def test_a_circuit_is_not_closed_by_a_reading_that_never_asked_its_system(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentops.workflows.registry import WORKFLOWS
    from reconciliation.models import Dependency
    from tests.engine.known import Scripted

    class Mails(Scripted):
        tools = ("billing.create_credit",)

    monkeypatch.setitem(WORKFLOWS, "scripted", {"1": Mails("1")})
    now = clock.read()
    Dependency.objects.create(name="billing", failures=5, open_since=now, ask_at=now, last_failure="No answer.")
    asked = len(world.sandbox.requests())
    world.work(world.scripted("mails"), until=lambda one: one.is_over)
    assert len(world.sandbox.requests()) == asked  # nobody asked billing anything
    assert Dependency.objects.get(pk="billing").open_since is not None


def test_what_waits_for_a_source_does_not_say_that_it_waits_for_a_lifted_freeze(world: World, settings: Any) -> None:
    from runs import transitions
    from django.db import transaction

    run = world.work(world.start())
    frozen = freezing.freeze(scope="all", principal=priya(world), reason="x").freeze
    assert frozen is not None
    due(run)
    world.work(run, until=lambda one: one.frozen_by is not None)
    with transaction.atomic():  # somebody opens the request's page
        transitions.want_facts(run=Run.objects.select_for_update().get(pk=run.pk))
    world.work(run, until=lambda one: one.lease_until is None)
    assert freezing.lift(freeze_id=frozen.pk, principal=priya(world), reason="x").ok
    settings.HELPDESK_URL = "http://127.0.0.1:9"  # the relay has not come yet; a worker that was hinted before does
    due(run)
    engine.advance(run_id=run.pk)
    run.refresh_from_db()
    assert run.state == "awaiting_approval" and run.frozen_by is None
    assert "freeze" not in run.waits_for, run.waits_for


def test_a_person_may_try_again_what_no_freeze_holds_any_more(world: World) -> None:
    run = world.start("CS-8815")
    frozen = freezing.freeze(scope="all", principal=priya(world), reason="x").freeze
    assert frozen is not None
    world.work(run, until=lambda one: one.frozen_by is not None)
    assert freezing.lift(freeze_id=frozen.pk, principal=priya(world), reason="x").ok
    result = acts.perform(act="again", run_id=run.pk, principal=priya(world), reason="the relay is dead")
    assert result.ok, result
