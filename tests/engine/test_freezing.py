"""Freezes: what they hold, that nothing is sent after one has committed, and that lifting loses nothing."""

import datetime as dt
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction

from agentops import engine
from agentops.relay import Relay
from agentops.steps.base import may_go_on
from approvals import freezes
from approvals.models import Freeze
from approvals.services import freezing, thawing
from reconciliation.models import Attempt
from reconciliation.services import execute
from runs import clock, leases, record, transitions, waiting
from runs.models import Event, Principal, Run
from runs.services import operate, principals
from tests.api.caller import in_thread
from tests.approvals.world import at_once
from tests.engine.conftest import World
from tests.engine.test_together import approved_runs

CREDIT = "tool:billing.create_credit"


@pytest.fixture(autouse=True)
def quiet_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentops.relay.advance.apply_async", lambda args, retry: None)


def priya(world: World) -> Principal:
    return principals.of_user(user=world.people["priya"])


def freeze(world: World, scope: str = "all", reason: str = "billing is wrong") -> Freeze:
    made = freezing.freeze(scope=scope, principal=priya(world), reason=reason)
    assert made.ok and made.freeze is not None
    return made.freeze


def lift(world: World, one: Freeze) -> None:
    assert freezing.lift(freeze_id=one.pk, principal=priya(world), reason="it is mended").ok
    while Freeze.objects.filter(lifted_at__isnull=False, thawed_at__isnull=True).exists():
        Relay().run_once()


def held(run: Run) -> bool:
    return run.frozen_by is not None


@pytest.mark.parametrize(
    ("scope", "state"), [("all", "queued"), ("workflow:service_credit", "queued"), (CREDIT, "authorising")]
)
def test_a_freeze_holds_at_the_next_boundary_and_lifting_lets_everything_go_on(
    world: World, scope: str, state: str
) -> None:
    run = world.start("CS-8815")  # the policy alone allows it
    frozen = freeze(world, scope)
    run = world.work(run, until=held)
    assert (run.state, run.wake_at, run.lease_until, run.frozen_by) == (state, None, None, frozen.pk)
    assert run.waits_for == f"a freeze of {frozen.what} by {priya(world)}: billing is wrong"
    assert engine.advance(run_id=run.pk) == 0 and world.effects() == []
    lift(world, frozen)
    assert world.work(run).state == "completed" and len(world.credits()) == 1
    assert record.verify(stream=f"run:{run.pk}") is None


def test_a_freeze_of_something_else_holds_nothing(world: World) -> None:
    freeze(world, "tool:billing.other")
    freeze(world, "workflow:other")
    assert world.work(world.start("CS-8815")).state == "completed"


def test_what_is_in_flight_is_settled_under_a_freeze_and_then_the_run_is_held(world: World) -> None:
    run = world.unknown()
    frozen = freeze(world)
    run = world.work(run, until=held)
    assert world.credit(run).state == "succeeded" and len(world.credits()) == 1
    lift(world, frozen)
    assert world.work(run).state == "completed" and len(world.credits()) == 1


def test_an_unknown_operation_is_asked_about_but_not_sent_again_under_a_freeze(world: World) -> None:
    run = world.unknown("timeout_without_effect")
    frozen = freeze(world)
    world.work(run, until=lambda one: world.credit(one).probes_made >= 2 or held(one))
    assert Attempt.objects.filter(operation__run=run).count() == 1 and world.credits() == []
    lift(world, frozen)
    run = world.work(run)
    if run.state == "awaiting_approval":  # absence was proved meanwhile: it is proposed, and asked, anew
        assert world.vote(run).code == "approved"
        run = world.work(run)
    assert run.state == "completed" and len(world.credits()) == 1


def test_no_approving_and_no_running_clock_under_a_freeze(world: World) -> None:
    run = world.work(world.start())
    before = world.request(run)
    frozen = freeze(world, CREDIT)
    refused = world.vote(run)
    assert (refused.code, refused.accepted) == ("frozen", False)
    assert "Priya" in refused.detail["freeze"] and "billing is wrong" in refused.detail["freeze"]
    run.refresh_from_db()
    assert run.state == "awaiting_approval" and not world.request(run).votes.exists()
    lift(world, frozen)
    frozen.refresh_from_db()
    assert frozen.lifted_at is not None
    after = world.request(run)
    assert after.respond_by - before.respond_by == after.stopped_for == frozen.lifted_at - frozen.since
    assert after.valid_until == before.valid_until
    assert Event.objects.filter(stream=f"run:{run.pk}", kind="request.moved_on").count() == 1
    thawing.thaw()
    assert world.vote(run).code == "approved" and world.work(run).state == "completed"


def test_a_deadline_that_passes_under_a_freeze_expires_nothing(
    world: World, owner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = world.work(world.start())
    frozen = freeze(world)
    request = world.request(run)
    later = request.respond_by + dt.timedelta(minutes=1)
    with monkeypatch.context() as patch:
        patch.setattr(clock, "now", lambda: later)
        patch.setattr(clock, "read", lambda: later)
        Run.objects.filter(pk=run.pk).update(wake_at=clock.ClockTimestamp())
        engine.advance(run_id=run.pk)
        run.refresh_from_db()
        assert (run.state, world.request(run).state, run.frozen_by) == ("awaiting_approval", "open", frozen.pk)
        assert world.vote(run).code == "frozen"
        lift(world, frozen)
        assert world.request(run).respond_by == min(request.respond_by + (later - frozen.since), request.valid_until)
        assert world.vote(run).code == "approved"


def test_a_request_that_was_overdue_before_the_freeze_stays_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    run = world.work(world.start())
    request = world.request(run)
    later = request.respond_by + dt.timedelta(minutes=1)
    monkeypatch.setattr(clock, "now", lambda: later)
    monkeypatch.setattr(clock, "read", lambda: later)
    freeze(world)
    assert world.vote(run).code == "expired"


def test_rejecting_and_cancelling_are_possible_under_a_freeze(world: World) -> None:
    rejected, cancelled = world.work(world.start()), world.work(world.start("CS-8812", key="second"))
    freeze(world)
    assert world.vote(rejected, choice="reject").code == "rejected"
    assert operate.cancel(run_id=cancelled.pk, principal=priya(world), reason="not wanted").ok
    for run in (rejected, cancelled):
        world.work(run, until=lambda one: one.is_over or held(one))
    assert cancelled.state == "cancelled" and rejected.state in ("rejected", "deciding") and world.effects() == []


def test_many_frozen_runs_are_woken_part_by_part(world: World) -> None:
    frozen = freeze(world)
    runs = [world.start("CS-8815", key=f"k{number}") for number in range(7)]
    for run in runs:
        world.work(run, until=held)
    assert freezing.lift(freeze_id=frozen.pk, principal=priya(world), reason="mended").ok
    assert [thawing.thaw(limit=3) for _ in range(4)] == [3, 3, 1, 0]
    assert Run.objects.filter(frozen_by__isnull=False).count() == 0
    assert Run.objects.filter(wake_at__isnull=True).count() == 0


def test_nothing_is_opened_after_a_freeze_has_committed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers send while somebody freezes. What the ledger shows belongs to attempts from before the freeze; half of
    the workers come to the lock at the very moment at which the freezer does."""
    before = during = 0
    approved = approved_runs(world, 8)
    for runs in (approved[:4], approved[4:]):
        mine = Attempt.objects.filter(operation__run__in=runs, operation__tool="billing.create_credit")
        with monkeypatch.context() as patch:
            one = _race(patch, world, early=runs[:2], late=runs[2:])
        for run in runs:
            world.work(run, until=lambda r: r.is_over or held(r))
        opened = set(mine.values_list("operation__identity", flat=True))
        assert opened and all(attempt.opened_at < one.since for attempt in mine)
        assert {effect["identity"] for effect in world.credits()} >= opened
        stopped = [run for run in runs if held(run)]
        assert len(opened) + len(stopped) == len(runs)
        before, during = before + len(opened), during + len(stopped)
        done = len(world.credits())
        assert [engine.advance(run_id=run.pk) for run in stopped] == [0] * len(stopped)
        assert len(world.credits()) == done
        lift(world, one)
        assert {world.work(run).state for run in runs} == {"completed"}
    assert len(world.credits()) == len(approved)
    assert before >= 2 and during >= 2, (before, during)


def _race(patch: pytest.MonkeyPatch, world: World, *, early: list[Run], late: list[Run]) -> Freeze:
    """Early workers are sending when the freezer comes; late ones and the freezer meet before the lock."""
    gate, sending = threading.Barrier(len(late) + 1), threading.Event()
    waits = {run.pk for run in late}
    opens, locks = execute.open_attempt, freezing._alone

    def open_attempt(**kwargs: Any) -> Any:
        if kwargs["lease"].run_id in waits:
            waits.discard(kwargs["lease"].run_id)
            gate.wait(timeout=120)
        result = opens(**kwargs)
        sending.set()
        return result

    def lock() -> None:
        gate.wait(timeout=120)
        locks()

    patch.setattr(execute, "open_attempt", open_attempt)
    patch.setattr(freezing, "_alone", lock)
    frozen: list[Freeze] = []

    def freezer() -> None:
        assert sending.wait(timeout=120)
        frozen.append(freeze(world, CREDIT))

    jobs = [freezer, *(lambda run=run: engine.advance(run_id=run.pk) for run in (*early, *late))]
    assert not [one for one in at_once(*jobs) if isinstance(one, BaseException)]
    return frozen[0]


def due(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(wake_at=clock.ClockTimestamp())


def test_what_waits_for_a_source_does_not_say_that_it_waits_for_a_lifted_freeze(world: World, settings: Any) -> None:
    run = world.work(world.start())
    asked_for = run.waits_for
    frozen = freeze(world)
    due(run)
    world.work(run, until=held)
    with transaction.atomic():  # somebody opens the request's page
        transitions.want_facts(run=Run.objects.select_for_update().get(pk=run.pk))
    world.work(run, until=lambda one: one.lease_until is None)
    assert freezing.lift(freeze_id=frozen.pk, principal=priya(world), reason="x").ok
    settings.HELPDESK_URL = "http://127.0.0.1:9"  # the relay has not come yet; a worker that was hinted before does
    due(run)
    engine.advance(run_id=run.pk)
    run.refresh_from_db()
    assert run.state == "awaiting_approval" and run.frozen_by is None
    assert run.waits_for == asked_for


def test_whoever_begins_to_wait_for_a_run_waits_for_no_sender(world: World) -> None:
    """A sender holds its half of the lock early and totals after it; who begins to wait for a run may hold totals
    already, so the two would wait for each other."""
    run, other = world.start("CS-8815"), world.start()

    def begin() -> str:
        with transaction.atomic(durable=True), connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = 1000")
            locked = Run.objects.select_for_update(of=("self",)).get(pk=run.pk)
            return waiting.begin(run=locked, key="o", kind="run", other_id=other.pk, actor=principals.system()).key

    with transaction.atomic(), ThreadPoolExecutor(1) as pool:
        freezes.in_force(lock=True)
        assert pool.submit(in_thread, begin).result() == "o"


def test_no_step_is_added_to_a_commit_that_has_not_asked_whether_anything_is_frozen(world: World) -> None:
    lease = leases.claim(run_id=world.start("CS-8815").pk, holder="here", seconds=60)
    assert lease is not None and lease.run is not None and not may_go_on(lease.run)
    with transaction.atomic():
        assert not may_go_on(leases.hold(lease=lease))
        assert may_go_on(leases.hold(lease=lease, any_freeze=freezes.ANY))
    freeze(world)
    with transaction.atomic():
        assert not may_go_on(leases.hold(lease=lease, any_freeze=freezes.ANY))
