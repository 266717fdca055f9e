"""A worker is frozen past its lease and wakes later: what it learned still counts, and nothing is done twice."""

import os
import signal
from typing import Any

import pytest

from reconciliation.models import Attempt, Observation
from runs import record
from runs.models import Run
from tests.engine.conftest import CREATE, World
from tests.engine.workers import is_stopped, wait_until_stopped

TICKET = "CS-8815"


@pytest.fixture(autouse=True)
def short_leases(settings: Any) -> None:
    settings.LEASE_SECONDS = 2


def frozen_worker(world: World, point: str) -> tuple[Run, int]:
    """A run whose worker is frozen at the point, and that worker."""
    run = world.start(TICKET)
    pid = world.worker(run, freeze_at=point)
    wait_until_stopped(pid)
    assert world.marker(point).exists()
    return run, pid


def thaw(world: World, pid: int) -> None:
    assert is_stopped(pid), "the worker has to be frozen until now"
    os.kill(pid, signal.SIGCONT)
    assert world.workers.wait(pid) == 0


def sent(world: World, run: Run) -> list[str]:
    """The wire keys of the credit's calls that billing saw."""
    identity = world.credit(run).identity
    return [one["wire_key"] for one in world.sandbox.requests(identity=identity, operation=CREATE)]


def results(world: World, run: Run) -> list[str]:
    return [one.result for one in Attempt.objects.filter(operation=world.credit(run)).order_by("number")]


def one_credit_and_a_whole_record(world: World, run: Run) -> None:
    run.refresh_from_db()
    assert run.state == "completed", run.person_reason
    assert [one["identity"] for one in world.credits()] == [world.credit(run).identity]
    assert len(world.effects()) == 3  # the credit, the ticket's change and the draft
    assert record.verify(stream=f"run:{run.pk}") is None


def probes(run: Run, finding: str) -> int:
    return Observation.objects.filter(operation__run=run, source="probe", finding=finding).count()


def test_frozen_before_the_call_it_does_not_call_when_it_wakes(world: World) -> None:
    run, pid = frozen_worker(world, "attempt.opened.after")
    token = Run.objects.get(pk=run.pk).lease_token
    world.work(run, until=lambda one: probes(one, "absent") >= 3)
    assert Run.objects.get(pk=run.pk).lease_token > token
    # however often nothing is found: the frozen worker may still call, so it is neither proof nor sent again
    assert not Observation.objects.filter(operation__run=run, conclusive=True).exists()
    assert (world.credit(run).state, sent(world, run), results(world, run)) == ("unknown", [], [""])

    thaw(world, pid)
    assert Observation.objects.filter(operation=world.credit(run), source="sender", finding="not_sent").count() == 1
    world.work(run)
    one_credit_and_a_whole_record(world, run)
    assert results(world, run) == ["not_sent", "done"]
    assert sent(world, run) == [f"{world.credit(run).identity}:0"]


def test_frozen_after_the_call_its_late_answer_is_kept_and_changes_nothing(world: World) -> None:
    run, pid = frozen_worker(world, "attempt.called")
    run = world.work(run)
    one_credit_and_a_whole_record(world, run)
    credit = world.credit(run)
    assert (credit.settled_by, results(world, run)) == ("probe", [""])
    events = run.event_seq

    thaw(world, pid)
    one_credit_and_a_whole_record(world, run)
    assert Observation.objects.filter(operation=credit, source="sender", finding="found").count() == 1
    assert (world.credit(run).settled_by, results(world, run)) == ("probe", ["done"])
    assert not credit.cases.exists()
    assert run.event_seq == events + 1  # that the attempt was closed
    assert sent(world, run) == [f"{credit.identity}:0"]


def test_frozen_after_a_call_without_effect_it_is_sent_again_only_once_the_sender_reported(world: World) -> None:
    world.fault("timeout_without_effect")
    run, pid = frozen_worker(world, "attempt.called")
    world.work(run, until=lambda one: probes(one, "absent") >= 3)
    assert world.used() == [("timeout_without_effect", 1)]
    assert (world.credit(run).state, len(sent(world, run)), world.credits()) == ("unknown", 1, [])

    thaw(world, pid)
    world.work(run)
    one_credit_and_a_whole_record(world, run)
    assert results(world, run) == ["ambiguous", "done"]
    assert sent(world, run) == [f"{world.credit(run).identity}:0"] * 2


def test_a_frozen_worker_that_is_killed_counts_as_gone(world: World) -> None:
    """Proved by its own machine: then nothing waits for it any more."""
    world.fault("timeout_without_effect")
    run, pid = frozen_worker(world, "attempt.called")
    os.kill(pid, signal.SIGKILL)
    assert world.workers.wait(pid) == -signal.SIGKILL
    run = world.work(run)
    one_credit_and_a_whole_record(world, run)
    assert results(world, run) == ["sender_gone", "done"]
