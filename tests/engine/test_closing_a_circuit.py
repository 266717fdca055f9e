"""What closes a circuit: a good answer of the very system or tool. What opens it: failures in a row."""

import datetime as dt

import pytest

from agentops.workflows.registry import WORKFLOWS
from reconciliation.models import Dependency
from runs import clock
from tests.engine.conftest import World
from tests.engine.known import Scripted


def down(name: str, *, failures: int = 5) -> None:
    now = clock.read()
    Dependency.objects.create(
        name=name,
        failures=failures,
        open_since=now - dt.timedelta(minutes=1),
        ask_at=now - dt.timedelta(seconds=1),
        last_failure="No answer.",
    )


def test_the_trial_of_a_tool_without_a_rate_closes_its_circuit(world: World) -> None:
    run = world.approved()
    down("billing.create_credit", failures=6)
    assert world.work(run).state == "completed" and len(world.credits()) == 1
    one = Dependency.objects.get(pk="billing.create_credit")
    assert (one.open_since, one.failures, one.trial_until) == (None, 0, None)


def test_failures_that_are_not_in_a_row_open_no_circuit(world: World) -> None:
    run = world.approved()
    Dependency.objects.create(name="billing.create_credit", failures=4, last_failure="No answer.")
    assert world.work(run).state == "completed"
    assert Dependency.objects.get(pk="billing.create_credit").failures == 0


def test_a_reading_closes_the_circuit_of_a_system_that_it_asked(world: World) -> None:
    run = world.start()
    down("billing")
    world.work(run)
    one = Dependency.objects.get(pk="billing")
    assert (one.open_since, one.failures, one.trial_until) == (None, 0, None)


def test_a_reading_that_never_asked_a_system_says_nothing_of_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    class Mails(Scripted):
        tools = ("billing.create_credit",)

    monkeypatch.setitem(WORKFLOWS, "scripted", {"1": Mails("1")})
    down("billing")
    asked = len(world.sandbox.requests())
    world.work(world.scripted("mails"), until=lambda one: one.is_over)
    assert len(world.sandbox.requests()) == asked
    one = Dependency.objects.get(pk="billing")
    assert (one.open_since is None, one.failures, one.trial_until) == (False, 5, None)
