"""What a step acts on is what stands once it has the run's lock, not what it saw a moment before."""

from collections.abc import Callable
from typing import Any

import pytest

from agentops import engine
from agentops.steps import executing, gathering
from reconciliation.models import Operation
from reconciliation.services import cases
from runs.models import Event, ModelCall, Run
from runs.services import operate, principals
from tests.desk.conftest import Desk, at_desk
from tests.desk.outside import again, note, void
from tests.engine.conftest import World
from tests.undoing.conftest import Undoing


@pytest.fixture
def desk(world: World, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return at_desk(world, monkeypatch)


@pytest.fixture
def just_done(world: World, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The credit is recorded, and what follows from it was not part of that commit."""
    with monkeypatch.context() as patch:
        patch.setattr(executing, "_go_on_from", lambda *_: None)
        patch.setattr(executing, "_after_success", lambda *_: engine.Next.PARK)
        run = world.work(world.approved(), until=lambda one: world.credit(one).state == "succeeded")
    Run.objects.filter(pk=run.pk).update(lease_until=None, lease_holder="")
    run.refresh_from_db()
    assert run.state == "executing"
    return run


def meanwhile(patch: pytest.MonkeyPatch, module: Any, point: str, does: Callable[[], object]) -> list[str]:
    """Have that happen once, just before the module's next commit of this kind takes its lock."""
    real, came = module.committing, []

    def committing(lease: Any, at: str) -> Any:
        if at == point and not came:
            came.append(at)
            does()
        return real(lease, at)

    patch.setattr(module, "committing", committing)
    return came


def corrected(desk: Desk, operation: Operation, verdict: str, **more: str) -> None:
    doubt = cases.doubt(operation_id=operation.pk, principal=desk.tomas, reason="the customer says so")
    assert doubt.ok, doubt
    case = operation.cases.get(pk=doubt.detail["case"])
    assert desk.settle(case, verdict, **more) == "ok"


def test_a_second_record_that_an_admin_found_meanwhile_is_named(
    world: World, desk: Desk, just_done: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    credit = world.credit(just_done)
    second = again(credit)
    named = {"reference": str(credit.external_reference), "other_reference": second}
    with monkeypatch.context() as patch:
        came = meanwhile(
            patch, executing, "run.advanced", lambda: corrected(desk, credit, "twice", **named)
        )  # fmt: skip
        run = world.work(just_done)
    assert came and (run.state, run.person_code) == ("needs_person", "recorded_twice")
    assert second in run.person_reason


def test_what_an_admin_found_not_done_meanwhile_is_no_success(
    world: World, desk: Desk, just_done: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    void(note(0, world))
    desk.until_proof()
    with monkeypatch.context() as patch:
        came = meanwhile(
            patch, executing, "run.advanced", lambda: corrected(desk, world.credit(just_done), "did_not")
        )  # fmt: skip
        run = world.work(just_done)
    assert came and (run.state, run.person_code) == ("needs_person", "settled_absent")


def test_what_was_reversed_while_its_run_was_paused_was_not_refused(world: World, just_done: Run) -> None:
    undo, credit = Undoing(world, principals.of_user(user=world.people["priya"])), world.credit(just_done)
    assert operate.pause(run_id=just_done.pk, principal=undo.priya, reason="wait").ok
    world.work(undo.approved(credit))
    undo.relay()
    assert undo.state(credit) == "compensated"
    assert operate.resume(run_id=just_done.pk, principal=undo.priya, reason="go on").ok
    run = world.work(just_done)
    assert (run.state, run.person_code) == ("needs_person", "reversed")
    assert f"{credit.external_reference} was reversed" in run.person_reason


def test_what_was_owned_up_to_while_the_facts_were_read_is_not_proposed_anew(
    world: World, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = world.unknown("timeout_without_effect")
    case = desk.case(run)
    desk.until_proof()
    assert desk.settle(case, "did_not") == "ok"
    run = world.work(run)
    assert (run.state, run.person_code) == ("needs_person", "settled_absent")
    credit, asked = world.credit(run), ModelCall.objects.filter(run=run).count()
    priya = principals.of_user(user=world.people["priya"])
    assert operate.gather_again(run_id=run.pk, principal=priya, reason="once more").ok
    with monkeypatch.context() as patch:
        came = meanwhile(
            patch, gathering, "run.gathered", lambda: corrected(desk, credit, "happened", reference=again(credit))
        )  # fmt: skip
        run = world.work(run)
    assert came and (run.state, run.person_code) == ("needs_person", "in_dispute")
    assert ModelCall.objects.filter(run=run).count() == asked, "the agent is not asked about what is done"


def test_what_was_settled_before_its_track_was_lost_is_not_lost(
    world: World, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody asks, and has the answer, between a worker's look at the operation and its lock."""
    run = world.approved()
    world.fault("execute_and_timeout")
    with monkeypatch.context() as patch:
        came = meanwhile(patch, executing, "run.advanced", lambda: desk.ask(world.credit(run)))
        run = world.work(run)
    assert came and run.state == "completed"
    moves = Event.objects.filter(stream=f"run:{run.pk}", kind="run.state")
    assert "outcome_unknown" not in [one.data["target"] for one in moves]
