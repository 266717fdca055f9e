"""One run that is locked, frozen, refused or failing holds up no other, and loses nothing that was asked of it."""

import datetime as dt
import time
from typing import Any

import psycopg
import pytest
from django.db import IntegrityError, OperationalError, connection

from agentops import acts, batches, engine
from agentops.pages.operating import sentence
from agentops.relay import Relay
from agentops.steps import authorising, cancelling
from approvals.models import Freeze
from approvals.services import freezing
from runs import clock, retry
from runs.models import Batch, BatchItem, Event, Principal, Run
from runs.services import operate, principals
from tests.engine.conftest import World
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


def test_a_cancel_is_carried_out_although_its_run_kept_failing_for_a_while(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = world.work(world.start())
    assert operate.cancel(run_id=run.pk, principal=priya(world), reason="x").ok
    with monkeypatch.context() as patch:

        def away(*_: Any, **__: Any) -> None:
            raise RuntimeError("for a moment something is away")

        patch.setattr(cancelling, "close_requests", away)
        for _ in range(5):
            due(run)
            engine.advance(run_id=run.pk)
    for _ in range(3):  # all is well again
        Relay().run_once()
        Run.objects.filter(pk=run.pk, wake_at__isnull=False).update(wake_at=clock.ClockTimestamp())
        engine.advance(run_id=run.pk)
    run.refresh_from_db()
    print(run.state, run.wake_at, run.waits_for, run.lease_until, run.claims_in_row)
    assert run.state == "cancelled"


def test_a_cancel_of_a_run_that_a_person_has_is_carried_out_although_it_kept_failing(
    world: World, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.LEASE_SECONDS = 1
    run = world.work(world.start("CS-8836"))
    assert run.state == "needs_person"
    assert operate.cancel(run_id=run.pk, principal=priya(world), reason="x").ok
    with monkeypatch.context() as patch:

        def away(*_: Any, **__: Any) -> None:
            raise RuntimeError("for a moment something is away")

        patch.setattr(cancelling, "close_requests", away)
        for _ in range(5):
            due(run)
            engine.advance(run_id=run.pk)
    due(run)
    for _ in range(4):  # all is well again
        engine.advance(run_id=run.pk)
        time.sleep(1.1)
    run.refresh_from_db()
    print(run.state, run.wake_at, run.waits_for, run.lease_until, run.claims_in_row)
    assert run.state == "cancelled"


def test_the_relay_does_not_spin_on_a_run_whose_worker_does_not_know_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of another release waits for a run that has ended: the pauses grow, whoever looks."""
    only(monkeypatch, "1")
    other = world.work(world.scripted("other", {"key": "t", "timer": 900_000}), until=lambda o: o.state == "waiting")
    run = world.work(world.scripted("waiter", {"key": "o", "run": str(other.pk)}), until=lambda o: o.state == "waiting")
    assert operate.cancel(run_id=other.pk, principal=priya(world), reason="x").ok
    world.work(other, until=lambda one: one.is_over)
    only(monkeypatch, "none")
    before = Run.objects.get(pk=run.pk).lease_token
    began = time.monotonic()
    for _ in range(20):
        Relay().run_once()
        engine.advance(run_id=run.pk)
    claims, took = Run.objects.get(pk=run.pk).lease_token - before, time.monotonic() - began
    assert claims <= 3 + took / 2, f"{claims} claims in {took:.1f} s"


def test_the_relay_does_not_undo_the_growing_pause_after_a_failed_step(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step fails for a moment (as while a dependency of the code is away); five tries are not over in a second."""
    from runs import waiting

    other = world.work(world.scripted("other", {"key": "t", "timer": 900_000}), until=lambda o: o.state == "waiting")
    run = world.work(world.scripted("waiter", {"key": "o", "run": str(other.pk)}), until=lambda o: o.state == "waiting")
    assert operate.cancel(run_id=other.pk, principal=priya(world), reason="x").ok
    world.work(other, until=lambda one: one.is_over)

    def fails(**_: Any) -> bool:
        raise ZeroDivisionError

    monkeypatch.setattr(waiting, "look", fails)
    monkeypatch.setattr(retry, "backoff", lambda **_: dt.timedelta(seconds=60))
    for _ in range(8):
        Relay().run_once()
        engine.advance(run_id=run.pk)
    run.refresh_from_db()
    print(run.state, run.person_reason)
    assert Event.objects.filter(stream=f"run:{run.pk}", kind="run.step_failed").count() == 1
    assert run.state == "waiting"


def test_a_locked_run_stops_neither_thawing_nor_the_rest_of_the_relay(world: World) -> None:
    asked = world.work(world.start())
    held = world.start("CS-8815", key="second")
    frozen = freezing.freeze(scope="all", principal=priya(world), reason="x").freeze
    assert frozen is not None
    world.work(held, until=lambda one: one.frozen_by is not None)
    assert freezing.lift(freeze_id=frozen.pk, principal=priya(world), reason="x").ok
    with psycopg.connect(world.database) as stopped:
        stopped.execute("SELECT id FROM runs_run WHERE id = %s FOR UPDATE", [asked.pk])
        began = time.monotonic()
        try:
            Relay().run_once()
        except OperationalError as problem:
            print("relay threw", problem, time.monotonic() - began)
            raise AssertionError("the relay gave up its whole turn") from problem
    held.refresh_from_db()
    assert held.frozen_by is None


def test_what_the_policy_allowed_by_itself_goes_on_by_itself_after_a_long_freeze(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody was asked, so nobody has to be: lifting loses nothing."""
    monkeypatch.setattr(authorising, "AUTOMATIC_VALID_FOR", dt.timedelta(seconds=3))
    world.fault("overloaded", seconds=1)
    run = world.work(world.start("CS-8815"), until=lambda one: one.state == "waiting")
    frozen = freezing.freeze(scope="tool:billing.create_credit", principal=priya(world), reason="x").freeze
    assert frozen is not None
    world.work(run, until=lambda one: one.frozen_by is not None)
    time.sleep(3.2)
    assert freezing.lift(freeze_id=frozen.pk, principal=priya(world), reason="x").ok
    while Freeze.objects.filter(lifted_at__isnull=False, thawed_at__isnull=True).exists():
        Relay().run_once()
    run = world.work(run)
    print(run.state, run.person_code, run.person_reason)
    assert run.state == "completed", run.person_reason


def test_a_locked_run_holds_up_no_other_of_its_batch_nor_the_relay(world: World) -> None:
    runs = [world.scripted(f"n{number}") for number in range(3)]
    batch = batch_of(world, runs)
    first = BatchItem.objects.filter(batch=batch).order_by("id").first()
    assert first is not None
    with psycopg.connect(world.database) as frozen:  # a worker that was stopped in the middle of its transaction
        frozen.execute("SELECT id FROM runs_run WHERE id = %s FOR UPDATE", [first.run_id])
        began = time.monotonic()
        for _ in range(3):
            batches.work_off()
        took = time.monotonic() - began
        done = BatchItem.objects.filter(batch=batch, done_at__isnull=False).count()
    print("took", took, "done", done)
    assert done == 2, (done, took)


def test_one_run_that_the_database_refuses_holds_up_no_other(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [world.scripted(f"n{number}") for number in range(3)]
    batch, later = batch_of(world, runs), batch_of(world, [world.scripted("later")])
    real = acts.INNER["pause"]

    def refused(run: Run, *more: Any) -> Any:
        if run.pk == runs[1].pk:
            raise IntegrityError("a trigger said no")
        return real(run, *more)

    monkeypatch.setitem(acts.INNER, "pause", refused)
    for _ in range(4):
        Relay().run_once()
    left = BatchItem.objects.filter(batch__in=[batch, later], done_at__isnull=True).count()
    assert left == 0, left


def test_a_run_that_stays_locked_is_given_up_in_words(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MOST_TRIES", 1)
    monkeypatch.setattr(batches, "TRY_AGAIN", dt.timedelta())
    run = world.scripted("locked")
    batch = batch_of(world, [run])
    with psycopg.connect(world.database) as stopped:
        stopped.execute("SELECT id FROM runs_run WHERE id = %s FOR UPDATE", [run.pk])
        assert (batches.work_off(), batches.work_off()) == (0, 1)
    batch.refresh_from_db()
    assert batch.finished_at is not None
    assert "locked" in sentence(code=BatchItem.objects.get(batch=batch).code, detail={})


def test_a_freeze_is_taken_although_one_worker_stopped_in_the_middle_of_opening_an_attempt(world: World) -> None:
    """The database ends such a transaction after a while; here sooner, and locks are waited for less long."""
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = 500")
    stopped = psycopg.connect(world.database)
    try:
        stopped.execute("SET idle_in_transaction_session_timeout = 1200")
        stopped.commit()
        stopped.execute("SELECT approvals_freezes_in_force()")
        made = freezing.freeze(scope="all", principal=priya(world), reason="everything is booked twice")
    finally:
        stopped.close()
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")
    assert made.ok
