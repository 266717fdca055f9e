"""Whatever billing does with a call, its ledger holds one credit in the end and the record says how that was known."""

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest

from reconciliation.models import Attempt, Case, Operation
from reconciliation.services import cases
from runs import record
from runs.models import Run
from runs.services import principals
from runs.tools.base import NotSent
from runs.tools.billing.live import CreateCredit
from tests.engine.conftest import CREATE, World

TICKET = "CS-8815"

# (mode, its parameters, results of the attempts, settled by): each ends with exactly one credit
MODES: list[tuple[str, dict[str, Any], list[str], str]] = [
    ("execute_and_timeout", {}, ["ambiguous"], "probe"),
    ("timeout_without_effect", {}, ["ambiguous", "done"], "probe"),
    ("execute_then_5xx", {"status": 500}, ["ambiguous"], "probe"),
    ("execute_then_5xx", {"status": 503}, ["ambiguous"], "probe"),
    ("5xx_without_effect", {"status": 503}, ["ambiguous", "done"], "probe"),
    ("execute_then_reset", {}, ["ambiguous"], "probe"),
    ("reset_without_effect", {}, ["ambiguous", "done"], "probe"),
    ("cut_body", {}, ["ambiguous"], "probe"),
    ("same_key_running", {}, ["ambiguous", "done"], "probe"),
    ("param_mismatch", {}, ["ambiguous", "done"], "probe"),
    ("overloaded", {"retry_after": "seconds", "seconds": 1}, ["overloaded", "done"], "answer"),
    ("overloaded", {"retry_after": "date", "seconds": 1}, ["overloaded", "done"], "answer"),
    ("overloaded", {"retry_after": "garbage"}, ["overloaded", "done"], "answer"),
    ("overloaded", {"retry_after": "none"}, ["overloaded", "done"], "answer"),
    ("key_forgotten_after", {"seconds": 0}, ["done"], "answer"),
    ("keys_ignored", {}, ["done"], "answer"),
    ("ok_slow", {"seconds": 1.6, "effect_at": "end"}, ["ambiguous"], "probe"),
]


def wire_keys(world: World, operation: Operation) -> list[str]:
    return [one["wire_key"] for one in world.sandbox.requests(identity=operation.identity, operation=CREATE)]


def results(operation: Operation) -> list[str]:
    return [one.result for one in Attempt.objects.filter(operation=operation).order_by("number")]


def one_credit(world: World, run: Run) -> Operation:
    """The run is done, billing made one credit under its identity, and the record is whole."""
    assert run.state == "completed", (run.person_reason, run.waits_for)
    operation = world.credit(run)
    made = world.credits()
    assert [(one["identity"], one["amount_minor"]) for one in made] == [(operation.identity, operation.amount_minor)]
    assert operation.state == "succeeded"
    assert record.verify(stream=f"run:{run.pk}") is None
    return operation


@pytest.mark.parametrize(("mode", "parameters", "attempts", "settled_by"), MODES, ids=lambda value: str(value)[:40])
def test_one_fault_at_the_credit(
    world: World, mode: str, parameters: dict[str, Any], attempts: list[str], settled_by: str
) -> None:
    world.fault(mode, **parameters)
    run = world.work(world.start(TICKET))
    operation = one_credit(world, run)
    assert world.used() == [(mode, 1)]
    if mode == "ok_slow":  # its key is in use until the effect happened, so a second call may come in between
        assert set(results(operation)) <= {"ambiguous", "done"}
    else:
        assert (results(operation), operation.settled_by) == (attempts, settled_by)
    assert set(wire_keys(world, operation)) == {f"{operation.identity}:0"}


def test_d1_the_answer_is_lost_over_and_over(world: World) -> None:
    """The credit is made once, and the first of three lost answers is the only call there is."""
    world.fault("execute_and_timeout", times=3)
    operation = one_credit(world, world.work(world.start(TICKET)))
    assert world.used() == [("execute_and_timeout", 1)]
    assert wire_keys(world, operation) == [f"{operation.identity}:0"]


def test_d3_try_again_only_asks(world: World) -> None:
    run = world.unknown()
    assert world.credit(run).state == "unknown"
    world.fault("lookup_not_found", "billing.credit_notes.list", times=1)  # and the first question finds nothing
    priya = principals.of_user(user=world.people["tomas"])
    for _ in range(3):
        pressed = cases.probe_now(operation_id=world.credit(run).pk, principal=priya)
        assert pressed.ok
        assert len(wire_keys(world, world.credit(run))) == 1  # the press itself sends nothing
    operation = one_credit(world, world.work(run))
    assert dict(world.used())["lookup_not_found"] == 1
    assert set(wire_keys(world, operation)) == {f"{operation.identity}:0"}
    assert cases.probe_now(operation_id=operation.pk, principal=priya).code == "not_unknown"
    assert Operation.objects.filter(pk=operation.pk).exists()


def test_d5_a_server_error_three_times_although_it_worked(world: World) -> None:
    world.fault("execute_then_5xx", times=3, status=503)
    operation = one_credit(world, world.work(world.start(TICKET)))
    assert wire_keys(world, operation) == [f"{operation.identity}:0"]
    assert operation.settled_by == "probe"


def test_nothing_but_server_errors_without_effect_end_at_a_person_with_proof(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CreateCredit, "contract", replace(CreateCredit.contract, max_attempts=4))
    world.fault("5xx_without_effect", times=None, status=503)
    run = world.work(world.start(TICKET), seconds=120)
    operation = world.credit(run)
    contract_limit = 4
    assert (run.state, run.person_code) == ("needs_person", "gave_up"), run.waits_for
    assert (operation.state, operation.failure_code) == ("failed", "gave_up")
    assert len(results(operation)) == contract_limit == len(wire_keys(world, operation))
    assert world.credits() == []
    assert operation.observations.filter(source="probe", finding="absent", conclusive=True).exists()
    # each key at most twice, and a new one only after proof
    keys = wire_keys(world, operation)
    assert all(keys.count(key) <= 2 for key in keys) and len(set(keys)) == 2
    assert not operation.reservations.exclude(state="released").exists()


def test_overloaded_for_ever_is_given_up_and_nothing_stays_reserved(world: World, monkeypatch: Any) -> None:
    monkeypatch.setattr("reconciliation.services.answers.retry.backoff", lambda **_: dt.timedelta(0))
    world.fault("overloaded", times=None, retry_after="none")
    run = world.work(world.start(TICKET))
    operation = world.credit(run)
    assert (run.state, run.person_code, operation.state) == ("needs_person", "gave_up", "abandoned")
    assert world.used() == [("overloaded", 6)] and world.credits() == []
    assert run.person_reason == "billing turned 6 of 6 attempts away, asking to wait; nothing was done"
    assert operation.get_state_display() == "Given up", "it was sent, six times"
    assert [one.state for one in operation.reservations.all()] == ["released"]
    assert not Case.objects.exists()


@pytest.mark.parametrize(
    ("turned_away", "told"),
    [
        (0, "none of 6 attempts reached billing; nothing was done"),
        (2, "billing turned 2 of 6 attempts away, asking to wait, and 4 did not reach it; nothing was done"),
    ],
)
def test_what_was_turned_away_and_what_never_arrived_are_told_apart(
    world: World, settings: Any, monkeypatch: pytest.MonkeyPatch, turned_away: int, told: str
) -> None:
    monkeypatch.setattr("reconciliation.services.answers.retry.backoff", lambda **_: dt.timedelta(0))
    world.fault("overloaded", times=None, retry_after="none")
    run = world.approved()
    sent = CreateCredit.send

    def send(self: Any, **given: Any) -> Any:
        if len(world.sandbox.requests(operation=CREATE, identity=given["identity"])) >= turned_away:
            raise NotSent("no connection")
        return sent(self, **given)

    monkeypatch.setattr(CreateCredit, "send", send)
    run = world.work(run)
    assert (run.state, run.person_code, run.person_reason) == ("needs_person", "gave_up", told)


def test_a_stored_server_error_is_got_over_by_proof_and_a_new_key(world: World) -> None:
    """Billing repeats its stored 500 for the key for a day; only proved absence allows the next one."""
    world.fault("5xx_without_effect", status=500, stored=True)
    operation = one_credit(world, world.work(world.start(TICKET)))
    assert world.used() == [("5xx_without_effect", 1)]
    identity = operation.identity
    assert wire_keys(world, operation) == [f"{identity}:0", f"{identity}:0", f"{identity}:1"]
    assert operation.observations.filter(source="probe", finding="absent", conclusive=True).exists()
