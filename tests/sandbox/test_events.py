"""Webhooks: signed, in the background, retried, and wrong in every way that can be asked for."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
import stripe

from tests.sandbox import receiver as receiving
from tests.sandbox.places import Place
from tests.sandbox.receiver import Receiver, event_of


@pytest.fixture
def receiver(place: Place) -> Iterator[Receiver]:
    with receiving.running() as receiver:
        place.sandbox.settings(webhook_url=receiver.url)
        yield receiver
        place.sandbox.settings(webhook_url=None)


def _types(receiver: Receiver, count: int) -> list[str]:
    return [event_of(delivery).type for delivery in receiver.wait(count)]


def test_events_are_signed_and_tell_of_the_change(place: Place, receiver: Receiver) -> None:
    note = place.credit(500, identity=f"{place.number}/a")
    events = [event_of(delivery) for delivery in receiver.wait(2)]
    assert [event.type for event in events] == ["invoice.updated", "credit_note.created"]
    updated, created = events
    assert created.data.object.id == note.id
    assert created.data.object.metadata["operation_identity"] == f"{place.number}/a"
    assert updated.data.previous_attributes["amount_remaining"] == 1_200_000
    assert place.billing().v1.events.retrieve(created.id).data.object["id"] == note.id
    listed = [item for item in place.sandbox.events() if item["event"] == created.id]
    assert [(item["state"], item["attempts"], item["last_status"]) for item in listed] == [("delivered", 1, 200)]


def test_a_correction_fires_finalized_voided_and_updated(place: Place, receiver: Receiver) -> None:
    revision = place.sandbox.correct(place.number, total_minor=900_000)
    events = [event_of(delivery) for delivery in receiver.wait(3)]
    assert [(event.type, event.data.object["id"]) for event in events] == [
        ("invoice.finalized", revision["id"]),
        ("invoice.voided", place.invoice),
        ("invoice.updated", place.invoice),
    ]
    assert events[2].data.object["latest_revision"] == revision["id"]


def test_a_failed_delivery_is_tried_again(place: Place, receiver: Receiver) -> None:
    receiver.statuses = [500]
    place.credit(500, identity=f"{place.number}/a")
    arrived = [event_of(delivery).id for delivery in receiver.wait(3)]
    assert len(set(arrived)) == 2
    tried = {item["event"]: item["attempts"] for item in place.sandbox.events()}
    assert tried[arrived[0]] == 2


def _event_fault(place: Place, mode: str, **params: Any) -> None:
    match = {"event_type": "credit_note.created", "invoice": place.number}
    place.sandbox.faults({"mode": mode, "operation": "billing.*", "match": match, "params": params})


def test_an_event_comes_several_times(place: Place, receiver: Receiver) -> None:
    _event_fault(place, "events_duplicate", copies=3)
    place.credit(500, identity=f"{place.number}/a")
    ids = [event_of(delivery).id for delivery in receiver.wait(4)]
    assert len(ids) == 4 and len(set(ids)) == 2


def test_events_come_in_another_order(place: Place, receiver: Receiver) -> None:
    _event_fault(place, "events_reorder", seconds=20)
    note = place.credit(500, identity=f"{place.number}/a")
    place.billing().v1.credit_notes.void_credit_note(note.id)
    types = _types(receiver, 4)
    assert types.index("credit_note.created") > types.index("invoice.updated", 1)


def test_an_event_comes_late(place: Place, receiver: Receiver) -> None:
    _event_fault(place, "events_delay", seconds=1.5)
    before = time.monotonic()
    place.credit(500, identity=f"{place.number}/a")
    arrived = {event_of(delivery).type: delivery[0] for delivery in receiver.wait(2)}
    assert arrived["credit_note.created"] - before >= 1.5


@pytest.mark.parametrize("signed", [False, True])
def test_a_forged_event_comes_beside_the_true_one(place: Place, receiver: Receiver, signed: bool) -> None:
    _event_fault(place, "events_forged", signed=signed)
    note = place.credit(500, identity=f"{place.number}/a")
    true, forged = receiver.wait(3)[1:3]
    assert event_of(true).data.object.id == note.id
    if not signed:
        with pytest.raises(stripe.SignatureVerificationError):
            event_of(forged)
        assert b'"amount": 1000' in forged[1]
        return
    event = event_of(forged)
    assert event.data.object.id != note.id and event.data.object.amount == 1000
    with pytest.raises(stripe.InvalidRequestError):
        place.billing().v1.events.retrieve(event.id)


def test_a_true_event_with_a_wrong_signature(place: Place, receiver: Receiver) -> None:
    _event_fault(place, "events_wrong_signature")
    note = place.credit(500, identity=f"{place.number}/a")
    wrong = receiver.wait(2)[1]
    assert note.id.encode() in wrong[1]
    with pytest.raises(stripe.SignatureVerificationError):
        event_of(wrong)


def test_the_event_can_come_before_the_answer(place: Place, receiver: Receiver) -> None:
    # Slower than the background thread's poll, which must not take the second event out of the call's hands.
    receiver.before_answer = lambda: time.sleep(0.5)
    place.sandbox.faults({"mode": "event_before_response", "match": {"invoice": place.number}})
    place.credit(500, identity=f"{place.number}/a")
    assert receiver.answered == 2 and len(receiver.arrived) == 2


def test_an_accepted_credit_note_can_fail_later(place: Place, receiver: Receiver) -> None:
    mode = "accepted_then_failed_event"
    place.sandbox.faults({"mode": mode, "match": {"invoice": place.number}, "params": {"seconds": 0.2}})
    note = place.credit(500, identity=f"{place.number}/a")
    assert note.status == "issued"
    assert "credit_note.voided" in _types(receiver, 4)
    v1 = place.billing().v1
    assert v1.credit_notes.retrieve(note.id).status == "void"
    assert v1.invoices.retrieve(place.invoice).amount_remaining == 1_200_000
    rows = place.sandbox.ledger(object=note.id)
    assert [(row["operation"], row["identity"]) for row in rows] == [
        ("billing.credit_notes.create", f"{place.number}/a"),
        ("billing.credit_notes.void", None),
    ]
