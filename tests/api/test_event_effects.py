"""What an event changes: somebody looks. A real sandbox is asked; nothing is settled by the event itself."""

import itertools
from typing import Any

import pytest

from agentops.events import process_events
from reconciliation.models import Case, Observation, Operation
from reconciliation.services import looks
from runs import record
from runs.models import Event, ExternalEvent, Run
from tests.api.caller import deliver, event
from tests.engine.conftest import World
from tests.engine.conftest import sandbox as sandbox  # these three are fixtures
from tests.engine.conftest import worker_parent as worker_parent
from tests.engine.conftest import world as world

CREDIT = "billing.credit_notes.create"
MALFORMED: list[Any] = [
    {}, {"metadata": None}, {"metadata": "x"}, {"metadata": []}, {"metadata": {"operation_identity": 5}},
    {"metadata": {"operation_identity": None}}, {"metadata": {"operation_identity": "x" * 5000}}, {"customer": None},
    {"customer": ["cus"]}, {"customer": {}}, {"customer": "x" * 5000}, [], "text", None, 7,
]  # fmt: skip


def about_credit(identity: str, *, event_id: str = "evt_c", kind: str = "credit_note.created") -> dict[str, Any]:
    return event(event_id, kind, {"id": "cn_x", "metadata": {"operation_identity": identity}})


def lost_credit(world: World, *, looks: str = "error") -> tuple[Run, Operation]:
    """A run whose credit was made, with the answer lost and the lookups failing: not confirmed, probing later."""
    world.sandbox.faults({"mode": "execute_and_timeout", "operation": CREDIT, "times": 1})
    run = world.work(world.start("CS-8815"), until=lambda one: one.state == "outcome_unknown")
    operation = Operation.objects.get(run=run)
    assert operation.state == "unknown" and len(world.credits()) == 1
    Operation.objects.filter(pk=operation.pk).update(next_probe_at="2100-01-01T00:00Z")
    Run.objects.filter(pk=run.pk).update(wake_at="2100-01-01T00:00Z")
    return run, operation


def test_an_event_about_our_credit_brings_the_probe_forward(world: World) -> None:
    run, operation = lost_credit(world)
    assert deliver(about_credit(operation.identity)).json() == {"received": True, "first": True}
    assert process_events(limit=10) == 1
    operation.refresh_from_db()
    assert operation.state == "unknown"  # an event never settles
    assert operation.next_probe_at is not None and operation.next_probe_at.year < 2100
    run = world.work(run)
    operation.refresh_from_db()
    assert (run.state, operation.state, operation.settled_by) == ("completed", "succeeded", "probe")
    assert len(world.credits()) == 1
    assert Observation.objects.filter(operation=operation, source="probe", finding="found").count() == 1


def test_a_forged_success_settles_nothing(world: World) -> None:
    """The other side has no such credit: an event that says so makes us look, and looking decides."""
    world.sandbox.faults({"mode": "timeout_without_effect", "operation": CREDIT, "times": 1})
    run = world.work(world.start("CS-8815"), until=lambda one: one.state == "outcome_unknown")
    operation = Operation.objects.get(run=run)
    assert not world.credits()
    deliver(about_credit(operation.identity))
    process_events(limit=10)
    operation.refresh_from_db()
    assert operation.state == "unknown"
    assert world.work(run).state == "completed" and len(world.credits()) == 1


def test_an_invoice_event_makes_open_requests_look_again(world: World) -> None:
    run = world.work(world.start())
    assert run.state == "awaiting_approval" and run.facts_wanted_at is None
    before = world.request(run)
    world.sandbox.correct(world.named("INV-2041"), total_minor=1_500_000)
    deliver(event("evt_i", "invoice.updated", {"customer": before.proposal.effect["customer"]}))
    process_events(limit=10)
    run.refresh_from_db()
    assert run.facts_wanted_at is not None and run.wake_at is not None
    assert "1 request" in ExternalEvent.objects.get().result
    world.work(run, until=lambda one: world.request(one).pk != before.pk or one.state == "needs_person")
    before.refresh_from_db()
    assert before.state == "superseded" and not world.credits()


def test_events_about_nothing_of_ours_and_malformed_ones_are_worked_off(world: World) -> None:
    run = world.work(world.start())
    state = Run.objects.filter(pk=run.pk).values().get()
    kinds = ("credit_note.created", "invoice.updated", "customer.created", "x")
    bodies = [about_credit("local/billing.create_credit/none", event_id="evt_n")]
    for number, (thing, kind) in enumerate(itertools.product(MALFORMED, kinds)):
        bodies.append({**event(f"evt_{number}", kind), "data": {"object": thing}})
    bodies += [{"id": f"evt_d{n}", "type": "invoice.paid", "data": data} for n, data in enumerate((None, [], "x", 1))]
    for body in bodies:
        assert deliver(body).status_code == 200
    assert process_events(limit=1000) == len(bodies)
    assert not ExternalEvent.objects.filter(processed_at=None).exists()
    assert ExternalEvent.objects.filter(result="no operation of ours").count() >= 1
    assert Run.objects.filter(pk=run.pk).values().get() == state


THREE = {  # what billing tells of one credit, in the order in which it happened
    "pending": ("credit_note.created", "pending"),
    "succeeded": ("credit_note.updated", "issued"),
    "settled": ("credit_note.updated", "settled"),
}


@pytest.mark.parametrize("order", list(itertools.permutations(THREE)), ids="-".join)
def test_d7_in_every_order_and_twice_the_end_is_the_same(world: World, order: tuple[str, ...]) -> None:
    """The first event makes us look, looking settles it; the two others, and every one once more, make us look again,
    once for all of them, and billing shows what it did."""
    run, operation = lost_credit(world)

    def tell(name: str, sent: str) -> None:
        kind, status = THREE[name]
        body = about_credit(operation.identity, event_id=f"evt_{name}_{sent}", kind=kind)
        body["data"]["object"]["status"] = status
        for first in (True, False):
            assert deliver(body).json()["first"] is first

    tell(order[0], "early")
    process_events(limit=10)
    run = world.work(run)
    operation.refresh_from_db()
    settled = (operation.state, operation.external_reference, operation.settled_at, operation.settled_by)
    assert settled[0] == "succeeded" and settled[3] == "probe"
    ended = (run.state, run.outcome, run.finished_at)
    for name, sent in (*((one, "early") for one in order[1:]), *((one, "late") for one in order)):
        tell(name, sent)
    process_events(limit=100)
    assert looks.look(operation_id=operation.pk) is not None and looks.look(operation_id=operation.pk) is None
    operation.refresh_from_db()
    run.refresh_from_db()
    assert settled == (operation.state, operation.external_reference, operation.settled_at, operation.settled_by)
    assert ended == (run.state, run.outcome, run.finished_at) and run.state == "completed"
    assert set(ExternalEvent.objects.values_list("times_received", flat=True)) == {2}
    # each is told by what came of it, and in the run's own record
    results = list(ExternalEvent.objects.values_list("result", flat=True))
    assert set(results) == {"billing is asked about the operation"}
    told = Event.objects.filter(stream=f"run:{run.pk}", kind="event.received").count()
    assert told == len(results) == 6 and not Case.objects.exists()
    assert record.verify(stream=f"run:{run.pk}") is None
    assert len(world.credits()) == 1
