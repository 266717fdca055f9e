"""A worker is frozen at every named point past its lease; another finishes the run; the first wakes and harms nothing.

One that stands still inside a transaction keeps the run's lock until the database ends that transaction, which is after
half a minute in the product and after a second and a half here.
"""

import os
import signal
import time
from typing import Any

import pytest

from reconciliation.models import Operation
from runs import record
from runs.models import Run
from runs.services import waits
from tests.engine.conftest import World
from tests.engine.test_crashes import ACTS, ASKS, PATHS, READS, WAITS, Path, act, family
from tests.engine.worker_process import is_parked
from tests.engine.workers import is_stopped

POINTS = {"comment": READS | ACTS, "waiting": WAITS, "automatic": ASKS}
# the sender may still call, so nothing is sent in its place until it has reported
UNTIL_IT_WAKES = frozenset({"attempt.opened.after"})


@pytest.fixture(autouse=True)
def short_leases(settings: Any) -> None:
    settings.LEASE_SECONDS = 2


def freezes(world: World, run: Run, point: str) -> int | None:
    """A worker on the run: its pid once it stands still at the point, None when it parks the run before that."""
    pid = world.worker(run, freeze_at=point, IDLE_IN_TRANSACTION_MS="1500")
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if is_stopped(pid):
            return pid
        if (status := world.workers.wait(pid, seconds=0)) is not None:
            assert status == 0
            return None
        time.sleep(0.02)
    raise AssertionError(f"a worker neither came to {point} nor parked its run")


def frozen(world: World, path: Path, point: str) -> tuple[Run, int]:
    """A case of its own, up to the point where its worker stands still."""
    if point.startswith("probe."):
        world.fault("execute_and_timeout", path.effects[0])
    run = path.start(world)
    for _ in range(12):
        for one in family(run):
            one.refresh_from_db()
            if not one.is_over:
                if pid := freezes(world, one, point):
                    return run, pid
                act(world, world.work(one, until=is_parked))
        waits.wake_for_ended_runs(limit=10)
    raise AssertionError(f"no worker ever came to {point}")


def finish(world: World, run: Run, *, seconds: float) -> bool:
    """Whether the other workers bring the whole case to its end in that time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for one in family(run):
            if not one.is_over:
                act(world, world.work(one, until=lambda _: True))
        waits.wake_for_ended_runs(limit=10)
        run.refresh_from_db()
        if run.is_over:
            return True
        time.sleep(0.03)
    return False


@pytest.mark.parametrize("name", POINTS)
def test_whoever_wakes_late_does_no_harm(world: World, name: str) -> None:
    path = PATHS[name]
    cases: dict[str, tuple[World, Run, int]] = {}
    for point in sorted(POINTS[name]):
        own = World(
            world.sandbox, world.people, workers=world.workers, database=world.database, folder=world.folder / point
        )
        own.folder.mkdir()
        cases[point] = (own, *frozen(own, path, point))
    for point, (own, run, pid) in cases.items():
        ended = finish(own, run, seconds=1.5 if point in UNTIL_IT_WAKES else 120)
        assert ended == (point not in UNTIL_IT_WAKES), point
        assert is_stopped(pid), point
    for own, _, pid in cases.values():
        os.kill(pid, signal.SIGCONT)
        assert own.workers.wait(pid) == 0
    for point, (own, run, _) in cases.items():
        assert finish(own, run, seconds=120), point
        assert run.state == "completed", (point, run.person_reason)
        operations = list(Operation.objects.filter(run__in=family(run)).order_by("created_at"))
        effects = [one for one in own.effects() if one["identity"] in {made.identity for made in operations}]
        assert [one["identity"] for one in effects] == [one.identity for one in operations], point
        assert tuple(one["operation"] for one in effects) == path.effects, point
        for one in family(run):
            assert record.verify(stream=f"run:{one.pk}") is None, point
    assert len(world.effects()) == len(cases) * len(path.effects)


def test_every_point_of_a_run_is_reached() -> None:
    assert frozenset().union(*POINTS.values()) == frozenset().union(*(path.points for path in PATHS.values()))
