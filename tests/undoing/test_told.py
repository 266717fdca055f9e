"""What billing's events do to a credit and to its reversal, delivered as the stand-in really sends them: doubled, late,
in another order, forged, wrongly signed, before the answer. They hint at a lookup; the ledger has one of each."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from agentops.events import process_events
from reconciliation.models import Case, Operation
from reconciliation.services import looks
from runs import record
from runs.models import ExternalEvent
from tests.api.caller import EVENTS
from tests.engine.conftest import CREATE
from tests.sandbox import receiver as receiving
from tests.sandbox.receiver import Receiver
from tests.sandbox_process import WEBHOOK_SECRET
from tests.undoing.conftest import VOID, Undoing

MODES: list[tuple[str, dict[str, Any]]] = [
    ("events_duplicate", {"copies": 4}),
    ("events_reorder", {"seconds": 0.5}),
    ("events_delay", {"seconds": 0.5}),
    ("events_forged", {"signed": False}),
    ("events_forged", {"signed": True}),
    ("events_wrong_signature", {}),
    ("event_before_response", {}),
]


@pytest.fixture
def told(undo: Undoing, settings: Any) -> Iterator[Receiver]:
    settings.BILLING_WEBHOOK_SECRET = WEBHOOK_SECRET
    with receiving.running() as receiver:
        undo.world.sandbox.settings(webhook_url=receiver.url)
        yield receiver
        undo.world.sandbox.settings(webhook_url=None)


def pass_on(told: Receiver, undo: Undoing, *, at_least: int) -> list[int]:
    """Everything that has arrived goes to the product as it is; what it is answered."""
    arrived = told.wait(at_least)
    del told.arrived[:]
    client = Client(raise_request_exception=False)
    answers = [
        client.post(EVENTS, raw, content_type="application/json", headers={"Stripe-Signature": signature}).status_code
        for _, raw, signature in arrived
    ]
    assert set(answers) <= {200, 202, 400}, answers
    process_events(limit=100)
    for operation_id in looks.due(limit=100):
        looks.look(operation_id=operation_id)
    undo.relay()
    return answers


@pytest.mark.parametrize(
    ("mode", "parameters"), MODES, ids=[f"{mode}-{'-'.join(map(str, p.values()))}" for mode, p in MODES]
)
def test_a_credit_and_its_reversal(undo: Undoing, told: Receiver, mode: str, parameters: dict[str, Any]) -> None:
    undo.world.fault(mode, CREATE, **parameters)
    first, credit = undo.credited()
    answers = pass_on(told, undo, at_least=1)
    run = undo.approved(credit)
    undo.world.fault(mode, VOID, **parameters)
    run = undo.world.work(run)
    undo.relay()
    answers += pass_on(told, undo, at_least=1)
    assert [used for _, used in undo.world.used()] == [1, 1], "both really happened"
    if mode in ("events_wrong_signature", "events_forged") and not parameters.get("signed"):
        assert 400 in answers
    assert (first.state, run.state, undo.state(credit)) == ("completed", "completed", "compensated"), run.person_reason
    assert (len(undo.world.credits()), len(undo.voids())) == (1, 1)
    assert not Case.objects.exclude(state="resolved").exists()
    assert not ExternalEvent.objects.filter(processed_at__isnull=True).exists()
    for one in (first, run):
        assert record.verify(stream=f"run:{one.pk}") is None


def test_a_credit_that_billing_takes_back_by_itself(undo: Undoing, told: Receiver) -> None:
    """The event says so; it is looked up, and a person has it. Nothing is done about it by itself."""
    undo.world.fault("accepted_then_failed_event", CREATE, seconds=0.5)
    _, credit = undo.credited()
    deadline = time.monotonic() + 120
    while not Case.objects.filter(operation=credit).exists():
        assert time.monotonic() < deadline, [json.loads(raw)["type"] for _, raw, _ in told.arrived]
        pass_on(told, undo, at_least=0)
        time.sleep(0.05)
    assert undo.world.used() == [("accepted_then_failed_event", 1)]
    assert Case.objects.get(operation=credit).state == "open" and undo.state(credit) == "succeeded"
    assert len(undo.world.credits()) == 1 and undo.voids() == []
    assert Operation.objects.filter(tool=credit.tool).count() == 1
