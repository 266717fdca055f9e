"""What the breaker found: each test states what ought to hold and fails while it does not."""

import json
import threading
import time

import pytest
from django.db import connections

from agentops.demo.world import STORIES
from agentops.events import process_events
from reconciliation import queries
from reconciliation.models import Attempt, Case, Operation, WorkerProcess
from runs import clock, faultpoints
from runs.models import ExternalEvent, Run
from runs.services import operate
from runs.tools.billing.client import client
from runs.tools.registry import connection, tool
from tests.api.caller import deliver, event
from tests.desk.conftest import Desk
from tests.engine.conftest import World

LIST = "billing.credit_notes.list"
_numbers = iter(range(1, 1000))


def open_cases(run: Run) -> list[str]:
    return [one.why for one in Case.objects.filter(operation__run=run).exclude(state="resolved")]


def note(number: int, world: World) -> str:
    return str(world.credits()[number]["objects"]["credit_note"])


def told(operation: Operation, note_id: str, kind: str = "credit_note.created") -> None:
    """Billing's own event about the credit note as it is now, signed."""
    with client(connection("billing")) as billing:
        thing = billing.v1.credit_notes.retrieve(note_id).to_dict(for_json=True)
    body = event(f"evt_break_{next(_numbers)}", kind, json.loads(json.dumps(thing, default=str)))
    assert thing["metadata"]["operation_identity"] == operation.identity
    assert deliver(body).status_code == 200
    process_events(limit=10)


def void(note_id: str) -> None:
    with client(connection("billing")) as billing:
        billing.v1.credit_notes.void_credit_note(note_id)


def again(operation: Operation) -> str:
    """A real second credit under our identity, as from a receiver that did not keep the key. Its reference."""
    stray = f"{operation.identity}:stray{next(_numbers)}"
    return tool(operation.tool).send(effect=operation.effect, identity=operation.identity, wire_key=stray).reference


# ---- events


def test_a_void_told_while_the_call_is_answered_is_not_lost(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Billing made it, voided it and said so before our answer was recorded."""
    run = world.approved()
    original = faultpoints.reach

    def reach(name: str) -> None:
        original(name)
        if name == "attempt.called" and world.credit(run).state == "sending":
            void(note(0, world))
            told(world.credit(run), note(0, world), "credit_note.voided")

    monkeypatch.setattr(faultpoints, "reach", reach)
    run = world.work(run)
    print(run.state, run.outcome, world.credit(run).state, open_cases(run))
    assert open_cases(run) or world.credit(run).state != "succeeded"


def test_an_event_that_names_a_second_credit_of_ours_is_not_dropped(world: World) -> None:
    run = world.work(world.approved())
    operation = world.credit(run)
    assert (run.state, operation.state) == ("completed", "succeeded")
    second = again(operation)
    assert len(world.credits()) == 2
    told(operation, note(1, world))
    print(second, open_cases(run), ExternalEvent.objects.latest("received_at").result)
    assert any(second in why for why in open_cases(run))


def test_an_event_about_what_we_call_failed_is_not_dropped(world: World, desk: Desk) -> None:
    """The list hides the credit for longer than it should; the run is cancelled; billing's event says that it is."""
    run = world.unknown("execute_and_timeout")
    assert operate.cancel(run_id=run.pk, principal=desk.tomas, reason="enough").ok
    world.fault("lookup_not_found", LIST, times=None)
    run = world.work(run)
    operation = world.credit(run)
    world.sandbox.clear_faults()
    assert len(world.credits()) == 1 and (run.state, operation.state) == ("cancelled", "failed")
    print(run.outcome)
    told(operation, note(0, world))
    assert open_cases(run), "billing told us that the money is out; nobody will ever see it"


def test_voiding_the_second_record_is_not_told_as_voiding_the_first(world: World, desk: Desk) -> None:
    run = world.unknown("execute_and_timeout")
    operation = world.credit(run)
    case = desk.case(run)
    second = again(operation)
    assert desk.ask(operation) == "several"
    with client(connection("billing")) as billing:
        first = billing.v1.credit_notes.retrieve(note(0, world)).number
    assert desk.settle(case, "twice", reference=first, other_reference=second) == "ok"
    void(note(1, world))  # as the product told the admin to
    told(operation, note(1, world), "credit_note.voided")
    assert not [why for why in open_cases(run) if first in why], open_cases(run)


# ---- a process recorded as ended


def test_a_process_recorded_as_ended_opens_no_attempt(
    world: World, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person said that it is gone (its machine slept); it comes back and takes the next run."""
    from reconciliation.services import processes

    mine = processes.current()
    asleep = WorkerProcess.objects.create(host="other", boot="other kernel", pid=7, start_ticks=7)
    monkeypatch.setattr(processes, "current", lambda: asleep)
    assert mine.pk != asleep.pk
    WorkerProcess.objects.filter(pk=asleep.pk).update(ended_at=clock.now())  # what cases.sender_gone writes
    run = world.approved()
    world.fault("execute_and_timeout")
    run = world.work(run, until=lambda one: Attempt.objects.filter(operation__run=one).exists(), seconds=15)
    assert not Attempt.objects.filter(sender=asleep).exists(), "it sends, and its silence counts as proof"


# ---- settled while a call is out


def test_one_found_while_another_call_is_out_is_not_the_end(world: World, desk: Desk) -> None:
    """The first call worked and billing's list lags; the second goes out under a key that billing did not keep. While
    it is out somebody asks: one is found. The second then makes another and its answer is lost."""
    run = world.unknown("execute_and_timeout")
    operation = world.credit(run)
    case = desk.case(run)
    world.sandbox.settings(key_retention_seconds=0)
    world.fault("lookup_not_found", LIST)
    world.fault("ok_slow", seconds=1.6, effect_at="end")
    found: list[str] = []

    def ask() -> None:
        try:
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline:
                if Operation.objects.get(pk=operation.pk).state == "sending":
                    time.sleep(0.3)
                    found.append(desk.ask(operation))
                    return
                time.sleep(0.02)
        finally:
            connections.close_all()

    thread = threading.Thread(target=ask)
    thread.start()
    run = world.work(run)
    thread.join()
    time.sleep(2.5)
    operation.refresh_from_db()
    print(found, [one["amount_minor"] for one in world.credits()], operation.state, run.state, run.outcome)
    print(list(operation.attempts.values_list("number", "wire_key", "result")), open_cases(run), case.pk)
    if len(world.credits()) == 2:
        assert operation.state != "succeeded" or open_cases(run) or operation.other_reference
    else:
        pytest.skip("no second effect")


def test_what_was_sent_and_turned_away_is_not_never_sent(world: World) -> None:
    world.fault("overloaded", times=None, retry_after="none")
    run = world.work(world.approved(), seconds=200)
    operation = world.credit(run)
    sent = world.sandbox.requests(identity=operation.identity)
    print(operation.state, operation.get_state_display(), run.person_reason, operation.attempts_made, len(sent))
    assert operation.get_state_display() != "Never sent" and "could not be reached" not in run.person_reason


def test_a_lookup_that_shows_our_credit_voided_is_not_passed_over(world: World, desk: Desk) -> None:
    run = world.work(world.approved())
    operation = world.credit(run)
    assert operation.state == "succeeded"
    void(note(0, world))
    found = desk.ask(operation)
    print(found, open_cases(run))
    assert open_cases(run)


def test_nothing_is_written_to_the_customer_about_a_credit_known_to_be_voided(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = world.approved()
    original = faultpoints.reach
    done: list[str] = []

    def reach(name: str) -> None:
        original(name)
        if name == "attempt.recorded.after" and not done:
            done.append(note(0, world))
            void(done[0])
            told(world.credit(run), done[0], "credit_note.voided")

    monkeypatch.setattr(faultpoints, "reach", reach)
    run = world.work(run)
    print(run.state, run.outcome, open_cases(run))
    assert open_cases(run)
    assert run.state != "completed", "a case says that it was voided, and the run says confirmed"


# ---- the objection before sending


def test_a_credit_given_by_hand_meanwhile_is_seen_before_sending_again(world: World) -> None:
    """Nothing was made by the first call. On a paid invoice nothing that the approval is bound to changes."""
    story = next(one for one in STORIES if one.ticket == "CS-8812")
    world.sandbox.pay(world.named(story.invoice))
    run = world.unknown("timeout_without_effect")
    assert world.credits() == []
    effect = world.request(run).proposal.effect
    with client(connection("billing")) as billing:
        asked = {"invoice": effect["invoice_id"], "amount": 120_000, "credit_amount": 120_000}
        billing.v1.credit_notes.create({**asked, "metadata": {"incident": effect["incident"]}})
    run = world.work(run)
    print(run.state, run.outcome, run.person_reason, world.credits())
    assert world.credits() == [], "the customer has two credits for one incident"


def test_a_second_thing_that_comes_to_light_does_not_hide_the_first(world: World, desk: Desk) -> None:
    run = world.work(world.approved())
    operation = world.credit(run)
    second = again(operation)
    desk.ask(operation)
    assert any(second in why for why in open_cases(run))
    void(note(0, world))
    told(operation, note(0, world), "credit_note.voided")
    print(open_cases(run), [one.dispute for one in queries.disputes()])
    assert any(second in why for why in open_cases(run)), (
        "money may be out a second time, and the case no longer says so"
    )
