"""The run of a reversal, and the relay that starts and books it, killed and frozen at every named point of theirs: it
is one run, one effect at billing, and booked once."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from reconciliation.models import Operation, Reversal
from runs import record
from runs.models import Run
from runs.services import principals
from tests.engine.conftest import CREATE, World
from tests.engine.test_crashes import ACTS, READS, REVERSALS, Path, act, one_worker
from tests.engine.test_frozen_everywhere import UNTIL_IT_WAKES, finish, frozen
from tests.engine.worker_process import REVERSALS as WORK
from tests.engine.workers import is_stopped
from tests.undoing.conftest import VOID, Undoing


@dataclass(frozen=True)
class Undone(Path):
    """A credit was made, and its reversal has its run."""

    def start(self, world: World) -> Run:
        undo = acting(world)
        _, credit = undo.credited(self.ticket)
        return undo.started(credit)


PATH = Undone("reversal", "CS-8815", READS | ACTS, (VOID,))


def acting(world: World) -> Undoing:
    return Undoing(world, principals.of_user(user=world.people["priya"]))


def own(world: World, point: str) -> World:
    """Customers of its own for each point."""
    folder = world.folder / point
    folder.mkdir()
    return World(world.sandbox, world.people, workers=world.workers, database=world.database, folder=folder)


def judge(undo: Undoing, run: Run, point: str) -> None:
    undo.relay()
    run.refresh_from_db()
    made = Operation.objects.get(run=run)
    assert made.reverses is not None
    assert (run.state, made.state, undo.state(made.reverses)) == ("completed", "succeeded", "compensated"), point
    ours = [one for one in undo.world.effects() if one["identity"] in {made.identity, made.reverses.identity}]
    assert sorted(one["operation"] for one in ours) == sorted([CREATE, VOID]), point
    assert Reversal.objects.get(run=run).result == "done"
    for one in (run, made.reverses.run):
        assert record.verify(stream=f"run:{one.pk}") is None, point


# as a run comes by them; after a kill that loses a call it comes to the questions, and then calls again
IN_ORDER = (
    "run.claimed", "run.authorised.before", "run.gathered.before", "run.authorised.after", "run.gathered.after",
    "run.advanced.before", "run.advanced.after", "attempt.opened.before", "attempt.opened.after", "probe.asked",
    "probe.recorded.before", "probe.recorded.after", "attempt.called", "attempt.recorded.before",
    "attempt.recorded.after",
)  # fmt: skip


def dies(world: World, run: Run, point: str) -> bool:
    """Whether a worker on the run came to the point, and died there."""
    for _ in range(6):
        run.refresh_from_db()
        if run.is_over:
            break
        one_worker(world, run, die_at=point)
        if world.marker(point).exists():
            return True
        run.refresh_from_db()
        act(world, run)
    return False


def test_killed_at_every_point_of_its_run(world: World) -> None:
    """As many times in one run as it takes; the points that it has passed by then are another one's."""
    assert set(IN_ORDER) == PATH.points
    left, runs = list(IN_ORDER), 0
    while left:
        here = own(world, f"run-{runs}")
        run, before = PATH.start(here), len(left)
        left = [point for point in left if not dies(here, run, point)]
        assert len(left) < before, f"no worker ever came to {left[0]}"
        assert finish(here, run, seconds=120), (run.state, run.person_reason)
        judge(acting(here), run, f"run {runs}")
        runs += 1


def test_frozen_past_its_lease_at_every_point_of_its_run(world: World, settings: Any) -> None:
    settings.LEASE_SECONDS = 2
    cases: dict[str, tuple[World, Run, int]] = {}
    for point in sorted(PATH.points):
        here = own(world, point)
        cases[point] = (here, *frozen(here, PATH, point))
    for point, (here, run, pid) in cases.items():
        ended = finish(here, run, seconds=1.5 if point in UNTIL_IT_WAKES else 120)
        assert ended == (point not in UNTIL_IT_WAKES), point
        assert is_stopped(pid), point
    for here, _, pid in cases.values():
        os.kill(pid, signal.SIGCONT)
        assert here.workers.wait(pid) == 0
    for point, (here, run, _) in cases.items():
        assert finish(here, run, seconds=120), point
        judge(acting(here), run, point)


def until(found: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("point", sorted(REVERSALS))
def test_a_relay_that_wakes_late_does_no_harm(undo: Undoing, point: str) -> None:
    _, credit = undo.credited()
    if point.startswith("reversal.booked"):
        undo.world.work(undo.approved(credit))
    else:
        assert undo.propose(credit).ok
    env = {"FAULTPOINT": f"{point}:{undo.world.marker(point)}", "FAULTPOINT_SIGNAL": "STOP"}
    env["IDLE_IN_TRANSACTION_MS"] = "1500"  # as for a worker: what stands still inside a transaction loses it
    pid = undo.world.workers.start(run_id=WORK, database=undo.world.database, env=env)
    until(lambda: is_stopped(pid))

    def linked() -> bool:
        undo.relay()
        return Reversal.objects.get().run_id is not None

    until(linked)
    run = undo.run_of(credit)
    if not run.is_over:
        assert undo.world.work(run).state == "awaiting_approval" and undo.world.vote(run).code == "approved"
        undo.world.work(run)

    def booked() -> bool:
        undo.relay()
        return undo.state(credit) == "compensated"

    until(booked)
    assert is_stopped(pid)
    os.kill(pid, signal.SIGCONT)
    assert undo.world.workers.wait(pid) in (0, 1), "one that lost its transaction ends by that"
    judge(undo, run, point)
    assert Run.objects.filter(workflow="reversal").count() == 1 == len(undo.voids())
