"""Two runs that touch one account: never in flight at once, whoever dies; the other waits visibly and goes on."""

import datetime as dt
import itertools
from typing import Any

import pytest

from reconciliation.models import Attempt, Operation, ResourceHold
from reconciliation.services import execute, holds
from runs import clock, record, retry
from runs.models import Event, Run
from tests.engine.conftest import CREATE, World
from tests.engine.test_together import approved_runs


@pytest.fixture(autouse=True)
def short_leases(settings: Any) -> None:
    settings.LEASE_SECONDS = 2


def credits_sent(*runs: Run) -> list[Attempt]:
    sent = Attempt.objects.filter(operation__run__in=runs, operation__tool="billing.create_credit")
    return list(sent.order_by("opened_at"))


def held() -> list[str]:
    return list(ResourceHold.objects.values_list("name", flat=True))


def test_credits_of_one_account_are_sent_one_after_the_other(world: World) -> None:
    runs = approved_runs(world, 3)
    world.fault("ok_slow", times=3, seconds=0.5)
    workers = [world.worker(run, seconds=120) for run in runs]
    assert [world.workers.wait(pid, seconds=120) for pid in workers] == [0, 0, 0]
    assert [Run.objects.get(pk=run.pk).state for run in runs] == ["completed"] * 3
    assert len(world.credits()) == 3 and world.used() == [("ok_slow", 3)]
    attempts = credits_sent(*runs)
    assert len(attempts) == 3
    for before, after in itertools.pairwise(attempts):
        assert before.closed_at is not None and before.closed_at <= after.opened_at
    whys = [one.data.get("why", "") for one in Event.objects.filter(kind="run.state", data__target="waiting")]
    assert any("to finish with account" in why for why in whys)
    assert held() == []


def test_what_a_killed_worker_held_is_held_until_its_outcome_is_known(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execute, "RESOURCE_RETRY", dt.timedelta(minutes=10))
    first, second = approved_runs(world, 2)
    world.fault("execute_and_timeout")
    assert world.workers.wait(world.worker(first, die_at="attempt.called")) == -9
    [name] = held()
    assert name == f"account {world.credit(first).effect['account']}"

    second = world.work(second, until=lambda one: one.state == "waiting")
    first.refresh_from_db()
    assert second.waits_for == f"“{first.title}” to finish with {name}"
    assert second.waits_on == f"resource:{name}" and second.lease_until is None
    assert world.credit(second).state == "authorised" and credits_sent(second) == []
    assert holds.wake_waiting() == 0 and held() == [name]  # the operation is still in flight, worker or not
    holds.let_go(operation=world.credit(first))
    assert held() == [name]  # and the database lets nobody take it away

    world.fault("lookup_error", "billing.credit_notes.list")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retry, "backoff", lambda **_: dt.timedelta(hours=1))
        first = world.work(first, until=lambda one: one.state == "outcome_unknown" and one.lease_until is None)
    assert held() == [name] and holds.wake_waiting() == 0  # not confirmed: it may still happen
    Run.objects.filter(pk=first.pk).update(wake_at=clock.ClockTimestamp())
    first.operations.filter(state="unknown").update(next_probe_at=clock.ClockTimestamp())
    first = world.work(first)
    assert first.state == "completed" and held() == []

    second.refresh_from_db()
    assert second.wake_at is not None and second.wake_at > clock.now()
    assert (holds.wake_waiting(), holds.wake_waiting()) == (1, 0)
    second = world.work(second)
    assert second.state == "completed" and len(world.credits()) == 2
    assert len(world.sandbox.requests(operation=CREATE, identity=world.credit(first).identity)) == 1
    assert all(record.verify(stream=f"run:{run.pk}") is None for run in (first, second))


def test_a_credit_that_comes_back_unsent_lets_the_other_go_first(world: World) -> None:
    first, second = approved_runs(world, 2)
    world.fault("overloaded", seconds=2)
    world.work(first, until=lambda one: world.credit(one).attempts_made == 1 and one.state == "waiting")
    assert held() == [] and world.credit(first).state == "authorised"
    assert world.work(second).state == world.work(first).state == "completed"
    assert len(world.credits()) == 2


def due(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(wake_at=clock.ClockTimestamp())


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
    longest.refresh_from_db()
    second.refresh_from_db()
    now = clock.read()
    assert longest.wake_at is not None and second.wake_at is not None
    assert longest.wake_at <= now < second.wake_at
