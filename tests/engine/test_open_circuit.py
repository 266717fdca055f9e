"""An open circuit and an operation whose outcome is not known: it is neither given up nor forgotten."""

import datetime as dt

import pytest

from agentops.steps import settling
from reconciliation.classification import Result
from reconciliation.models import Dependency
from reconciliation.services import gates, probe
from runs import clock
from runs.models import Run
from runs.services import principals
from runs.tools.registry import tool
from tests.engine.conftest import CREATE, World

TOOL, SYSTEM = "billing.create_credit", "billing"


def open_circuit(name: str) -> None:
    now = clock.now()
    later = now + dt.timedelta(hours=1)
    Dependency.objects.update_or_create(
        name=name, defaults={"failures": 5, "open_since": now, "ask_at": later, "last_failure": "No answer."}
    )


def close_circuit(name: str, run: Run) -> None:
    gates.heard(
        name=name, result=Result.DONE, detail="", raw={}, retry_after=None, now=clock.now(), troubled=True
    )  # fmt: skip
    Run.objects.filter(pk=run.pk).update(wake_at=clock.ClockTimestamp())


def test_proved_absence_is_no_failure_while_the_tool_may_not_be_called(world: World) -> None:
    run = world.unknown("timeout_without_effect")
    open_circuit(TOOL)
    run = world.work(run, until=lambda one: one.waits_on == TOOL and one.lease_until is None)
    operation = world.credit(run)
    Run.objects.filter(pk=run.pk).update(wake_at=clock.ClockTimestamp(), waits_on="")
    proofs = operation.observations.filter(finding="absent", conclusive=True)
    run = world.work(run, until=lambda one: one.waits_on == TOOL and one.lease_until is None and proofs.exists())
    operation.refresh_from_db()
    assert run.state == "outcome_unknown" and operation.state == "unknown"
    assert run.waits_for.startswith(f"{TOOL} to answer again; asked next at ")
    assert operation.attempts_made == 1
    assert len(world.sandbox.requests(operation=CREATE, identity=operation.identity)) == 1
    close_circuit(TOOL, run)
    run = world.work(run)
    assert run.state == "completed" and len(world.credits()) == 1


def test_questions_wait_for_a_system_that_is_down_and_none_waits_for_ever(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = world.unknown("execute_and_timeout")
    open_circuit(SYSTEM)
    run = world.work(run, until=lambda one: one.waits_on == SYSTEM and one.lease_until is None)
    operation = world.credit(run)
    assert (run.state, operation.state, operation.probes_made) == ("outcome_unknown", "unknown", 0)
    assert run.waits_for.startswith("billing to answer again; asked next at ")
    assert not operation.observations.filter(source="probe").exists()
    monkeypatch.setattr(settling, "ASK_AT_LEAST", dt.timedelta(0))
    Run.objects.filter(pk=run.pk).update(wake_at=clock.ClockTimestamp())
    run = world.work(run)
    assert run.state == "completed" and world.credit(run).settled_by == "probe"
    assert Dependency.objects.get(pk=SYSTEM).open_since is None  # what answers is not down
    assert len(world.credits()) == 1


def test_a_run_waits_for_its_facts_without_a_try_and_goes_on(world: World) -> None:
    open_circuit(SYSTEM)
    run = world.work(world.start(), until=lambda one: one.state == "waiting")
    assert (run.waits_on, run.tries_in_row, run.resume_to, run.lease_until) == (SYSTEM, 0, "gathering", None)
    close_circuit(SYSTEM, run)
    assert world.work(run).state == "awaiting_approval"


def test_somebody_at_the_desk_asks_whatever_the_circuit_says(world: World) -> None:
    run = world.unknown("execute_and_timeout")
    open_circuit(SYSTEM)
    operation = world.credit(run)
    found = probe.ask(operation=operation, connector=tool(TOOL), actor=principals.system())
    assert found.finding == "found" and Dependency.objects.get(pk=SYSTEM).failures == 0
