"""A run keeps the version it began with, and waits, visibly, for a worker that knows it."""

import pytest

from agentops import engine
from agentops.workflows.registry import WORKFLOWS
from runs.models import Event, Run
from runs.services import operate, principals
from tests.engine.conftest import World
from tests.engine.known import Scripted

QUIET = {"key": "quiet", "timer": 300}


def only(monkeypatch: pytest.MonkeyPatch, *versions: str) -> None:
    """This process is of a release that knows these."""
    monkeypatch.setitem(WORKFLOWS, "scripted", {version: Scripted(version) for version in versions})


def test_old_runs_end_as_they_began_beside_new_ones(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "1")
    old = world.work(world.scripted("old", QUIET), until=lambda one: one.state == "waiting")
    only(monkeypatch, "1", "2")
    new = world.scripted("new", QUIET)
    ended = [world.work(run, until=lambda one: one.is_over).outcome for run in (old, new)]
    assert ended == ["v1: quiet passed", "v2: quiet passed"]
    assert world.scripted("old", QUIET).pk == old.pk  # the same start, after the release, is the same run


def test_two_workers_of_different_releases_each_take_what_they_know(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run is hinted to the wrong worker first; side by side with the other one it still ends right."""
    only(monkeypatch, "1")
    runs = {"1": world.scripted("a", QUIET)}
    only(monkeypatch, "1", "2")
    runs["2"] = world.scripted("b", QUIET)
    wrong = {version: world.worker(run, scripted=["12"[version == "1"]]) for version, run in runs.items()}
    for version, run in runs.items():
        only(monkeypatch, "none")
        world.work(run, until=lambda one, v=version: f"scripted v{v}" in one.waits_for)
        run.refresh_from_db()
        assert (run.state, run.waits_for) == ("waiting", f"a worker that knows workflow scripted v{version}")
        assert run.wake_at is not None  # it is looked at again by itself
        assert Event.objects.filter(stream=f"run:{run.pk}", data__target="waiting").count() == 1
    right = {version: world.worker(run, scripted=[version]) for version, run in runs.items()}
    for pid in (*right.values(), *wrong.values()):
        assert world.workers.wait(pid) == 0
    for version, run in runs.items():
        run.refresh_from_db()
        assert (run.state, run.outcome) == ("completed", f"v{version}: quiet passed")


def test_a_version_that_nobody_knows_is_waited_for_at_every_state_and_can_be_cancelled(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    priya = principals.of_user(user=world.people["priya"])
    asking = world.work(world.start())
    timer = world.work(
        world.scripted("t", {"key": "quiet", "timer": 600_000}), until=lambda one: one.state == "waiting"
    )
    monkeypatch.setitem(WORKFLOWS, "service_credit", {})
    monkeypatch.setitem(WORKFLOWS, "scripted", {})
    for run, state in ((asking, "awaiting_approval"), (timer, "waiting")):
        Run.objects.filter(pk=run.pk).update(wake_at=run.created_at)
        assert engine.advance(run_id=run.pk) == 1
        run.refresh_from_db()
        assert run.state == state and run.waits_for.startswith("a worker that knows workflow")
        assert operate.cancel(run_id=run.pk, principal=priya, reason="not wanted").ok
        assert world.work(run, until=lambda one: one.is_over).state == "cancelled"
