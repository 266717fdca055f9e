"""A worker is killed at every named point of every workflow; another carries on; each effect is there once."""

import signal
from dataclasses import dataclass

import pytest

from reconciliation.models import Attempt, Operation, WorkerProcess
from runs import faultpoints, record
from runs.models import Run, Wait
from runs.services import signalling, waits
from tests.engine.conftest import CREATE, World
from tests.engine.worker_process import is_parked

COMMENT = "helpdesk.comments.create"
CREDITED = (CREATE, "helpdesk.tickets.update", "helpdesk.drafts.create")
READS = frozenset({"run.claimed", "run.gathered.before", "run.gathered.after", "run.advanced.before"})
READS |= {"run.advanced.after"}
ASKS = frozenset({"run.proposed.before", "run.proposed.after"})
ACTS = frozenset(one for one in faultpoints.NAMES if one.startswith(("run.authorised", "attempt.", "probe.")))
WAITS = frozenset(one for one in faultpoints.NAMES if one.startswith("wait."))
REVERSALS = frozenset(one for one in faultpoints.NAMES if one.startswith("reversal."))  # see tests/undoing
STATEMENTS = frozenset(one for one in faultpoints.NAMES if one.startswith("statement."))  # no run: see tests/statements
NEVER_CALLED = frozenset({"attempt.opened.after"})  # the attempt was written down, and the call never made


@dataclass(frozen=True)
class Path:
    """A workflow, on one of its ways: what starts it, the points on that way, and the effects at its end."""

    workflow: str
    ticket: str
    points: frozenset[str]
    effects: tuple[str, ...]

    def start(self, world: World) -> Run:
        ticket = world.named(self.ticket)
        if self.workflow == "service_credit":
            return world.start(self.ticket)
        if self.workflow == "status_note":
            return world.start_other("status_note", ticket=ticket, text="Engineering has found the cause.")
        return world.start_other("follow_up", ticket=ticket, quiet_seconds=1)


PATHS = {
    "automatic": Path("service_credit", "CS-8815", READS | ASKS | ACTS, CREDITED),
    "approved": Path("service_credit", "CS-8812", READS | ASKS | ACTS, CREDITED),
    "comment": Path("status_note", "CS-8812", READS | ACTS, (COMMENT,)),
    "waiting": Path("follow_up", "CS-8812", READS | WAITS, (COMMENT,)),
}


def one_worker(world: World, run: Run, *, die_at: str) -> None:
    """A worker process: it dies at the point, unless one has before; without reaching it, it parks in good order."""
    before = world.marker(die_at).exists()
    status = world.workers.wait(world.worker(run, die_at=die_at))
    killed = world.marker(die_at).exists() and not before
    assert status == (-signal.SIGKILL if killed else 0)


def family(run: Run) -> list[Run]:
    """The run and those it started."""
    started = [one.other for one in Wait.objects.filter(run=run).select_related("other") if one.other is not None]
    return [run, *started]


def act(world: World, run: Run) -> None:
    """What people and outside systems do when it is their turn; the sender does it twice."""
    if run.state == "awaiting_approval":
        assert world.vote(run).code == "approved"
    elif run.waits_for == "the event “fix released”":
        for answer in ("stored", "already"):
            told = signalling.send(
                run_id=run.pk, key="r-7", kind="fix_released", payload={"version": "4.2"}, sender=run.initiator
            )
            assert told.code == answer


def play(world: World, path: Path, *, die_at: str) -> Run:
    """The whole case. The first worker that comes to the point dies there, wherever on the way and whosever run."""
    run = path.start(world)
    for _ in range(12):
        for one in family(run):
            if not one.is_over:
                if not world.marker(die_at).exists():
                    one_worker(world, one, die_at=die_at)
                act(world, world.work(one, until=is_parked))
        waits.wake_for_ended_runs(limit=10)  # as the relay does
        run.refresh_from_db()
        if run.is_over:
            break
    assert world.marker(die_at).exists(), f"no worker ever reached {die_at}"
    return run


def test_every_point_is_reached_on_some_path() -> None:
    assert frozenset().union(*(path.points for path in PATHS.values())) | STATEMENTS | REVERSALS == faultpoints.NAMES


@pytest.mark.parametrize(("name", "point"), [(name, point) for name in PATHS for point in sorted(PATHS[name].points)])
def test_a_worker_dies_and_another_finishes(world: World, name: str, point: str) -> None:
    path = PATHS[name]
    if point.startswith("probe."):
        world.fault("execute_and_timeout", path.effects[0])
    run = play(world, path, die_at=point)

    assert run.state == "completed", (run.person_reason, run.outcome)
    runs = family(run)
    operations = Operation.objects.filter(run__in=runs).order_by("created_at")
    assert [one["identity"] for one in world.effects()] == [one.identity for one in operations]
    assert tuple(one["operation"] for one in world.effects()) == path.effects
    assert {one.state for one in operations} == {"succeeded"}
    for one in runs:
        assert record.verify(stream=f"run:{one.pk}") is None
    assert WorkerProcess.objects.filter(ended_at__isnull=False).exists()
    if point.startswith("probe."):
        assert world.used() == [("execute_and_timeout", 1)]
    if point in NEVER_CALLED:
        attempts = Attempt.objects.filter(operation=operations[0]).order_by("number")
        assert [one.result for one in attempts] == ["sender_gone", "done"]
        assert len({one.wire_key for one in attempts}) == 1
    if name == "waiting":
        ended = Wait.objects.filter(run=run).order_by("began_at").values_list("key", "result")
        assert list(ended) == [("fix", "came"), ("quiet", "passed"), ("note", "ended")]
        assert len(runs) == 2 == Run.objects.count()


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
