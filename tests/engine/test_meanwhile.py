"""What happens between two looks: another ticket's credit, a wake during a step, a question asked during a question."""

import threading
from dataclasses import replace
from typing import Any

import pytest
from django.db import connections, transaction

from agentops import engine, events
from agentops.demo.world import STORIES, sandbox_world
from agentops.workflows.registry import workflow
from reconciliation.models import Case, Operation
from reconciliation.services import cases, looks
from runs import clock, transitions
from runs.models import Run
from runs.services import external_events, operate, principals
from runs.tools.billing.client import client
from runs.tools.registry import connection
from tests.engine.conftest import World


def test_two_tickets_about_one_incident_bring_one_credit(world: World) -> None:
    """Both are decided before either is sent, and both are approved: the account gets one credit for the incident."""
    story = next(one for one in STORIES if one.ticket == "CS-8812")
    twin = sandbox_world((world.own(replace(story, ticket="CS-9912", subject="Outage, once more")),))
    world.sandbox.world({"tickets": twin["tickets"]})
    first, second = world.start("CS-8812"), world.start("CS-9912")
    first, second = world.work(first), world.work(second)
    assert world.vote(first).code == world.vote(second).code == "approved"
    ended = sorted([world.work(first).state, world.work(second).state])
    assert ended == ["completed", "needs_person"]
    assert [row["amount_minor"] for row in world.credits()] == [120_000]


def test_a_wake_during_a_step_is_not_parked_over(world: World, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cancel that comes while a source is being waited for is met at once, not after the pause."""
    run = world.work(world.start())
    priya = principals.of_user(user=world.people["priya"])
    with transaction.atomic():
        transitions.want_facts(run=Run.objects.select_for_update(of=("self",)).get(pk=run.pk))
    service = workflow("service_credit")
    gather = type(service).gather

    def slow(self: Any, *, data: dict[str, Any]) -> list[Any]:
        def cancel() -> None:
            operate.cancel(run_id=run.pk, principal=priya, reason="no longer wanted")
            connections.close_all()

        meanwhile = threading.Thread(target=cancel)
        meanwhile.start()
        meanwhile.join()
        settings.BILLING_URL = "http://127.0.0.1:9"
        return gather(self, data=data)

    monkeypatch.setattr(type(service), "gather", slow)
    engine.advance(run_id=run.pk)
    monkeypatch.setattr(type(service), "gather", gather)
    run.refresh_from_db()
    assert run.wake_at is not None and run.wake_at <= clock.now()
    engine.advance(run_id=run.pk)
    run.refresh_from_db()
    assert run.state == "cancelled"


def test_a_question_wanted_during_a_question_is_asked_soon(world: World, settings: Any) -> None:
    run = world.unknown("timeout_without_effect")
    operation = world.credit(run)
    tomas = principals.of_user(user=world.people["tomas"])
    from reconciliation.services import lookups
    from runs.tools.registry import contract

    asked_at = clock.now()
    assert cases.probe_now(operation_id=operation.pk, principal=tomas).ok
    wanted = Operation.objects.get(pk=operation.pk).next_probe_at
    lookups.record_lookup(
        operation_id=operation.pk,
        lookup=None,
        problem="no answer",
        asked_at=asked_at,
        contract=contract(operation.tool),
        actor=tomas,
    )
    assert Operation.objects.get(pk=operation.pk).next_probe_at == wanted


def test_a_void_after_success_is_looked_up_and_opens_a_case(world: World) -> None:
    run = world.work(world.start("CS-8815"))
    operation = world.credit(run)
    note = {"status": "void", "metadata": {"operation_identity": operation.identity}}
    body = {"data": {"object": note}}
    external_events.receive(source="billing", event_id="evt_v", kind="credit_note.voided", payload=body)
    events.process_events(limit=10)
    assert looks.look(operation_id=operation.pk) is not None
    assert not Case.objects.exists(), "billing itself does not say so"
    with client(connection("billing")) as billing:
        billing.v1.credit_notes.void_credit_note(world.credits()[0]["objects"]["credit_note"])
    external_events.receive(source="billing", event_id="evt_w", kind="credit_note.voided", payload=body)
    events.process_events(limit=10)
    events.process_events(limit=10)
    assert looks.look(operation_id=operation.pk) is not None
    case = Case.objects.get(operation=operation)
    assert "voided after it had been confirmed" in case.why
    assert Operation.objects.get(pk=operation.pk).state == "succeeded"


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
    assert world.credits() == [], "the customer has one credit for the incident, and ours is not it"
    first = Operation.objects.get(run=run)
    assert (first.state, first.failure_code, first.attempts_made) == ("failed", "absent", 1), "settled by asking"
    assert run.state == "needs_person"
