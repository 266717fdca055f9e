"""Database or broker are away for a moment: the work goes on as soon as they are back, not when a limit runs out."""

import pytest
from django.db import OperationalError, connection
from kombu.exceptions import OperationalError as BrokerDown

from agentops import engine, patience, relay, tasks
from agentops.steps.base import Next, Step
from runs.models import Event
from runs.models.run import RunState
from tests.engine.conftest import World


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PAUSES", (0.05,) * 6)


def lose_connection() -> None:
    """The server ends this process's connection, as it does when it goes down."""
    with connection.cursor() as cursor, pytest.raises(OperationalError):
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


def test_a_hint_is_not_used_up_while_the_database_is_away(world: World) -> None:
    run = world.start()
    lose_connection()
    assert tasks.advance(str(run.pk)) > 0
    run.refresh_from_db()
    assert run.state == "awaiting_approval"


def test_a_run_whose_step_lost_the_database_is_given_back_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(step: Step) -> Next:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return Next.GO_ON

    run = world.start()
    with monkeypatch.context() as patched:
        patched.setitem(engine.STEPS, RunState.GATHERING, lost)
        tasks.advance(str(run.pk))
    run.refresh_from_db()
    assert (run.state, run.lease_until, run.lease_holder) == ("gathering", None, "")
    assert Event.objects.filter(stream=f"run:{run.pk}", kind="run.step_failed").count() == 1
    assert world.work(run).state == "awaiting_approval"


def test_what_a_broker_was_told_before_it_went_away_is_told_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    down = [False]

    def tell(args: list[str], retry: bool) -> None:
        if down[0]:
            raise BrokerDown("gone")
        told.append(args[0])

    monkeypatch.setattr(relay.advance, "apply_async", tell)
    busy, first = relay.Relay(), world.start("CS-8812")
    assert (busy.run_once(), busy.run_once()) == (1, 0)
    down[0], second = True, world.start("CS-8815")
    assert busy.run_once() == 0
    down[0], busy.broker_down_since = False, -1e9  # long enough ago to be asked again
    busy.run_once()
    busy.run_once()
    assert sorted(told) == sorted([str(first.pk)] * 2 + [str(second.pk)])
