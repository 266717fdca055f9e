"""What a run did is undone in reverse order, one after the other; forward recovery undoes nothing by itself."""

from typing import Any

import pytest

from agentops.pages import undone
from agentops.steps.cancelling import left_by_failing
from agentops.workflows.registry import WORKFLOWS
from reconciliation.models import Operation, Reversal
from runs.models import Run
from runs.services import operate, principals
from tests.desk.conftest import Desk
from tests.desk.credits import again, reference
from tests.undoing.conftest import Undoing
from tests.undoing.pair import Pair


def effect(undo: Undoing, incident: str) -> dict[str, str]:
    named = undo.world.named
    found = [one for one in undo.world.sandbox.world()["invoices"] if one["number"] == named("INV-2055")]
    return {
        "account": named("ACC-1107"),
        "account_name": "Brightwater Logistics",
        "customer": str(found[0]["customer"]),
        "invoice": named("INV-2055"),
        "invoice_id": str(found[0]["id"]),
        "invoice_version": "1",
        "amount_minor": "10000",
        "balance_minor": "0",
        "currency": "USD",
        "reason": "sla_breach",
        "memo": "SLA credit",
        "ticket": named("CS-8815"),
        "incident": incident,
    }


@pytest.fixture
def several(undo: Undoing, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A run that has made three credits and needs a person, of a workflow that recovers in the way named."""

    def make(recovery: Any) -> Run:
        monkeypatch.setitem(WORKFLOWS, "pair", {"1": Pair(recovery)})
        effects = [effect(undo, f"INC-{number}") for number in (1, 2, 3)]
        run = undo.world.work(undo.world.start_other("pair", name=f"three credits {recovery}", effects=effects))
        assert (run.state, run.person_code) == ("needs_person", "ticket_gone")
        assert len(undo.world.credits()) == 3
        return run

    return make


def close(undo: Undoing, run: Run) -> None:
    def stays(locked: Run) -> str:
        return left_by_failing(locked, principal=undo.priya, reason="it cannot be finished")

    closed = operate.close(
        run_id=run.pk, principal=undo.priya, as_state="failed", reason="it cannot be finished", what_stays=stays
    )
    assert closed.ok


def results() -> list[tuple[str, bool]]:
    """Of all reversals in their order: the result, and whether a run was started."""
    found = Reversal.objects.order_by("created_at")
    return [(one.result, one.run_id is not None) for one in found]


def test_a_failed_workflow_is_undone_backwards_each_on_its_own(undo: Undoing, several: Any) -> None:
    run = several("backward")
    close(undo, run)
    undo.relay()
    run.refresh_from_db()
    credits = list(Operation.objects.filter(run=run).order_by("-created_at"))
    assert "Each needs its own approval" in run.outcome
    assert [one.operation for one in Reversal.objects.order_by("created_at")] == credits
    for number, credit in enumerate(credits):
        # the next is proposed only once the one before is done
        assert results() == [("done", True)] * number + [("", True)] + [("", False)] * (2 - number)
        assert undone.of_run(run=run).told == f"{number} of 3 reversed"
        own = undo.world.work(undo.run_of(credit))
        assert own.state == "awaiting_approval" and own.initiator == undo.priya
        assert undo.world.vote(own).code == "approved"
        undo.world.work(own)
        undo.relay()
        assert undo.state(credit) == "compensated"
    assert [one["objects"]["credit_note"] for one in undo.voids()] == [
        one["objects"]["credit_note"] for one in reversed(undo.world.credits())
    ]


def test_where_one_is_rejected_the_rest_is_left_to_people(undo: Undoing, several: Any) -> None:
    run = several("forward")
    assert operate.cancel(run_id=run.pk, principal=undo.priya, reason="wrong customer").ok
    run = undo.world.work(run)
    assert run.state == "cancelled" and "Reversal proposed" in run.outcome
    newest, second, _ = Operation.objects.filter(run=run).order_by("-created_at")
    own = undo.world.work(undo.run_of(newest))
    assert undo.world.vote(own, choice="reject").code == "rejected"
    undo.world.work(own)
    undo.relay()
    assert results() == [("rejected", True), ("dropped", False), ("dropped", False)]
    assert undo.voids() == [] and undo.state(newest) == "succeeded"
    assert undo.propose(newest).ok and undo.propose(second).ok  # their places are free again


def test_a_cancelled_run_has_both_records_undone_of_what_happened_twice(undo: Undoing) -> None:
    world = undo.world
    run = world.unknown()
    credit = world.credit(run)
    again(credit)
    desk = Desk(world, principals.of_user(user=world.people["tomas"]))
    first, second = reference(world, 0), reference(world, 1)
    assert desk.settle(desk.case(run), "twice", reference=first, other_reference=second) == "ok"
    run.refresh_from_db()
    assert undone.on_cancel(run=run).undone == [second, first]
    assert operate.cancel(run_id=run.pk, principal=undo.priya, reason="wrong customer").ok
    run = world.work(run)
    assert f"Reversal proposed: {second}, then {first}. Each needs its own approval." in run.outcome
    for number, state in enumerate(("succeeded", "compensated")):
        assert [one for one, _ in results()] == ["done"] * number + [""] and len(undo.voids()) == number
        own = world.work(undo.run_of(credit))
        assert own.state == "awaiting_approval" and (second, first)[number] in world.request(own).ask
        assert world.vote(own).code == "approved"
        world.work(own)
        undo.relay()
        assert undo.state(credit) == state
    assert results() == [("done", True)] * 2 and len(undo.voids()) == 2


def test_forward_recovery_undoes_nothing(undo: Undoing, several: Any) -> None:
    close(undo, several("forward"))
    undo.relay()
    assert not Reversal.objects.exists()


def test_a_failed_ticket_update_never_reverses_the_credit(undo: Undoing) -> None:
    undo.world.fault("overloaded", "helpdesk.tickets.update", times=None, retry_after="none", seconds=1)
    run = undo.world.work(undo.world.start("CS-8815"), until=lambda one: one.state == "needs_person")
    assert run.person_code == "gave_up"
    close(undo, run)
    undo.relay()
    assert not Reversal.objects.exists() and undo.state(undo.world.credit(run)) == "succeeded"


def test_what_is_being_undone_already_comes_before_what_a_cancelled_run_undoes(undo: Undoing, several: Any) -> None:
    run = several("forward")
    newest, second, _ = Operation.objects.filter(run=run).order_by("-created_at")
    assert undo.propose(newest).ok
    undo.relay()
    assert operate.cancel(run_id=run.pk, principal=undo.priya, reason="wrong customer").ok
    undo.world.work(run)
    undo.relay()
    assert results() == [("", True), ("", False), ("", False)], "the newest first"
    own = undo.world.work(undo.run_of(newest))
    assert undo.world.vote(own).code == "approved"
    undo.world.work(own)
    undo.relay()
    assert results() == [("done", True), ("", True), ("", False)]
    assert Reversal.objects.get(operation=second).after == Reversal.objects.get(operation=newest)


def test_a_cancelled_run_has_the_first_record_undone_as_well_where_the_second_was_being_undone(undo: Undoing) -> None:
    world = undo.world
    run = world.unknown()
    credit = world.credit(run)
    again(credit)
    desk = Desk(world, principals.of_user(user=world.people["tomas"]))
    first, second = reference(world, 0), reference(world, 1)
    assert desk.settle(desk.case(run), "twice", reference=first, other_reference=second) == "ok"
    assert undo.propose(credit).ok
    assert operate.cancel(run_id=run.pk, principal=undo.priya, reason="wrong customer").ok
    world.work(run)
    own = world.work(undo.run_of(credit))
    assert world.vote(own).code == "approved"
    world.work(own)
    undo.relay()
    assert results() == [("done", True), ("", True)]
    assert first in world.request(world.work(undo.run_of(credit))).ask
