"""A wrong verdict, and what turned out otherwise later, is put right by a new entry: never by an edit."""

from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import Group
from django.db import DatabaseError, connection, transaction

from agentops import correction_notices
from agentops.correction_notices import start_notices
from approvals.models import Allowance
from reconciliation import queries
from reconciliation.models import Case, Correction, Operation
from reconciliation.services import cases
from runs import record
from runs.models import Event, Principal, Run
from runs.one_by_one import NotAll
from runs.services import principals
from tests.desk.conftest import Desk
from tests.desk.outside import again, lookup_brings, note, void
from tests.desk.test_second_person import confirm
from tests.engine.conftest import World
from tests.runpages.world import person


def totals() -> list[int]:
    return [one.settled_minor for one in Allowance.objects.order_by("key")]


def doubted(desk: Desk, operation: Operation) -> Case:
    desk.until_proof()
    result = cases.doubt(operation_id=operation.pk, principal=desk.tomas, reason="the customer says so")
    assert result.ok, result
    return Case.objects.get(pk=result.detail["case"])


@pytest.fixture
def done(world: World) -> Run:
    return world.work(world.approved())


@pytest.fixture
def operation(world: World, done: Run) -> Operation:
    found = world.credit(done)
    assert (done.state, found.state) == ("completed", "succeeded")
    return found


def test_what_no_longer_stands_is_taken_back(world: World, desk: Desk, done: Run, operation: Operation) -> None:
    before, reference = totals(), operation.external_reference
    assert any(before)
    void(note(0, world))
    case = doubted(desk, operation)
    assert desk.settle(case, "did_not") == "ok"
    operation.refresh_from_db()
    assert (operation.state, operation.external_reference, operation.settled_by) == ("failed", None, "person")
    [entry] = Correction.objects.all()
    assert (entry.case, entry.source, entry.target, entry.before["external_reference"]) == (
        case, "succeeded", "failed", reference,
    )  # fmt: skip
    assert not any(totals()), "what it counted is given back"
    assert {one.state for one in operation.reservations.all()} == {"released"}
    done.refresh_from_db()
    assert case.label in done.outcome and f"completed as {reference}" in done.outcome
    assert not Case.objects.filter(operation=operation).exclude(state="resolved").exists()
    assert len(world.credits()) == 1, "and nothing is sent"
    [said] = Event.objects.filter(stream=f"run:{done.pk}", kind="operation.corrected")
    assert (said.data["source"], said.data["target"], said.actor) == ("succeeded", "failed", desk.tomas)
    assert record.verify(stream=f"run:{done.pk}") is None
    # and back again: each is an entry of its own
    once_more = doubted(desk, operation)
    assert desk.settle(once_more, "happened", reference=reference) == "undone", "they say that it is void"
    assert Correction.objects.count() == 1


def test_what_was_settled_as_not_done_and_was_is_owned_up_to(world: World, desk: Desk) -> None:
    run = world.unknown("timeout_without_effect")
    case = desk.case(run)
    desk.until_proof()
    assert desk.settle(case, "did_not") == "ok"
    operation = world.credit(run)
    reference = again(operation)
    assert desk.ask(operation) == "found"
    case = desk.case(run)
    assert desk.settle(case, "did_not") == "as_recorded"
    assert desk.settle(case, "differently", reference=reference, actual_minor=1) == "other_amount"
    assert desk.settle(case, "happened", reference=reference) == "ok"
    operation.refresh_from_db()
    assert (operation.state, operation.external_reference, operation.failure) == ("succeeded", reference, "")
    assert totals() == [operation.amount_minor] * len(totals()) and not operation.key_held
    assert {one.state for one in operation.reservations.all()} == {"settled"}


def test_our_own_record_still_standing_there_cannot_be_called_not_done(desk: Desk, operation: Operation) -> None:
    case = doubted(desk, operation)
    assert desk.settle(case, "did_not", ask=False) in ("not_asked", "seen_recorded")
    assert desk.settle(case, "did_not") == "seen_recorded"
    assert desk.settle(case, "happened", reference=operation.external_reference) == "as_recorded"
    operation.refresh_from_db()
    assert (operation.state, Correction.objects.count()) == ("succeeded", 0)


def test_a_second_record_that_comes_to_light_counts_twice(world: World, desk: Desk, operation: Operation) -> None:
    second, once = again(operation), totals()
    case = doubted(desk, operation)
    given = {"reference": operation.external_reference, "other_reference": second}
    assert desk.settle(case, "twice", **given) == "ok"
    operation.refresh_from_db()
    assert (operation.other_reference, totals()) == (second, [2 * one for one in once])
    void(note(1, world))
    case = doubted(desk, operation)
    assert desk.settle(case, "happened", reference=operation.external_reference) == "ok"
    operation.refresh_from_db()
    assert (operation.other_reference, totals()) == ("", once)
    assert list(operation.corrections.values_list("number", flat=True)) == [1, 2]


def test_above_the_limit_another_admin_confirms_it(
    world: World, desk: Desk, operation: Operation, settings: Any
) -> None:
    settings.SETTLE_ALONE_UP_TO = {"USD": 100_000}
    noor = principals.of_user(user=_admin("noor"))
    void(note(0, world))
    case = doubted(desk, operation)
    assert desk.settle(case, "did_not") == "proposed"
    operation.refresh_from_db()
    assert operation.state == "succeeded"
    assert confirm(desk, case, desk.tomas, case.proposals.get().digest).code == "own_proposal"
    cases.release(case_number=case.pk, principal=desk.tomas)
    assert confirm(desk, case, noor, case.proposals.get().digest).ok
    entry = Correction.objects.get()
    assert (entry.target, entry.corrected_by, entry.confirmed_by) == ("failed", desk.tomas, noor)


def _admin(name: str) -> Any:
    user = person(name)
    user.groups.add(Group.objects.get(name="admin"))
    return user


def test_what_another_has_done_in_its_place_is_not_counted_too(world: World, desk: Desk) -> None:
    run = world.unknown("timeout_without_effect")
    case = desk.case(run)
    desk.until_proof()
    assert desk.settle(case, "did_not") == "ok"
    second = world.work(world.start("CS-8812", key="once more"))
    world.vote(second)
    assert world.work(second).state == "completed"
    operation = world.credit(run)
    reference = again(operation)
    desk.ask(operation)
    case = desk.case(run)
    assert case.kind == "duplicate"
    assert desk.settle(case, "happened", reference=reference) == "done_anew"
    assert desk.settle(case, "noted") == "ok"


def test_nobody_changes_what_is_settled_without_an_entry(
    world: World, desk: Desk, operation: Operation, owner: psycopg.Connection
) -> None:
    for change in ("state = 'failed'", "actual = '{}'", "external_reference = 'CN-0'", "corrected = 1"):
        with pytest.raises(DatabaseError, match="correction only"), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"UPDATE reconciliation_operation SET {change} WHERE id = %s", [operation.pk])
    void(note(0, world))
    assert desk.settle(doubted(desk, operation), "did_not") == "ok"
    for change in ("UPDATE reconciliation_correction SET evidence = ''", "DELETE FROM reconciliation_correction"):
        with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
            connection.cursor().execute(change)
    with pytest.raises(psycopg.Error, match="correction only"):  # an entry opens its edge once
        owner.execute("UPDATE reconciliation_operation SET state = 'succeeded', external_reference = 'CN-1'")


def test_a_customer_who_was_told_is_written_to_by_a_run_of_its_own(
    world: World, desk: Desk, done: Run, operation: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing changes silently: a reply is drafted through policy, once, and a person sends it."""
    reference, ticket = operation.external_reference, operation.effect["ticket"]
    assert start_notices(limit=10) == 0
    void(note(0, world))
    case = doubted(desk, operation)
    assert desk.settle(case, "did_not") == "ok"
    with monkeypatch.context() as broken, pytest.raises(NotAll, match=case.label):
        broken.setattr(correction_notices, "_notice", lambda entry: entry.no_such_field)
        start_notices(limit=10)
    assert (start_notices(limit=10), start_notices(limit=10)) == (1, 0)
    run = world.work(Run.objects.get(workflow="correction_notice"))
    assert (run.state, run.initiator, run.subject) == ("completed", desk.tomas, ticket), run.person_reason
    written = run.operations.get().effect
    assert f"{reference}, does not stand" in written["body"] and case.label in written["subject"]
    drafts = [row for row in world.effects() if row["operation"] == "helpdesk.drafts.create"]
    assert len(drafts) == 2 and len(world.credits()) == 1


def test_a_doubt_that_was_none_leaves_our_record_as_it_is(world: World, desk: Desk, operation: Operation) -> None:
    case = doubted(desk, operation)
    assert desk.settle(case, "stands", ask=False) == "not_asked"
    assert desk.settle(case, "stands") == "ok"
    case.refresh_from_db()
    operation.refresh_from_db()
    assert (case.verdict, operation.state, operation.settled_by) == ("stands", "succeeded", "answer")
    assert not queries.disputes().exists() and not Correction.objects.exists()
    void(note(0, world))
    assert desk.settle(doubted(desk, operation), "stands") == "not_right"


def test_who_may_not_settle_may_not_doubt(world: World, operation: Operation) -> None:
    priya: Principal = principals.of_user(user=world.people["priya"])
    assert cases.doubt(operation_id=operation.pk, principal=priya, reason="no").code == "no_right"
    assert not Case.objects.exists()


def test_an_earlier_note_no_longer_speaks_once_our_record_is_put_right(world: World, desk: Desk, done: Run) -> None:
    operation = world.credit(done)
    void(note(0, world))
    desk.ask(operation)
    assert desk.settle(desk.case(done), "noted") == "ok"
    assert queries.disputes().count() == 1
    assert desk.settle(doubted(desk, operation), "did_not") == "ok"
    assert queries.disputes().count() == 0
    lookup_brings(operation)
    assert queries.disputes().count() == 0
