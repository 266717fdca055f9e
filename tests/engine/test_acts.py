"""Trying again now and handing to a person: what wakes, what is refused, and that nothing is sent by it."""

import datetime as dt
from typing import Any

import pytest

from agentops import acts, engine
from agentops.pages.operating import say
from approvals.models import ApprovalRequest
from approvals.services import freezing
from reconciliation.models import Attempt, Operation
from runs import clock, retry
from runs.models import Principal, Run
from runs.services import operate, principals
from tests.engine.conftest import World


def priya(world: World) -> Principal:
    return principals.of_user(user=world.people["priya"])


def do(world: World, run: Run, act: str) -> operate.OperateResult:
    result = acts.perform(act=act, run_id=run.pk, principal=priya(world), reason="the customer waits")
    run.refresh_from_db()
    return result


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is tried again is tried again in an hour."""
    monkeypatch.setattr(retry, "backoff", lambda **_: dt.timedelta(hours=1))


def test_a_run_that_waits_for_a_source_goes_on_now(world: World, patient: None, settings: Any) -> None:
    there, settings.HELPDESK_URL = settings.HELPDESK_URL, "http://127.0.0.1:9"
    run = world.work(world.start("CS-8815"), until=lambda one: one.state == "waiting")
    settings.HELPDESK_URL = there
    assert engine.advance(run_id=run.pk) == 0
    assert do(world, run, "again").ok
    assert do(world, run, "again").code == "at_work"
    assert world.work(run).state == "completed"


def test_an_unknown_operation_is_asked_about_and_never_sent_by_it(world: World, patient: None) -> None:
    run = world.unknown("timeout_without_effect")
    world.work(run, until=lambda one: world.credit(one).probes_made >= 1)
    probes = world.credit(run).probes_made
    Operation.objects.filter(run=run).update(next_probe_at=clock.now() + dt.timedelta(hours=1))
    Run.objects.filter(pk=run.pk).update(wake_at=clock.now() + dt.timedelta(hours=1))
    sent = Attempt.objects.filter(operation__run=run).count()
    assert engine.advance(run_id=run.pk) == 0
    assert do(world, run, "again").ok
    attempts = Attempt.objects.filter(operation__run=run)
    assert world.credit(run).next_probe_at is not None and attempts.count() == sent  # the act itself sends nothing
    engine.advance(run_id=run.pk)
    assert world.credit(run).probes_made > probes
    assert len(world.credits()) <= 1


def test_an_attempt_that_was_never_received_is_tried_now_but_not_against_the_receivers_word(
    world: World, patient: None
) -> None:
    run = world.approved()
    world.fault("overloaded")
    world.work(run, until=lambda one: one.state == "waiting")
    refused = do(world, run, "again")
    assert refused.code == "asked_to_wait" and refused.detail["system"] == "billing"
    assert world.credits() == []


def test_what_only_people_or_a_lift_can_move_is_refused(world: World) -> None:
    run = world.work(world.start())
    assert do(world, run, "again").code == "awaits_answer"
    assert do(world, run, "pause").ok and do(world, run, "again").code == "paused"
    assert do(world, run, "resume").ok
    frozen = freezing.freeze(scope="all", principal=priya(world), reason="x").freeze
    assert frozen is not None
    world.work(run, until=lambda one: one.frozen_by is not None)
    refused = do(world, run, "again")
    assert refused.code == "frozen" and refused.detail["freeze"] == frozen.words
    assert do(world, run, "to-person").ok and do(world, run, "again").code == "needs_person"
    assert do(world, run, "cancel").ok and do(world, run, "again").code == "cancelling"
    world.work(run, until=lambda one: one.is_over)
    assert do(world, run, "again").code == "over" and do(world, run, "to-person").code == "over"


@pytest.mark.parametrize("ticket", ["CS-8812", "CS-8815"])
def test_handing_over_withdraws_what_is_asked_and_keeps_what_was_done(world: World, ticket: str) -> None:
    run = world.start(ticket)
    if ticket == "CS-8812":
        run = world.work(run)
    assert do(world, run, "to-person").ok
    assert (run.state, run.person_code, run.wake_at, run.lease_until) == ("needs_person", "handed_over", None, None)
    assert "Priya" in run.person_reason and "the customer waits" in run.person_reason
    assert not ApprovalRequest.objects.filter(run=run, state__in=["open", "approved"]).exists()
    assert do(world, run, "to-person").code == "needs_person"
    assert engine.advance(run_id=run.pk) == 0 and world.effects() == []
    assert operate.claim(run_id=run.pk, principal=priya(world)).ok
    assert operate.gather_again(run_id=run.pk, principal=priya(world), reason="go on").ok
    assert world.work(run).state in ("awaiting_approval", "completed")


def test_an_approval_that_was_not_used_no_longer_counts_after_handing_over(world: World) -> None:
    run = world.approved()
    assert do(world, run, "to-person").ok
    assert world.request(run).state == "revoked" and world.effects() == []


def test_what_is_in_flight_stays_with_its_run(world: World) -> None:
    run = world.unknown()
    refused = do(world, run, "to-person")
    assert (refused.code, refused.detail) == ("in_flight", {"system": "billing"})
    assert world.work(run).state == "completed" and len(world.credits()) == 1


def test_a_worker_in_the_middle_of_a_step_loses_the_run_and_writes_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentops.workflows.service_credit import ServiceCredit

    run = world.start()
    gather = ServiceCredit.gather

    def handed_over_meanwhile(self: ServiceCredit, **kwargs: object) -> object:
        read = gather(self, **kwargs)  # type: ignore[arg-type]
        assert do(world, run, "to-person").ok
        return read

    with monkeypatch.context() as patch:
        patch.setattr(ServiceCredit, "gather", handed_over_meanwhile)
        engine.advance(run_id=run.pk)
    run.refresh_from_db()
    assert run.state == "needs_person" and run.evidence.count() == 0


@pytest.mark.parametrize("wait", [{"timer": 900_000}, {"event": "paid"}], ids=["timer", "event"])
def test_what_a_workflow_waits_for_is_not_brought_forward(world: World, wait: dict[str, Any]) -> None:
    run = world.scripted("t", {"key": "quiet", **wait})
    run = world.work(run, until=lambda one: one.state == "waiting" and one.lease_until is None)
    refused = do(world, run, "again")
    assert (refused.code, refused.detail) == ("own_wait", {"what": run.waits_for})
    assert run.waits_for in say(refused)


def test_what_no_freeze_holds_any_more_may_be_tried_again_before_the_relay_comes(world: World) -> None:
    run = world.start("CS-8815")
    frozen = freezing.freeze(scope="all", principal=priya(world), reason="x").freeze
    assert frozen is not None
    world.work(run, until=lambda one: one.frozen_by is not None)
    assert do(world, run, "again").code == "frozen"
    assert freezing.lift(freeze_id=frozen.pk, principal=priya(world), reason="x").ok
    other = freezing.freeze(scope="workflow:service_credit", principal=priya(world), reason="y").freeze
    assert other is not None and do(world, run, "again").detail == {"freeze": other.words}
    assert freezing.lift(freeze_id=other.pk, principal=priya(world), reason="x").ok
    assert do(world, run, "again").ok
    assert world.work(run).state == "completed"


def test_a_run_with_a_person_does_not_say_that_it_waits_to_be_resumed(world: World) -> None:
    run = world.work(world.start("CS-8836"))
    assert run.state == "needs_person"
    assert operate.claim(run_id=run.pk, principal=priya(world)).ok
    assert acts.perform(act="pause", run_id=run.pk, principal=priya(world), reason="x").ok
    engine.advance(run_id=run.pk)
    assert acts.perform(act="resume", run_id=run.pk, principal=priya(world), reason="x").ok
    engine.advance(run_id=run.pk)
    run.refresh_from_db()
    assert (run.state, run.paused_at, run.waits_for) == ("needs_person", None, f"{priya(world)} to go on")
