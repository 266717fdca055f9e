"""Cancelled in every state, poisoned, unknown, without sources: each run ends truthfully or at a person."""

import signal
from typing import Any

import psycopg
import pytest

from agentops.engine import MAX_CLAIMS
from agentops.steps import settling
from agentops.workflows.service_credit import ServiceCredit
from approvals.models import Allowance, ApprovalRequest
from reconciliation.models import Case, Operation
from reconciliation.services import processes
from runs import clock, record
from runs.models import Event, Run
from runs.services import operate, principals
from runs.tools.base import NoSuchThing
from tests.engine.conftest import World

UPDATE = "helpdesk.tickets.update"


def cancel(world: World, run: Run) -> Run:
    """Somebody of support cancels it; it is worked on until it is over."""
    priya = principals.of_user(user=world.people["priya"])
    assert operate.cancel(run_id=run.pk, principal=priya, reason="the customer withdrew").ok
    assert operate.cancel(run_id=run.pk, principal=priya, reason="again").code == "already_requested"
    run = world.work(run, until=lambda one: one.is_over)
    assert (run.state, record.verify(stream=f"run:{run.pk}")) == ("cancelled", None)
    assert run.outcome.startswith("Cancelled by Priya Raman: the customer withdrew.")
    assert operate.cancel(run_id=run.pk, principal=priya, reason="again").code == "over"
    assert not Operation.objects.filter(run=run, state__in=["authorised", "sending", "unknown"]).exists()
    assert not ApprovalRequest.objects.filter(run=run, state__in=["open", "approved"]).exists()
    return run


def nothing_done(world: World, run: Run) -> None:
    assert run.outcome.endswith("Nothing was done.")
    assert world.effects() == []
    assert not Allowance.objects.filter(reserved_minor__gt=0).exists()


def test_cancelled_before_it_began(world: World) -> None:
    nothing_done(world, cancel(world, world.start()))


def test_cancelled_while_people_think(world: World) -> None:
    run = cancel(world, world.work(world.start()))
    nothing_done(world, run)
    assert ApprovalRequest.objects.get(run=run).state == "withdrawn"
    assert world.vote(run).code == "cancelled"


def test_cancelled_between_the_yes_and_the_sending(world: World) -> None:
    run = cancel(world, world.approved())
    nothing_done(world, run)
    assert ApprovalRequest.objects.get(run=run).state == "revoked"


def test_cancelled_while_a_source_is_down(world: World, settings: Any) -> None:
    settings.HELPDESK_URL = "http://127.0.0.1:9/helpdesk/v1"
    run = world.work(world.start(), until=lambda one: one.state == "waiting")
    nothing_done(world, cancel(world, run))


def test_cancelled_at_a_person(world: World) -> None:
    run = world.work(world.start("CS-8836"))
    assert run.state == "needs_person"
    nothing_done(world, cancel(world, run))


def test_cancelled_while_it_waits_for_the_next_try(world: World) -> None:
    world.fault("overloaded", seconds=600)
    run = world.work(world.approved(), until=lambda one: one.state == "waiting")
    assert Allowance.objects.get().reserved_minor == 120_000
    run = cancel(world, run)
    nothing_done(world, run)
    assert (world.credit(run).state, world.used()) == ("abandoned", [("overloaded", 1)])


def test_cancelled_in_flight_what_happened_is_found_first_and_said(world: World) -> None:
    run = cancel(world, world.unknown("execute_and_timeout"))
    operation = world.credit(run)
    assert operation.state == "succeeded" and operation.external_reference in run.outcome
    assert "Done before, and staying" in run.outcome
    assert [one["identity"] for one in world.effects()] == [operation.identity]
    assert Allowance.objects.get().settled_minor == 120_000


def test_cancelled_in_flight_what_did_not_happen_is_proved_and_not_sent_again(world: World) -> None:
    run = cancel(world, world.unknown("timeout_without_effect"))
    nothing_done(world, run)
    operation = world.credit(run)
    assert (operation.state, operation.failure_code, operation.attempts.count()) == ("failed", "absent", 1)


def test_cancelled_after_the_credit_the_rest_never_starts(world: World) -> None:
    world.fault("overloaded", UPDATE, seconds=600)
    run = world.work(world.start("CS-8815"), until=lambda one: one.state == "waiting")
    run = cancel(world, run)
    assert [one["operation"] for one in world.effects()] == ["billing.credit_notes.create"]
    assert "Done before, and staying: billing.create_credit" in run.outcome
    states = dict(Operation.objects.filter(run=run).values_list("tool", "state"))
    assert states == {"billing.create_credit": "succeeded", "helpdesk.update_ticket": "abandoned"}


# ---- poison


def due_now(run: Run) -> None:
    Run.objects.filter(pk=run.pk, finished_at__isnull=True).exclude(wake_at=None).update(wake_at=clock.ClockTimestamp())


def hurried(world: World, run: Run, until: Any) -> Run:
    """As time goes by: whatever pause the run takes is over at once."""

    def check(one: Run) -> bool:
        due_now(one)
        return bool(until(one))

    return world.work(run, until=check)


def broken(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("a mistake in the code")


@pytest.mark.parametrize("method", ["gather", "follow", "view", "judge", "variables", "card"])
def test_a_step_that_always_raises_ends_at_a_person(world: World, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    monkeypatch.setattr(ServiceCredit, method, broken)
    run = hurried(world, world.start(), lambda one: one.state == "needs_person")
    assert run.person_code == "keeps_failing"
    failed = Event.objects.filter(stream=f"run:{run.pk}", kind="run.step_failed")
    # the first claim had taken a step that worked before, so it is not among those in a row
    assert failed.count() == MAX_CLAIMS + 1 and "ZeroDivisionError" in failed[0].data["reason"]
    monkeypatch.undo()
    assert world.effects() == [] and record.verify(stream=f"run:{run.pk}") is None


def test_a_run_that_kills_its_workers_ends_at_a_person(world: World) -> None:
    run = world.start()
    killed = 0
    for _ in range(MAX_CLAIMS + 3):
        env = {"FAULTPOINT": "run.gathered.before"}
        status = world.workers.wait(world.workers.start(run_id=run.pk, database=world.database, env=env))
        if status == 0:
            break
        assert status == -signal.SIGKILL
        killed += 1
    run.refresh_from_db()
    assert killed == MAX_CLAIMS
    assert (run.state, run.person_code) == ("needs_person", "keeps_failing")


def test_poison_in_flight_is_an_admins_case_and_goes_on_by_itself_once_mended(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = world.unknown()
    with monkeypatch.context() as patch:
        patch.setattr(settling, "ask", broken)
        run = hurried(world, run, lambda one: Case.objects.filter(operation__run=one).exists())
    assert (run.state, world.credit(run).state) == ("outcome_unknown", "unknown")
    assert run.waits_for == f"an admin to settle {Case.objects.get().label}"
    run = hurried(world, run, lambda one: one.is_over)
    assert (run.state, len(world.credits())) == ("completed", 1)
    assert Case.objects.get().verdict == "by_probe"


def test_sending_that_always_kills_its_worker_is_bounded_too(world: World) -> None:
    """The attempt is written down, the worker dies before the call: sent again by the rule, and not for ever."""
    run = world.approved()
    killed = 0
    for _ in range(12):
        env = {"FAULTPOINT": "attempt.opened.after"}
        pid = world.workers.start(run_id=run.pk, database=world.database, env=env)
        if world.workers.wait(pid) == 0:
            break
        killed += 1
    run = world.work(run, until=lambda one: one.state == "needs_person")
    assert (killed, run.state, run.person_code) == (6, "needs_person", "gave_up")
    assert world.credit(run).state == "failed" and world.effects() == []


# ---- what is not there


def test_a_workflow_version_that_is_gone_in_flight_is_a_case(world: World, owner: psycopg.Connection) -> None:
    run = world.unknown()
    owner.execute("UPDATE runs_run SET workflow_version = '99'")
    run = hurried(world, run, lambda one: "a worker that knows workflow service_credit v99" in one.waits_for)
    assert not Case.objects.exists()  # another worker may know it
    owner.execute("UPDATE runs_run SET state_since = state_since - interval '1 hour'")
    run = hurried(world, run, lambda one: Case.objects.filter(operation__run=one).exists())
    assert (run.state, Case.objects.get().kind) == ("outcome_unknown", "not_confirmed")
    owner.execute("UPDATE runs_run SET workflow_version = '1'")
    assert hurried(world, run, lambda one: one.is_over).state == "completed"


def test_a_ticket_that_does_not_exist_needs_a_person(world: World) -> None:
    run = world.work(world.start("CS-1"))
    assert (run.state, run.person_code) == ("needs_person", "not_found")


def test_what_was_never_sent_is_given_up_when_a_person_takes_over(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would keep its business key and its totals for ever."""
    world.fault("overloaded", seconds=1)
    run = world.work(world.approved(), until=lambda one: one.state == "waiting")

    def gone(*_: Any, **__: Any) -> Any:
        raise NoSuchThing("Account ACC-0")

    with monkeypatch.context() as patch:
        patch.setattr(ServiceCredit, "gather", gone)
        run = hurried(world, run, lambda one: one.state == "needs_person")
    assert (run.person_code, world.credit(run).state) == ("not_found", "abandoned")
    assert Allowance.objects.get().reserved_minor == 0
    tomas = principals.of_user(user=world.people["tomas"])
    assert operate.gather_again(run_id=run.pk, principal=tomas, reason="it is back").ok
    run = world.work(run)
    assert (run.state, world.vote(run).code) == ("awaiting_approval", "approved")
    assert (world.work(run).state, len(world.credits())) == ("completed", 1)


def test_a_source_that_is_down_is_waited_for(world: World, settings: Any) -> None:
    right = settings.BILLING_URL
    settings.BILLING_URL = "http://127.0.0.1:9"
    run = hurried(world, world.start("CS-8815"), lambda one: one.tries_in_row >= 3)
    assert run.state in ("waiting", "gathering") and world.effects() == []
    settings.BILLING_URL = right
    run = hurried(world, run, lambda one: one.is_over)
    assert (run.state, len(world.credits())) == ("completed", 1)
    assert processes.current().ended_at is None
