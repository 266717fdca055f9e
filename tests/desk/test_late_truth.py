"""What comes to light late: told while something is out, or after it was settled. It is looked up, never believed and
never dropped; what contradicts our record is a case, and the run tells nobody anything else meanwhile."""

import datetime as dt
import time
from dataclasses import replace
from typing import Any

import pytest
from django.db import transaction

from agentops import engine, relay
from reconciliation import late, queries
from reconciliation.case_opening import open_case
from reconciliation.models import Case, Operation
from reconciliation.services import looks
from runs import clock, faultpoints, record
from runs.models import Event, ExternalEvent, Run
from runs.services import operate
from runs.tools.base import Record
from runs.tools.billing.live import CreateCredit
from tests.desk.conftest import Desk
from tests.desk.outside import again, look_at_what_is_due, lookup_brings, note, open_cases, tell, void, want_look
from tests.engine.conftest import World

LIST = "billing.credit_notes.list"
DOWN = "http://127.0.0.1:9"


def reference(operation: Operation) -> str:
    assert operation.external_reference
    return operation.external_reference


def at(point: str, monkeypatch: pytest.MonkeyPatch, world: World, run: Run, then: Any) -> None:
    """Do `then` the first time that this process reaches the point with the credit under way."""
    original, done = faultpoints.reach, []

    def reach(name: str) -> None:
        original(name)
        if name == point and not done and world.credit(run).state != "none":
            done.append(name)
            then()

    monkeypatch.setattr(faultpoints, "reach", reach)


def voided_meanwhile(point: str, monkeypatch: pytest.MonkeyPatch, world: World) -> Run:
    """Billing makes the credit, voids it and says so, at that point of our own step."""
    run = world.approved()

    def then() -> None:
        void(note(0, world))
        tell(world.credit(run), note(0, world), "credit_note.voided")

    at(point, monkeypatch, world, run, then)
    return world.work(run)


@pytest.mark.parametrize("point", ["attempt.called", "attempt.recorded.after"])
def test_a_void_told_before_the_run_goes_on_stops_it(world: World, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """Whether our own answer was recorded by then or not. The customer is written nothing."""
    run = voided_meanwhile(point, monkeypatch, world)
    operation = world.credit(run)
    [case] = Case.objects.filter(operation=operation)
    assert case.why == f"a lookup shows that {reference(operation)} was voided after it had been confirmed"
    assert (run.state, run.person_code) == ("needs_person", "in_dispute")
    assert case.label in run.person_reason and case.why in run.person_reason
    assert [one["operation"] for one in world.effects()] == ["billing.credit_notes.create"]
    assert record.verify(stream=f"run:{run.pk}") is None


def test_a_run_sent_on_stops_at_the_same_dispute_also_when_it_was_put_right_outside(
    world: World, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its next actions would tell the customer of the credit as our record has it: a person ends it by hand."""
    run = voided_meanwhile("attempt.called", monkeypatch, world)
    case = desk.case(run)
    for _ in range(2):
        assert operate.gather_again(run_id=run.pk, principal=desk.tomas, reason="go on").ok
        run = world.work(run)
        assert (run.state, run.person_code) == ("needs_person", "in_dispute")
        if case.state != "resolved":
            assert desk.settle(case, "noted") == "ok"
            case.refresh_from_db()
    assert "Put right outside" in run.person_reason and len(world.effects()) == 1


def test_an_event_that_names_a_second_credit_of_ours_is_looked_up(world: World) -> None:
    run = world.work(world.approved())
    operation = world.credit(run)
    assert (run.state, operation.state) == ("completed", "succeeded")
    second = again(operation)
    tell(operation, note(1, world))
    assert look_at_what_is_due() == 1
    assert open_cases(run) == [f"a lookup names {second}, but the operation is completed as {reference(operation)}"]
    assert len(world.credits()) == 2, "and nothing is sent"


def test_that_our_very_credit_was_made_is_no_news(world: World) -> None:
    run = world.work(world.approved())
    operation = world.credit(run)
    tell(operation, note(0, world))
    assert ExternalEvent.objects.latest("received_at").result == "what it tells is recorded already"
    assert look_at_what_is_due() == 0 and world.credit(run).look_wanted_at is None


def test_a_forged_event_about_a_settled_operation_changes_nothing(world: World) -> None:
    run = world.work(world.approved())
    operation = world.credit(run)
    want_look(operation)
    assert look_at_what_is_due() == 1
    assert not open_cases(run) and world.credit(run).state == "succeeded"


def test_an_event_about_what_we_call_failed_is_looked_up(world: World, desk: Desk) -> None:
    """The list hides the credit for longer than it should; the run is cancelled; billing's event says that it is."""
    desk.really_waits = True
    run = world.unknown("execute_and_timeout")
    assert operate.cancel(run_id=run.pk, principal=desk.tomas, reason="enough").ok
    world.fault("lookup_not_found", LIST, times=None)
    run = world.work(run)
    operation = world.credit(run)
    world.sandbox.clear_faults()
    assert len(world.credits()) == 1 and (run.state, operation.state) == ("cancelled", "failed")
    tell(operation, note(0, world))
    assert look_at_what_is_due() == 1
    [why] = open_cases(run)
    assert why.endswith("but the operation is failed")


def test_voiding_the_second_record_is_not_told_as_voiding_the_first(world: World, desk: Desk) -> None:
    run = world.unknown("execute_and_timeout")
    operation = world.credit(run)
    case = desk.case(run)
    second = again(operation)
    assert desk.ask(operation) == "several"
    [first] = {one["reference"] for one in _shown(operation)} - {second}
    assert desk.settle(case, "twice", reference=first, other_reference=second) == "ok"
    void(note(1, world))  # as the product told the admin to
    tell(operation, note(1, world), "credit_note.voided")
    assert look_at_what_is_due() == 1 and open_cases(run) == []
    void(note(0, world))
    tell(operation, note(0, world), "credit_note.voided")
    look_at_what_is_due()
    assert open_cases(run) == [f"a lookup shows that {first} was voided after it had been confirmed"]


def _shown(operation: Operation) -> list[dict[str, Any]]:
    return list(operation.observations.filter(source="probe").latest("asked_at").raw["records"])


def test_a_lookup_that_shows_our_credit_voided_is_a_case_and_noted_once(world: World, desk: Desk) -> None:
    run = world.work(world.approved())
    operation = world.credit(run)
    void(note(0, world))
    assert desk.ask(operation) == "different" and len(open_cases(run)) == 1
    assert desk.settle(desk.case(run), "noted") == "ok"
    assert desk.ask(operation) == "different" and open_cases(run) == [], "that is noted already"
    second = again(operation)
    desk.ask(operation)
    assert [second in why for why in open_cases(run)] == [True]


def test_what_was_noted_is_told_apart_by_its_code_and_not_by_its_sentence(world: World, desk: Desk) -> None:
    """Whoever brings it, and however it was said. What is new is a case as before."""
    run = world.work(world.approved())
    operation = world.credit(run)
    ours, sent = reference(operation), ("120000", "60000")
    at_another = Record(reference=ours, identity=operation.identity, mismatch={"amount_minor": sent})
    lookup_brings(operation, at_another)
    case = desk.case(run)
    assert desk.settle(case, "noted") == "ok"
    Case.objects.filter(pk=case.pk).update(why="said in other words by then")
    with transaction.atomic():
        locked = Run.objects.select_for_update().get(pk=run.pk)
        operation = Operation.objects.select_for_update().get(pk=operation.pk)

        def judge(found: Record, what: str) -> list[str]:
            late.judge(run=locked, operation=operation, found=found, what=what, actor=run.agent)
            return open_cases(run)

        assert judge(at_another, "what came late") == []
        assert len(judge(replace(at_another, mismatch={"amount_minor": ("120000", "60001")}), "a lookup")) == 1
        assert len(judge(replace(at_another, mismatch={}, void=True), "a lookup")[0].split("; ")) == 2
        assert len(judge(Record(reference="CN-9", identity=operation.identity), "a lookup")[0].split("; ")) == 3
    [codes] = Case.objects.exclude(state="resolved").values_list("doubts", flat=True)
    assert [code.split(":")[:2] for code in codes] == [["otherwise", ours], ["voided", ours], ["another", "CN-9"]]


def test_our_own_reference_at_another_amount_is_a_case(world: World, desk: Desk) -> None:
    run = world.work(world.approved())
    operation = world.credit(run)
    shown = Record(
        reference=reference(operation), identity=operation.identity, mismatch={"amount_minor": ("120000", "60000")}
    )
    lookup_brings(operation, shown)
    [why] = open_cases(run)
    assert f"{reference(operation)} otherwise than it was sent" in why and "600.00" in why


def test_a_second_thing_that_comes_to_light_does_not_hide_the_first(world: World, desk: Desk) -> None:
    run = world.work(world.approved())
    operation = world.credit(run)
    second = again(operation)
    desk.ask(operation)
    assert [second in why for why in open_cases(run)] == [True]
    void(note(0, world))
    for _ in range(2):
        tell(operation, note(0, world), "credit_note.voided")
        look_at_what_is_due()
    [why] = open_cases(run)
    assert second in why and why.count("was voided after") == 1
    [added] = Event.objects.filter(stream=f"run:{run.pk}", kind="case.added")
    assert "was voided after" in added.data["why"]
    assert [second in one.dispute for one in queries.disputes()] == [True]


# ---- looking is bounded


def test_a_settled_operation_is_looked_at_again_once_it_must_be_shown_and_then_no_more(world: World) -> None:
    run = world.work(world.approved())
    operation = world.credit(run)
    second = again(operation)
    world.fault("lookup_not_found", LIST)  # their list lags for as long as their contract says it may
    tell(operation, note(1, world))
    assert look_at_what_is_due() == 1 and open_cases(run) == []
    again_at = world.credit(run).next_probe_at
    assert again_at is not None
    while clock.now() < again_at:
        time.sleep(0.02)
    assert look_at_what_is_due() == 1
    assert [second in why for why in open_cases(run)] == [True]
    assert (world.credit(run).look_wanted_at, world.credit(run).next_probe_at) == (None, None)


def test_the_relay_has_it_looked_up_although_the_run_is_over(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    # the look after it, once all must have shown, is not due here, however slow this machine is
    monkeypatch.setattr(CreateCredit, "contract", replace(CreateCredit.contract, settling=dt.timedelta(hours=1)))
    run = world.work(world.approved())
    hinted: list[str] = []
    monkeypatch.setattr(relay.look, "apply_async", lambda args, **_: hinted.append(args[0]))
    busy = relay.Relay()
    busy.run_once()
    assert run.is_over and hinted == []
    operation = world.credit(run)
    want_look(operation)
    assert (busy.run_once(), busy.run_once()) == (1, 0) and hinted == [str(operation.pk)]
    asked = operation.observations.filter(source="probe").count()
    assert (relay.look(hinted[0]), relay.look(hinted[0])) == (1, 0), "asked once, however often it is hinted"
    assert operation.observations.filter(source="probe").count() == asked + 1
    assert relay.look("no id") == 0 and relay.look(str(run.pk)) == 0, "a forged message finds nothing to do"
    assert len(world.credits()) == 1


def test_who_cannot_be_asked_about_a_settled_operation_is_asked_a_few_times_and_then_it_is_a_case(
    world: World, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CreateCredit, "contract", replace(CreateCredit.contract, max_probes=3))
    run = world.work(world.approved())
    operation = world.credit(run)
    want_look(operation)
    settings.BILLING_URL = DOWN
    for _ in range(3):
        Operation.objects.filter(pk=operation.pk).update(next_probe_at=clock.ClockTimestamp())
        assert look_at_what_is_due() == 1
    assert look_at_what_is_due() == 0
    [why] = open_cases(run)
    assert "could not be, 3 times" in why
    assert world.credit(run).look_wanted_at is None


def test_a_run_waits_to_be_told_what_became_of_its_credit(world: World, settings: Any) -> None:
    """Something was told, billing cannot be asked: the run says nothing to anybody until it can."""
    run, url = world.approved(), settings.BILLING_URL
    with pytest.MonkeyPatch.context() as patch:

        def told() -> None:
            want_look(world.credit(run))
            settings.BILLING_URL = DOWN

        at("attempt.called", patch, world, run, told)
        run = world.work(run, until=lambda one: one.state == "waiting")
    assert run.waits_for.startswith("billing to say what became of ") and len(world.effects()) == 1
    settings.BILLING_URL = url
    Operation.objects.filter(run=run).update(next_probe_at=clock.ClockTimestamp())
    Run.objects.filter(pk=run.pk).update(wake_at=clock.ClockTimestamp())
    run = world.work(run)
    assert (run.state, len(world.effects())) == ("completed", 3)


# ---- nothing follows on what is in dispute


def test_what_failed_and_is_in_dispute_is_not_done_anew(world: World, desk: Desk) -> None:
    """An admin settled that it did not happen, sent the run on, and it was approved again; then it comes to light."""
    run = world.unknown("timeout_without_effect")
    case = desk.case(run)
    desk.until_proof()
    assert desk.settle(case, "did_not") == "ok"
    operation = world.credit(run)
    run = world.work(run)
    assert operate.gather_again(run_id=run.pk, principal=desk.tomas, reason="once more").ok
    run = world.work(run)
    assert run.state == "awaiting_approval"
    lookup_brings(operation, Record(reference="CN-X", identity=operation.identity))
    assert world.vote(run).code == "approved"
    run = world.work(run)
    assert (run.state, run.person_code, world.credits()) == ("needs_person", "in_dispute", [])
    assert "CN-X" in run.person_reason and "nothing was done" in run.person_reason
    assert desk.settle(desk.case(run), "noted") == "ok"
    assert operate.gather_again(run_id=run.pk, principal=desk.tomas, reason="put right").ok
    run = world.work(run)
    assert run.state == "awaiting_approval", "a person has put it right, and it may be done anew"


def test_nothing_is_sent_before_what_was_told_has_been_looked_up(world: World, looks_made: list[str]) -> None:
    """It is told while the next action's facts are read."""
    run = world.approved()
    with pytest.MonkeyPatch.context() as patch:
        original = faultpoints.reach

        def reach(name: str) -> None:
            original(name)
            operation = world.credit(run)
            if name == "run.advanced.after" and operation.state == "succeeded" and not operation.look_wanted_at:
                want_look(operation)

        patch.setattr(faultpoints, "reach", reach)
        world.work(run, until=lambda _: bool(looks_made))
    assert looks_made[0] == "billing.create_credit"
    assert world.work(run).state == "completed"


@pytest.fixture
def looks_made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tools of the settled operations that were looked up."""
    made: list[str] = []
    look = looks.look

    def noted(*, operation_id: Any) -> Any:
        seen = look(operation_id=operation_id)
        if seen is not None:
            made.append(seen.operation.tool)
        return seen

    monkeypatch.setattr(looks, "look", noted)
    return made


def test_one_doubt_is_told_once_however_it_is_said_and_another_in_the_same_words_is_told(
    world: World, desk: Desk
) -> None:
    run = world.work(world.approved())
    operation = world.credit(run)
    ours = Record(reference=reference(operation), identity=operation.identity, void=True)
    with transaction.atomic():
        locked = Run.objects.select_for_update().get(pk=run.pk)
        operation = Operation.objects.select_for_update().get(pk=operation.pk)
        for what in ("a lookup", "a late answer", "a lookup"):
            late.judge(run=locked, operation=operation, found=ours, what=what, actor=run.agent)
        [why] = open_cases(run)
        assert why.count("was voided after") == 1

        def said(code: str) -> Case:
            kind = Case.Kind.DIFFERENT
            return open_case(
                run=locked, operation=operation, kind=kind, doubts=[code], why="it is otherwise", actor=run.agent
            )

        assert said("one") == said("one") == said("another")
    [case] = Case.objects.filter(operation=operation)
    assert case.doubts == [f"voided:{reference(operation)}", "one", "another"]
    assert case.why.split("; ")[1:] == ["it is otherwise"] * 2
    assert Event.objects.filter(stream=f"run:{run.pk}", kind="case.added").count() == 2


def test_workers_that_fail_in_any_number_are_one_doubt(world: World) -> None:
    run = world.unknown()
    for claims in (6, 7, 8):
        Run.objects.filter(pk=run.pk).update(
            claims_in_row=claims, lease_until=None, wake_at=clock.ClockTimestamp(), state="outcome_unknown"
        )
        engine.advance(run_id=run.pk)
    [why] = open_cases(run)
    assert why.count("failed on it in a row") == 1
