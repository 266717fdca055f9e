"""Reversals beside other things: proposed twice, refused, undone by somebody else, told of by billing."""

import threading

import pytest
from django.db import IntegrityError, connections, transaction

from agentops import undoing
from approvals.models import Allowance
from reconciliation.models import Case, Operation, Reversal
from reconciliation.services import reversals
from runs.models import Run
from runs.services import operate, principals
from tests.desk.conftest import Desk
from tests.desk.credits import again, note_id, reference
from tests.desk.outside import look_at_what_is_due, tell, void
from tests.engine.conftest import CREATE
from tests.undoing.conftest import VOID, Undoing


def test_of_two_that_propose_at_once_one_is_told_of_the_other(undo: Undoing) -> None:
    _, credit = undo.credited()
    said: list[str] = []
    together = threading.Barrier(2)

    def propose() -> None:
        together.wait()
        said.append(undo.propose(credit).code)
        connections.close_all()

    threads = [threading.Thread(target=propose) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(timeout=120)
    assert sorted(said) == ["already_proposed", "ok"] and Reversal.objects.count() == 1
    undo.relay()
    undo.relay()
    assert Run.objects.filter(workflow="reversal").count() == 1


def test_a_run_that_nobody_has_noted_yet_sends_nothing(undo: Undoing, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever started it died just then, and everything else was quick."""
    _, credit = undo.credited()
    with monkeypatch.context() as patch:
        patch.setattr(reversals, "link", lambda **_: None)
        assert undo.propose(credit).ok
        undoing.work_off(limit=5)
    run = undo.world.work(Run.objects.get(workflow="reversal"))
    assert undo.world.vote(run).code == "approved"
    run = undo.world.work(run, until=lambda one: one.state == "waiting")
    assert "name this run" in run.waits_for and not Operation.objects.filter(run=run).exists()
    undo.relay()
    run = undo.world.work(run)
    undo.relay()
    assert (run.state, undo.state(credit)) == ("completed", "compensated")


def test_nobody_approves_what_they_proposed_and_a_rejected_one_frees_the_place(undo: Undoing) -> None:
    _, credit = undo.credited()
    maya = undo.world.people["maya"]
    run = undo.world.work(undo.started(credit, principal=principals.of_user(user=undo.world.people["tomas"])))
    maya.groups.add(*undo.world.people["priya"].groups.all())  # a manager who operates runs as well
    assert undo.world.vote(run, choice="reject").code == "rejected"
    undo.world.work(run)
    undo.relay()
    assert (Reversal.objects.get().result, undo.state(credit)) == ("rejected", "succeeded")

    own = undo.world.work(undo.started(credit, principal=principals.of_user(user=maya)))
    assert undo.world.vote(own).code == "own_request"
    assert undo.world.vote(own, who="jonas").code == "approved"
    undo.world.work(own)
    undo.relay()
    assert undo.state(credit) == "compensated" and len(undo.voids()) == 1


def test_somebody_else_voided_it_first(undo: Undoing) -> None:
    """The reversal ends at a person, the credit's own record is put in dispute, and nothing is reversed twice."""
    _, credit = undo.credited()
    run = undo.approved(credit)
    void(note_id(undo.world))
    run = undo.world.work(run)
    assert (run.state, run.person_code) == ("needs_person", "not_reversible")
    assert operate.close(
        run_id=run.pk, principal=undo.priya, as_state="failed", reason="done by hand", what_stays=lambda _: ""
    ).ok
    undo.relay()
    assert (Reversal.objects.get().result, undo.state(credit), undo.voids()) == ("failed", "succeeded", [])
    tell(credit, note_id(undo.world), "credit_note.voided")
    look_at_what_is_due()
    assert "was voided after it had been confirmed" in Case.objects.get(operation=credit).why


def test_what_billing_tells_of_our_own_reversal_is_no_dispute(undo: Undoing) -> None:
    """Its event comes while we do not know yet whether our own call had worked."""
    _, credit = undo.credited()
    run = undo.approved(credit)
    undo.world.fault("execute_and_timeout", "billing.credit_notes.void")
    run = undo.unconfirmed(run)
    tell(credit, note_id(undo.world), "credit_note.voided")
    assert look_at_what_is_due() == 1 and not Case.objects.exists()
    undo.world.work(run)
    undo.relay()
    tell(credit, note_id(undo.world), "credit_note.voided")
    look_at_what_is_due()
    assert undo.state(credit) == "compensated" and not Case.objects.exists()
    assert len(undo.voids()) == 1


def test_what_is_being_undone_is_told_to_nobody(undo: Undoing) -> None:
    """Its run, which was still at work, stops at a person; after it is undone too."""
    undo.world.fault("overloaded", "helpdesk.tickets.update", times=None, retry_after="none", seconds=1)
    run = undo.world.work(
        undo.world.start("CS-8815"), until=lambda one: one.state == "waiting" and undo.world.used()[0][1] > 0
    )
    credit = undo.world.credit(run)
    own = undo.approved(credit)
    undo.world.sandbox.clear_faults()
    run = undo.world.work(run)
    assert (run.state, run.person_code) == ("needs_person", "reversed")
    undo.world.work(own)
    undo.relay()
    assert undo.state(credit) == "compensated"
    assert operate.gather_again(run_id=run.pk, principal=undo.priya, reason="go on").ok
    run = undo.world.work(run)
    assert (run.state, run.person_code) == ("needs_person", "reversed")
    assert [one["operation"] for one in undo.world.effects()] == [CREATE, VOID]


def test_of_what_happened_twice_the_second_is_undone_first(undo: Undoing) -> None:
    world = undo.world
    run = world.unknown()
    credit = world.credit(run)
    again(credit)
    desk = Desk(world, principals.of_user(user=world.people["tomas"]))
    case = desk.case(run)
    first, second = reference(world, 0), reference(world, 1)
    assert desk.settle(case, "twice", reference=first, other_reference=second) == "ok"
    spent = Allowance.objects.get().settled_minor
    for number, (reversed_, left, state) in enumerate(((second, spent // 2, "succeeded"), (first, 0, "compensated"))):
        own = world.work(undo.started(credit, principal=desk.tomas, case_number=case.pk))
        assert reversed_ in world.request(own).ask
        assert world.vote(own).code == "approved"
        world.work(own)
        undo.relay()
        assert (undo.state(credit), Allowance.objects.get().settled_minor) == (state, left)
        assert credit.other_reference == "" and len(undo.voids()) == number + 1
    assert {one["objects"]["credit_note"] for one in undo.voids()} == {note_id(world, 0), note_id(world, 1)}


def test_the_database_holds_what_a_reversal_is(undo: Undoing) -> None:
    _, credit = undo.credited()
    with pytest.raises(IntegrityError, match="no reversal of this has succeeded"), transaction.atomic():
        Operation.objects.filter(pk=credit.pk).update(state="compensated")
    assert undo.propose(credit).ok
    other = Reversal.objects.values("operation_id", "reference", "effect", "tool", "origin", "proposed_by_id").get()
    with pytest.raises(IntegrityError, match="reversal_one_living"), transaction.atomic():
        Reversal.objects.create(**other, reason="again")
    with pytest.raises(IntegrityError, match="does not stand"), transaction.atomic():
        copied = {one.attname: getattr(credit, one.attname) for one in Operation._meta.concrete_fields}
        Operation.objects.create(**{**copied, "id": None, "reverses_id": credit.pk, "state": "authorised"})
    assert reversals.due(limit=5) == [Reversal.objects.get().pk]
