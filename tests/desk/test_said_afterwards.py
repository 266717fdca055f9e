"""What pages, customers and the API are told once a person has settled an operation: what really was recorded."""

import re
from typing import Any

import pytest
from django.test import Client

from reconciliation.models import Operation, Reservation
from runs.models import Run
from runs.services import operate, principals, tokens
from tests.api.caller import Caller
from tests.desk.conftest import Desk
from tests.desk.credits import again, reference
from tests.desk.test_verdicts import DOWN, absent, found, late, shown
from tests.engine.conftest import World

EVIDENCE = "an admin's evidence"


@pytest.fixture
def different(world: World, desk: Desk) -> Run:
    """Billing made $600.00 of the $1,200.00, and an admin settled it so."""
    world.fault("wrong_amount", amount_minor=60_000)
    run = world.work(world.approved(), until=lambda one: world.credit(one).state == "unknown")
    assert desk.settle(desk.case(run), "differently", reference=reference(world), actual_minor=60_000) == "ok"
    run = world.work(run)
    assert (run.state, run.person_code) == ("needs_person", "recorded_differently")
    return run


def page(world: World, who: str, path: str) -> str:
    """What a person reads there, without marks and whatever the record quotes."""
    browser = Client()
    browser.force_login(world.people[who])
    answer = browser.get(path)
    assert answer.status_code == 200
    return " ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).replace("&#x27;", "'").split())


def after(text: str, said: str, letters: int) -> str:
    return text[(at := text.index(said)) : at + letters]


def test_going_on_after_another_amount_tells_the_customer_the_true_one(different: Run, world: World) -> None:
    support = principals.of_user(user=world.people["priya"])
    assert operate.gather_again(run_id=different.pk, principal=support, reason="settled, go on").ok
    run = world.work(different)
    [draft] = [one.effect["body"] for one in Operation.objects.filter(run=run, tool="helpdesk.draft_reply")]
    [ticket] = [one.effect["resolution"] for one in Operation.objects.filter(run=run, tool="helpdesk.update_ticket")]
    assert run.state == "completed" and f"settled by {EVIDENCE}" in run.outcome
    for said in (draft, ticket, run.outcome):
        assert "$600.00" in said and "1,200" not in said and "confirmed" not in said


def test_the_pages_say_the_amount_that_was_really_made(different: Run, world: World) -> None:
    done = after(page(world, "tomas", f"/runs/{different.pk}/"), "Done in the world so far", 200)
    assert "$600.00" in done and "$1,200.00" not in done
    assert EVIDENCE in done and "confirmed" not in done and "Recorded differently" in done
    operations = page(world, "tomas", f"/runs/{different.pk}/?tab=operations")
    assert "$600.00 USD $1,200.00 USD was sent" in operations and f"settled by {EVIDENCE}" in operations
    person = after(page(world, "priya", f"/needs-a-person/{different.pk}/"), "Done in the world so far", 150)
    assert "$600.00" in person and EVIDENCE in person and "confirmed" not in person
    decided = after(page(world, "maya", f"/approvals/{world.request(different).pk}/"), "Carried out", 130)
    assert "$600.00 USD instead of $1,200.00 USD: an admin settled it by evidence" in decided
    trace = page(world, "tomas", f"/runs/{different.pk}/")
    assert "settled it at $600.00 USD by evidence" in trace and "Settled by evidence" in trace


def test_a_cancelled_run_says_the_amount_that_was_really_made(different: Run, world: World, desk: Desk) -> None:
    assert operate.cancel(run_id=different.pk, principal=desk.tomas, reason="enough").ok
    run = world.work(different)
    assert "(settled at $600.00 USD by an admin's evidence)" in run.outcome and "1,200" not in run.outcome


def test_the_list_of_decisions_shows_what_is_in_dispute(world: World, desk: Desk) -> None:
    run, case = late(desk, world)
    row = after(page(world, "maya", "/approvals/?tab=decided"), "Decided last first", 420)
    assert "In dispute" in row and "Failed" not in row
    decision = page(world, "maya", f"/approvals/{world.request(run).pk}/")
    assert f"In dispute In dispute ({case.label}): a lookup names CN-X" in decision
    assert desk.settle(case, "noted") == "ok"
    row = after(page(world, "maya", "/approvals/?tab=decided"), "Decided last first", 420)
    assert "Put right outside" in row and "Failed" not in row


# ---- twice


def test_what_happened_twice_counts_twice_against_the_limits(world: World, desk: Desk) -> None:
    run = world.unknown("execute_and_timeout")
    case, second = desk.case(run), again(world.credit(run))
    assert desk.settle(case, "twice", reference=reference(world), other_reference=second) == "ok"
    [held] = Reservation.objects.filter(operation=world.credit(run)).select_related("allowance")
    assert len(world.credits()) == 2
    assert held.allowance.settled_minor == sum(one["amount_minor"] for one in world.credits()) == 240_000
    assert held.allowance.reserved_minor == 0


def test_of_two_amounts_each_counts_as_it_was_recorded(world: World, desk: Desk) -> None:
    run = world.unknown("timeout_without_effect")
    operation, case = world.credit(run), desk.case(run)
    less = {"amount_minor": ("120000", "60000")}
    found(desk, operation, shown(operation, "CN-1", mismatch=less), shown(operation, "CN-2"))
    assert desk.settle(case, "twice", reference="CN-1", other_reference="CN-2") == "ok"
    [held] = Reservation.objects.filter(operation=operation).select_related("allowance")
    operation.refresh_from_db()
    assert (operation.real_minor, operation.other_minor, held.allowance.settled_minor) == (60_000, 120_000, 180_000)


# ---- what the API says


def read(world: World, run: Run) -> dict[str, Any]:
    [operation] = Caller(tokens.issue(name="helpdesk", label="Help desk")).read(run.pk).json()["operations"]
    return dict(operation)


def test_the_api_does_not_say_failed_of_what_is_in_dispute(world: World, desk: Desk) -> None:
    run, operation = absent(desk, world)
    told = read(world, run)
    assert (told["outcome"], told["dispute"], told["settled_by"]) == ("failed", None, "person")
    found(desk, operation, shown(operation))
    case = desk.case(run)
    told = read(world, run)
    assert told["outcome"] == "in_dispute"
    assert told["dispute"] == {
        "case": case.label, "state": "open", "our_record": "failed",
        "about": f"In dispute ({case.label}): a lookup names CN-X, but the operation is failed.",
    }  # fmt: skip
    assert desk.settle(case, "noted") == "ok"
    told = read(world, run)
    assert (told["outcome"], told["dispute"]["state"]) == ("in_dispute", "noted")


def test_the_api_says_what_was_really_made_and_how_it_is_known(different: Run, world: World) -> None:
    told = read(world, different)
    assert (told["outcome"], told["settled_by"], told["dispute"]) == ("succeeded", "person", None)
    assert (told["amount_minor"], told["sent_amount_minor"]) == ("60000", "120000")


def test_the_api_names_the_second_record(world: World, desk: Desk) -> None:
    run = world.unknown("execute_and_timeout")
    case, second = desk.case(run), again(world.credit(run))
    assert desk.settle(case, "twice", reference=reference(world), other_reference=second) == "ok"
    assert read(world, run)["other_reference"] == second


def test_where_billing_could_not_be_asked_its_word_is_not_claimed(world: World, desk: Desk, settings: Any) -> None:
    run = world.unknown("execute_and_timeout")
    case, named = desk.case(run), reference(world)
    settings.BILLING_URL = DOWN
    assert desk.settle(case, "happened", reference=named) == "ok"
    said = after(page(world, "maya", f"/approvals/{world.request(run).pk}/"), "Carried out", 90)
    assert f"Carried out as {named}: an admin settled it by evidence." in said
    assert read(world, run)["settled_by"] == "person"
