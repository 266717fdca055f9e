"""A worker is killed at every named point; another carries on; the other systems show each effect once."""

import signal

import pytest

from reconciliation.models import Attempt, WorkerProcess
from runs import faultpoints, record
from runs.models import Run
from tests.engine.conftest import CREATE, World

POINTS = sorted(faultpoints.NAMES)
TICKETS = {"automatic": "CS-8815", "approved": "CS-8812"}
NEVER_CALLED = frozenset({"attempt.opened.after"})  # the attempt was written down, and the call never made


def one_worker(world: World, run: Run, *, die_at: str) -> None:
    """A worker process: it dies at the point, unless one has before; without reaching it, it parks in good order."""
    before = world.marker(die_at).exists()
    status = world.workers.wait(world.worker(run, die_at=die_at))
    killed = world.marker(die_at).exists() and not before
    assert status == (-signal.SIGKILL if killed else 0)


def play(world: World, ticket: str, *, die_at: str) -> Run:
    """The whole case with a first worker that dies at the point, wherever on the way that is."""
    run = world.start(ticket)
    one_worker(world, run, die_at=die_at)
    run = world.work(run)
    if run.state == "awaiting_approval":
        assert world.vote(run).code == "approved"
        if not world.marker(die_at).exists():
            one_worker(world, run, die_at=die_at)
        run = world.work(run)
    assert world.marker(die_at).exists(), f"no worker ever reached {die_at}"
    return run


@pytest.mark.parametrize("path", TICKETS)
@pytest.mark.parametrize("point", POINTS)
def test_a_worker_dies_and_another_finishes(world: World, point: str, path: str) -> None:
    if point.startswith("probe."):
        world.fault("execute_and_timeout")
    run = play(world, TICKETS[path], die_at=point)

    assert run.state == "completed", (run.person_reason, run.outcome)
    assert [one["identity"] for one in world.credits()] == [world.credit(run).identity]
    assert [one["operation"] for one in world.effects()] == [
        "billing.credit_notes.create",
        "helpdesk.tickets.update",
        "helpdesk.drafts.create",
    ]
    assert record.verify(stream=f"run:{run.pk}") is None
    assert WorkerProcess.objects.filter(ended_at__isnull=False).exists()
    if point.startswith("probe."):
        assert world.used() == [("execute_and_timeout", 1)]
    attempts = Attempt.objects.filter(operation=world.credit(run)).order_by("number")
    if point in NEVER_CALLED:
        assert [one.result for one in attempts] == ["sender_gone", "done"]
        assert len({one.wire_key for one in attempts}) == 1


@pytest.mark.parametrize(
    ("mode", "effects", "results"),
    [("execute_and_timeout", 1, ["sender_gone"]), ("timeout_without_effect", 0, ["sender_gone", "done"])],
)
def test_the_sender_died_before_it_could_write_down_that_no_answer_came(
    world: World, mode: str, effects: int, results: list[str]
) -> None:
    """The call was made and hung; whether it had its effect, only billing knows."""
    world.fault(mode)
    run = world.start("CS-8815")
    assert world.workers.wait(world.worker(run, die_at="attempt.called")) == -signal.SIGKILL
    operation = world.credit(run)
    assert (operation.state, len(world.credits()), world.used()) == ("sending", effects, [(mode, 1)])

    run = world.work(run)
    assert run.state == "completed", run.person_reason
    operation.refresh_from_db()
    assert [one["identity"] for one in world.credits()] == [operation.identity]
    on_the_wire = world.sandbox.requests(identity=operation.identity, operation=CREATE)
    assert {one["wire_key"] for one in on_the_wire} == {f"{operation.identity}:0"}
    attempts = Attempt.objects.filter(operation=operation).order_by("number")
    assert [one.result for one in attempts] == results
    assert operation.settled_by == "probe"
