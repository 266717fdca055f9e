"""A person's verdict counts beside the other side's word, never against it; and every case can be closed."""

from dataclasses import replace
from typing import Any

import pytest

from reconciliation import queries
from reconciliation.models import Case, Operation
from reconciliation.services import lookups
from runs import clock, record
from runs.models import Run
from runs.services import operate
from runs.tools.base import Lookup, Record
from runs.tools.billing.client import client
from runs.tools.billing.live import CreateCredit
from runs.tools.registry import connection, tool
from tests.desk.conftest import Desk
from tests.engine.conftest import World

DOWN = "http://127.0.0.1:9"


def found(desk: Desk, operation: Operation, *records: Record) -> None:
    """A lookup brings these, whatever billing has."""
    lookups.record_lookup(
        operation_id=operation.pk,
        lookup=Lookup(records=records, pages=1),
        problem="",
        asked_at=clock.now(),
        contract=tool(operation.tool).contract,
        actor=desk.tomas,
    )


def shown(operation: Operation, reference: str = "CN-X", **more: Any) -> Record:
    return Record(reference=reference, identity=operation.identity, **more)


def absent(desk: Desk, world: World) -> tuple[Run, Operation]:
    """The credit was settled as not having happened, and it really did not."""
    run = world.unknown("timeout_without_effect")
    case = desk.case(run)
    desk.until_proof()
    assert desk.settle(case, "did_not") == "ok"
    return run, world.credit(run)


def test_it_did_not_happen_ends_at_a_person_who_hears_that_an_admin_said_so(world: World, desk: Desk) -> None:
    run, operation = absent(desk, world)
    assert (operation.state, operation.settled_by, operation.failure_code) == ("failed", "person", "settled_absent")
    run = world.work(run)
    assert (run.state, run.person_code) == ("needs_person", "settled_absent")
    assert run.person_reason == "an admin settled that it did not happen: looked it up in billing"
    assert world.credits() == [] and record.verify(stream=f"run:{run.pk}") is None


def test_none_is_no_proof_before_everything_sent_has_had_its_time(world: World, desk: Desk) -> None:
    run = world.unknown("timeout_without_effect")
    case = desk.case(run)
    assert desk.settle(case, "did_not") == "too_early"
    desk.until_proof()
    assert desk.settle(case, "did_not", ask=False) == "too_early", "that answer was given too early"
    assert desk.settle(case, "did_not") == "ok"


def test_it_has_to_be_asked_after_the_case_was_claimed(world: World, desk: Desk) -> None:
    run = world.unknown("timeout_without_effect")
    desk.until_proof()
    assert desk.ask(world.credit(run)) == "absent"
    case = desk.case(run)
    assert desk.settle(case, "did_not", ask=False) == "not_asked"
    assert desk.settle(case, "did_not") == "ok"


def test_who_cannot_be_asked_has_not_said_none(world: World, desk: Desk, settings: Any) -> None:
    run = world.unknown("timeout_without_effect")
    case = desk.case(run)
    desk.until_proof()
    assert desk.ask(case.operation) == "absent"
    settings.BILLING_URL, right = DOWN, settings.BILLING_URL
    assert desk.settle(case, "did_not") == "unreachable"
    assert world.credit(run).state == "unknown" and Case.objects.get(pk=case.pk).state == "claimed"
    settings.BILLING_URL = right
    assert desk.settle(case, "did_not") == "ok"


def test_where_nobody_could_know_the_evidence_is_enough(
    world: World, desk: Desk, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    weak = replace(CreateCredit.contract, lookup_is_conclusive=False)
    monkeypatch.setattr(CreateCredit, "contract", weak)
    run = world.unknown("timeout_without_effect")
    settings.BILLING_URL = DOWN
    case = desk.case(run)
    assert desk.settle(case, "did_not") == "too_early", "the call that was lost may still arrive"
    desk.until_proof()
    assert desk.settle(case, "did_not") == "ok"


@pytest.mark.parametrize("void", [False, True])
def test_what_was_ever_shown_contradicts_it_unless_it_was_undone(world: World, desk: Desk, void: bool) -> None:
    run = world.unknown("timeout_without_effect")
    operation = world.credit(run)
    desk.until_proof()
    found(desk, operation, shown(operation, mismatch={"amount_minor": ("1", "2")}))
    assert desk.settle(desk.case(run), "did_not") == "seen_recorded"
    if void:
        found(desk, operation, shown(operation, void=True, mismatch={"status": ("issued", "void")}))
    assert desk.settle(desk.case(run), "did_not") == ("ok" if void else "seen_recorded")


def test_a_credit_that_billing_voided_can_be_said_not_to_have_happened(world: World, desk: Desk) -> None:
    """Really made, really voided there; the system itself never sends it again."""
    run = world.unknown("execute_and_timeout")
    case = desk.case(run)
    [made] = world.credits()
    with client(connection("billing")) as billing:
        billing.v1.credit_notes.void_credit_note(made["objects"]["credit_note"])
    desk.until_proof()
    assert desk.settle(case, "did_not") == "ok"
    run = world.work(run)
    assert (run.person_code, len(world.credits())) == ("settled_absent", 1)


def test_a_case_that_the_fresh_look_settled_takes_no_verdict(world: World, desk: Desk) -> None:
    run = world.unknown("execute_and_timeout")
    case = desk.case(run)
    assert desk.settle(case, "did_not") == "resolved"
    case.refresh_from_db()
    assert (case.verdict, world.credit(run).state) == ("by_probe", "succeeded")


# ---- late truth


def late(desk: Desk, world: World) -> tuple[Run, Case]:
    run, operation = absent(desk, world)
    found(desk, operation, shown(operation))
    return run, desk.case(run)


def test_late_truth_is_noted_and_stays(world: World, desk: Desk) -> None:
    run, case = late(desk, world)
    assert case.why == "a lookup names CN-X, but the operation is failed"
    refused = {
        desk.settle(case, verdict, reference="CN-X", other_reference="CN-Y", actual_minor=5)
        for verdict in ("differently", "did_not", "twice")
    }
    assert refused == {"other_amount", "as_recorded", "not_shown"}
    assert list(queries.disputes()) == [case]
    assert desk.settle(case, "noted") == "ok"
    case.refresh_from_db()
    assert (case.state, case.verdict) == ("resolved", "noted")
    assert list(queries.disputes()) == [case], "our record alone still does not tell the truth"
    assert world.credit(run).state == "failed" and record.verify(stream=f"run:{run.pk}") is None


def test_what_is_voided_when_it_comes_to_light_is_no_case(world: World, desk: Desk) -> None:
    _, operation = absent(desk, world)
    found(desk, operation, shown(operation, void=True, mismatch={"status": ("issued", "void")}))
    assert not Case.objects.exclude(state="resolved").exists()


def test_noting_settles_nothing(world: World, desk: Desk) -> None:
    run = world.unknown("timeout_without_effect")
    assert desk.settle(desk.case(run), "noted", ask=False) == "not_settled"


def test_a_cancelled_run_says_what_is_in_dispute(world: World, desk: Desk) -> None:
    run, case = late(desk, world)
    assert operate.cancel(run_id=run.pk, principal=desk.tomas, reason="enough").ok
    run = world.work(run)
    assert run.state == "cancelled" and "Nothing was done" not in run.outcome
    assert f"In dispute ({case.label}): a lookup names CN-X" in run.outcome


# ---- twice


def twice(desk: Desk, world: World) -> Run:
    run = world.unknown("timeout_without_effect")
    operation = world.credit(run)
    case = desk.case(run)
    found(desk, operation, shown(operation, "CN-1"), shown(operation, "CN-2"))
    assert desk.settle(case, "twice", reference="CN-1", other_reference="CN-2") == "ok"
    return run


def test_the_second_record_is_kept_and_a_person_hears_of_it(world: World, desk: Desk) -> None:
    run = twice(desk, world)
    operation = world.credit(run)
    assert (operation.external_reference, operation.other_reference) == ("CN-1", "CN-2")
    assert set(Case.objects.values_list("state", "verdict")) == {("resolved", "twice")}
    run = world.work(run)
    assert (run.state, run.person_code) == ("needs_person", "recorded_twice")
    assert "CN-1 counts, and CN-2 has to be reversed, which is proposed" in run.person_reason
    found(desk, operation, shown(operation, "CN-1"), shown(operation, "CN-2"))
    assert not Case.objects.exclude(state="resolved").exists(), "both are known by now"
    found(desk, operation, shown(operation, "CN-3"))
    assert (
        Case.objects.exclude(state="resolved").get().why
        == "a lookup names CN-3, but the operation is completed as CN-1"
    )


def test_a_cancelled_run_names_the_second_record_too(world: World, desk: Desk) -> None:
    run = twice(desk, world)
    assert operate.cancel(run_id=run.pk, principal=desk.tomas, reason="enough").ok
    run = world.work(run)
    assert run.state == "cancelled" and "CN-1" in run.outcome
    assert "billing has it twice: CN-2 has to be reversed there." in run.outcome
