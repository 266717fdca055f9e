"""Taken on, and the outcome follows: told by an event or found only by asking, and not always the one hoped for."""

import datetime as dt
import time
from dataclasses import replace
from typing import Any

import pytest

from reconciliation.attempts import shown
from reconciliation.models import Case, Operation
from runs import clock
from runs.models import Event, Run
from runs.tools.base import Record
from runs.tools.billing.live import CreateCredit
from tests.desk.conftest import Desk
from tests.desk.outside import again, lookup_brings, note, open_cases, tell
from tests.engine.conftest import World

MODE = "accepted_outcome_later"


def taken_on(world: World, **params: Any) -> Run:
    world.fault(MODE, **params)
    run = world.work(world.approved(), until=lambda one: world.credit(one).state not in ("none", "sending"))
    moves = Event.objects.filter(stream=f"run:{run.pk}", kind="operation.state", data__target="accepted")
    assert moves.count() == 1 and world.used() == [(MODE, 1)]
    return run


def ask_now(run: Run) -> None:
    Operation.objects.filter(run=run).update(next_probe_at=clock.ClockTimestamp())
    Run.objects.filter(pk=run.pk).update(wake_at=clock.ClockTimestamp())


def known(world: World, operation: Operation, desk: Desk) -> None:
    """Billing has made up its mind by now."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        desk.ask(operation)
        operation.refresh_from_db()
        if operation.state != "accepted":
            return
        time.sleep(0.1)
    raise AssertionError("still only taken on")


def test_it_is_no_success_until_they_say_so(world: World, desk: Desk) -> None:
    run = taken_on(world, seconds=600)
    operation = world.credit(run)
    assert desk.ask(operation) == "found"
    for _ in range(12):
        desk.ask(operation)
    run = world.work(run, until=lambda one: one.state == "outcome_unknown")
    operation.refresh_from_db()
    assert (operation.state, operation.settled_at, operation.attempts_made) == ("accepted", None, 1)
    assert {one.state for one in operation.reservations.all()} == {"reserved"}
    assert open_cases(run) == [], "days are allowed for it"
    assert len(world.credits()) == 1 and len(world.effects()) == 1, "nothing is sent again and nobody is told"


@pytest.mark.parametrize("told", [True, False])
def test_it_stands_in_the_end(world: World, desk: Desk, told: bool) -> None:
    run = taken_on(world, seconds=0.2, stands=True, told=told)
    operation = world.credit(run)
    if told:
        tell(operation, note(0, world), "credit_note.updated")
    known(world, operation, desk)
    assert (operation.state, operation.settled_by) == ("succeeded", "probe")
    ask_now(run)
    run = world.work(run)
    assert (run.state, len(world.effects()), len(world.credits())) == ("completed", 3, 1)


@pytest.mark.parametrize("told", [True, False])
def test_it_is_not_carried_out_in_the_end(world: World, desk: Desk, told: bool) -> None:
    run = taken_on(world, seconds=0.2, stands=False, told=told)
    operation = world.credit(run)
    known(world, operation, desk)
    assert (operation.state, operation.failure_code, operation.settled_by) == ("failed", "not_carried_out", "probe")
    assert {one.state for one in operation.reservations.all()} == {"released"}
    ask_now(run)
    run = world.work(run)
    assert (run.state, run.person_code) == ("needs_person", "not_carried_out")
    assert "did not carry it out" in run.person_reason and len(world.credits()) == 1
    assert [row["operation"] for row in world.effects()] == ["billing.credit_notes.create"], "nobody was told of it"


def test_what_takes_longer_than_promised_is_a_case(world: World, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    soon = replace(CreateCredit.contract, final_within=dt.timedelta(seconds=0.1), max_probes=2)
    monkeypatch.setattr(CreateCredit, "contract", soon)
    run = taken_on(world, seconds=600)
    operation = world.credit(run)
    time.sleep(0.1)
    desk.ask(operation)
    desk.ask(operation)
    [why] = open_cases(run)
    assert "not final yet" in why and Case.objects.get(operation=operation).kind == "not_confirmed"


def test_a_contract_that_says_nothing_of_it_makes_it_not_confirmed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CreateCredit, "contract", replace(CreateCredit.contract, final_within=None))
    world.fault(MODE, seconds=600)
    run = world.work(world.approved(), until=lambda one: world.credit(one).state not in ("none", "sending"))
    assert world.credit(run).state == "unknown"


def test_nobody_settles_it_as_done_while_they_have_only_taken_it_on(world: World, desk: Desk) -> None:
    run = taken_on(world, seconds=600)
    operation = world.credit(run)
    desk.ask(operation)
    [shown] = operation.observations.filter(source="probe").latest("at").raw["records"]
    case = desk.case(run)
    assert desk.settle(case, "happened", reference=shown["reference"]) == "not_final"
    assert desk.settle(case, "differently", reference=shown["reference"], actual_minor=1) == "not_final"
    operation.refresh_from_db()
    assert (operation.state, operation.settled_at) == ("accepted", None)
    assert {one.state for one in operation.reservations.all()} == {"reserved"}


def test_one_of_two_not_carried_out_is_no_failure(world: World, desk: Desk) -> None:
    """The other one was shown before, and a list that leaves it out proves nothing."""
    operation = world.credit(taken_on(world, seconds=600))
    reference = again(operation)
    assert desk.ask(operation) == "several"
    mine = Record(reference=note(0, world), identity=operation.identity, at=None, mismatch={}, raw={}, void=True)
    first = next(one for one in shown(observations=operation.observations.order_by("at")) if one.pending)
    lookup_brings(operation, replace(mine, reference=first.reference))
    operation.refresh_from_db()
    assert (operation.state, reference != first.reference) == ("accepted", True)
    assert {one.state for one in operation.reservations.all()} == {"reserved"}
