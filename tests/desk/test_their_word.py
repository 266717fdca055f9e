"""What is said to have happened accounts for everything that billing shows, and one record settles one operation."""

import datetime as dt
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections

from reconciliation import their_names
from reconciliation.models import Case, Observation, Operation, TheirName
from runs import record
from runs.models import Run
from runs.tools.base import Record
from tests.desk.conftest import Desk
from tests.desk.credits import again, note_id, reference, void
from tests.desk.test_verdicts import DOWN, found, shown
from tests.engine.conftest import World

WRONG_AMOUNT = {"amount_minor": ("120000", "60000")}


def nothing_recorded(case: Case) -> None:
    operation = Operation.objects.get(pk=case.operation_id)
    assert (operation.state, operation.external_reference, operation.settled_by) == ("unknown", None, "")
    assert set(Case.objects.filter(operation=operation).values_list("verdict", flat=True)) == {""}
    assert not Observation.objects.filter(operation=operation, source="person").exists()
    assert not TheirName.objects.filter(operation=operation).exists()
    assert record.verify(stream=f"run:{operation.run_id}") is None


# ---- every record that stands


def test_one_or_other_is_not_taken_while_billing_shows_two(world: World, desk: Desk) -> None:
    run = world.unknown("execute_and_timeout")
    case = desk.case(run)
    second = again(world.credit(run))
    first = reference(world)
    assert desk.settle(case, "happened", reference=first) == "left_out"
    assert desk.settle(case, "differently", reference=second, actual_minor=120_000) == "left_out"
    assert desk.settle(case, "twice", reference=first, other_reference="CN-TYPO") == "left_out"
    nothing_recorded(case)
    assert desk.settle(case, "twice", reference=first, other_reference=second) == "ok"
    operation = world.credit(run)
    assert (operation.external_reference, operation.other_reference) == (first, second)


def test_twice_is_not_taken_for_three(world: World, desk: Desk) -> None:
    run = world.unknown("execute_and_timeout")
    operation, case = world.credit(run), desk.case(run)
    first, second, third = reference(world), again(operation), again(operation)
    assert desk.settle(case, "twice", reference=first, other_reference=second) == "left_out"
    nothing_recorded(case)
    void(world, 2)
    assert desk.settle(case, "twice", reference=first, other_reference=third) == "undone"
    assert desk.settle(case, "twice", reference=first, other_reference=second) == "ok"


def test_two_names_of_one_record_are_not_two_records(world: World, desk: Desk) -> None:
    world.fault("wrong_amount", amount_minor=60_000)
    run = world.work(world.approved(), until=lambda one: world.credit(one).state == "unknown")
    case = desk.case(run)
    assert desk.settle(case, "twice", reference=reference(world), other_reference=note_id(world)) == "same_record"
    nothing_recorded(case)


def test_what_billing_no_longer_shows_still_has_to_be_accounted_for(world: World, desk: Desk, settings: Any) -> None:
    run = world.unknown("timeout_without_effect")
    operation, case = world.credit(run), desk.case(run)
    found(desk, operation, shown(operation, "CN-1", mismatch=WRONG_AMOUNT))
    settings.BILLING_URL = DOWN  # nor does it help that nobody answers
    assert desk.settle(case, "happened", reference="CN-9") == "left_out"
    nothing_recorded(case)
    # what nobody could be asked about may be named beside it
    assert desk.settle(case, "twice", reference="CN-1", other_reference="CN-2") == "ok"


# ---- as billing shows it


def test_it_happened_is_not_taken_for_another_amount(world: World, desk: Desk) -> None:
    world.fault("wrong_amount", amount_minor=60_000)
    run = world.work(world.approved(), until=lambda one: world.credit(one).state == "unknown")
    case, named = desk.case(run), reference(world)
    assert desk.settle(case, "happened", reference=named) == "not_as_sent"
    assert desk.settle(case, "differently", reference="CN-TYPO", actual_minor=60_000) == "left_out"
    assert desk.settle(case, "differently", reference=named, actual_minor=90_000) == "other_amount"
    nothing_recorded(case)
    assert desk.settle(case, "differently", reference=note_id(world), actual_minor=60_000) == "ok"
    operation = world.credit(run)
    assert (operation.external_reference, operation.real_minor) == (named, 60_000), "by the record's own reference"


def test_a_second_one_in_another_currency_cannot_be_booked(world: World, desk: Desk) -> None:
    run = world.unknown("timeout_without_effect")
    operation, case = world.credit(run), desk.case(run)
    strange = shown(operation, "CN-2", mismatch={"currency": ("USD", "EUR")})
    found(desk, operation, shown(operation, "CN-1"), strange)
    assert desk.settle(case, "twice", reference="CN-1", other_reference="CN-2") == "no_amount"
    nothing_recorded(case)


def test_it_happened_is_not_taken_against_a_conclusive_none(world: World, desk: Desk) -> None:
    run = world.unknown("timeout_without_effect")
    case = desk.case(run)
    desk.until_proof()
    more: dict[str, Any] = {"reference": "CN-TYPO", "actual_minor": 5, "other_reference": "CN-2"}
    refused = {desk.settle(case, verdict, **more) for verdict in ("happened", "differently", "twice")}
    assert refused == {"none_recorded"}
    nothing_recorded(case)
    assert desk.settle(case, "did_not") == "ok"


def test_what_is_void_did_not_happen(world: World, desk: Desk) -> None:
    run = world.unknown("execute_and_timeout")
    case, named = desk.case(run), reference(world)
    void(world)
    assert desk.settle(case, "happened", reference=named) == "undone"
    desk.until_proof()
    assert desk.settle(case, "happened", reference="CN-TYPO") == "none_recorded"
    nothing_recorded(case)


def test_a_persons_word_is_never_called_confirmed_by_billing(world: World, desk: Desk, settings: Any) -> None:
    run = world.unknown("execute_and_timeout")
    case, named = desk.case(run), reference(world)
    settings.BILLING_URL, right = DOWN, settings.BILLING_URL
    assert desk.settle(case, "happened", reference=named) == "ok"
    settings.BILLING_URL = right
    run = world.work(run)
    assert run.state == "completed" and "settled by an admin's evidence" in run.outcome
    assert "confirmed" not in run.outcome
    ticket = Operation.objects.get(run=run, tool="helpdesk.update_ticket").effect["resolution"]
    assert "An admin settled it by evidence" in ticket


# ---- one record, one operation


def unsure(world: World, ticket: str) -> Run:
    """A run whose credit is not confirmed, and about which nobody asks by itself for now."""

    def later(**how: float) -> dt.timedelta:
        return dt.timedelta(hours=1) if how.get("base") == 0.5 else dt.timedelta(seconds=0.2)

    def unknown(run: Run) -> bool:
        return Operation.objects.filter(run=run, state="unknown").exists()

    world.fault("timeout_without_effect")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("runs.retry.backoff", later)
        run = world.work(world.start(ticket), until=lambda one: one.state == "awaiting_approval" or unknown(one))
        if run.state == "awaiting_approval":
            world.vote(run)
            run = world.work(run, until=unknown)
    return run


@pytest.mark.parametrize("verdict", ["happened", "differently", "twice"])
def test_one_credit_of_theirs_settles_one_operation_by_any_of_its_names(world: World, desk: Desk, verdict: str) -> None:
    first = world.work(world.approved())
    assert world.credit(first).state == "succeeded"
    case = desk.case(unsure(world, "CS-8815"))
    for name in (note_id(world), reference(world)):
        given: dict[str, Any] = {"reference": name, "other_reference": "CN-2", "actual_minor": 5}
        assert desk.settle(case, verdict, **given) == "reference_taken"
        if verdict == "twice":
            assert desk.settle(case, verdict, reference="CN-2", other_reference=name) == "reference_taken"
    nothing_recorded(case)


def test_what_a_person_named_settles_nothing_else_by_itself(world: World, desk: Desk) -> None:
    """The other order: a person's verdict took the name; then billing shows that record under another identity."""
    named = desk.case(unsure(world, "CS-8812"))
    assert desk.settle(named, "twice", ask=False, reference="CN-1", other_reference="cn_2") == "ok"
    operation = world.credit(unsure(world, "CS-8815"))
    found(desk, operation, Record(reference="CN-9", also=("cn_2",), identity=operation.identity))
    operation.refresh_from_db()
    assert operation.state == "unknown"
    assert "cn_2 already settles another operation" in Case.objects.get(operation=operation).why


@pytest.mark.parametrize("together", [False, True])
def test_of_two_admins_who_name_one_reference_at_once_one_is_told_so(
    world: World, desk: Desk, monkeypatch: pytest.MonkeyPatch, together: bool
) -> None:
    cases = [desk.case(unsure(world, ticket)) for ticket in ("CS-8812", "CS-8815")]
    take: Callable[..., TheirName | None] = their_names.take
    both, codes = threading.Barrier(2, timeout=120), ["", ""]

    def settle(number: int) -> None:
        try:
            codes[number] = desk.settle(cases[number], "happened", ask=False, reference="CN-1")
        finally:
            connections.close_all()

    def meet(**given: Any) -> TheirName | None:
        """All has been looked at. Either both go on at once, or the other admin is done before this one does."""
        if together:
            both.wait()
        elif given["operation"].pk == cases[0].operation_id:
            threads[1].start()
            threads[1].join()
        return take(**given)

    monkeypatch.setattr(their_names, "take", meet)
    threads = [threading.Thread(target=settle, args=[number]) for number in range(2)]
    for thread in threads if together else threads[:1]:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes) == ["ok", "reference_taken"]
    assert together or codes == ["reference_taken", "ok"]
    nothing_recorded(cases[codes.index("reference_taken")])
    settled = cases[codes.index("ok")]
    settled.refresh_from_db()
    operation = Operation.objects.get(pk=settled.operation_id)
    assert (settled.verdict, operation.state, operation.external_reference) == ("happened", "succeeded", "CN-1")
