"""The relay is killed at every point of a reversal; it is one run, one effect, and booked once. For the points of its
run see `test_everywhere`."""

import signal

import pytest

from approvals.models import Allowance
from reconciliation.models import Operation, Reversal
from runs import faultpoints, record
from runs.models import Event, Run
from tests.engine.test_crashes import REVERSALS
from tests.engine.worker_process import REVERSALS as WORK
from tests.undoing.conftest import Undoing


def killed(undo: Undoing, point: str) -> None:
    env = {"FAULTPOINT": f"{point}:{undo.world.marker(point)}", "FAULTPOINT_SIGNAL": "KILL"}
    pid = undo.world.workers.start(run_id=WORK, database=undo.world.database, env=env)
    assert undo.world.workers.wait(pid) == -signal.SIGKILL and undo.world.marker(point).exists()


@pytest.mark.parametrize("point", sorted(REVERSALS))
def test_killed_at_any_point_it_is_undone_once(undo: Undoing, point: str) -> None:
    assert point in faultpoints.NAMES
    first, credit = undo.credited()
    spent = Allowance.objects.get().settled_minor
    assert undo.propose(credit).ok
    if point in ("reversal.started", "reversal.linked.before", "reversal.linked.after"):
        killed(undo, point)
    run = undo.world.work(undo.run_of(credit))
    assert undo.world.vote(run).code == "approved"
    run = undo.world.work(run)
    if point.startswith("reversal.booked"):
        killed(undo, point)
    undo.relay()

    assert (run.state, undo.state(credit), len(undo.voids())) == ("completed", "compensated", 1)
    assert Run.objects.filter(workflow="reversal").count() == 1 == Operation.objects.filter(reverses=credit).count()
    assert (Reversal.objects.get().result, Allowance.objects.get().settled_minor) == ("done", spent - 42_000)
    for one in (first, run):
        assert record.verify(stream=f"run:{one.pk}") is None
    told = Event.objects.filter(stream=f"run:{first.pk}", kind__startswith="reversal.").order_by("seq")
    assert [one.kind for one in told] == ["reversal.proposed", "reversal.started", "reversal.ended"]
