"""Another version of a policy is published while requests wait: the relay finds those that it would not ask so, and
they are asked anew without anybody's click."""

from django.db import connection, connections, transaction

from agentops.relay import Relay
from approvals.services import outdated
from runs.models import Run
from tests.approvals import world as plain
from tests.engine.conftest import World
from tests.engine.test_handed_back import asked
from tests.engine.test_nobody_to_ask import asking


def due(run: Run) -> bool:
    """Whether it is due before the time to answer ends."""
    run.refresh_from_db()
    with connection.cursor() as cursor:
        cursor.execute("SELECT wake_at <= clock_timestamp() FROM runs_run WHERE id = %s", [run.pk])
        return bool(cursor.fetchone()[0])


def test_what_the_new_version_would_ask_otherwise_is_asked_anew(world: World) -> None:
    run, relay = asked(world), Relay()
    relay.run_once()
    assert not due(run)
    first = world.request(run)
    asking(quorum=2)
    relay.run_once()
    assert due(run)
    world.work(run)
    second = world.request(run)
    assert (second.supersedes_id, second.quorum, second.policy_version.number) == (first.pk, 2, 2)
    assert run.state == "awaiting_approval"


def test_what_it_would_ask_just_so_waits_on_and_is_looked_at_once(world: World) -> None:
    run, look = asked(world), outdated.Look()
    first = world.request(run)
    asking(remind_after_minutes=30)
    assert look.work_off() == 1 and due(run)
    world.work(run)
    assert world.request(run) == first and not due(run)
    assert look.work_off() == 0 and not due(run)
    assert outdated.Look().work_off() == 1  # another relay, or this one after a restart


def test_all_are_looked_at_in_parts(world: World) -> None:
    runs = [asked(world), world.work(world.start("CS-8821"))]
    assert {run.state for run in runs} == {"awaiting_approval"}
    asking(quorum=2)
    look = outdated.Look()
    assert [look.work_off(limit=1) for _ in range(4)] == [1, 1, 0, 0]
    assert all(due(run) for run in runs)


def test_what_somebody_has_locked_is_left_for_the_next_look(world: World) -> None:
    run, look = asked(world), outdated.Look()
    asking(quorum=2)

    def elsewhere() -> int:
        try:
            return look.work_off()
        finally:
            connections.close_all()

    with transaction.atomic():
        Run.objects.select_for_update(of=("self",)).get(pk=run.pk)
        assert plain.at_once(elsewhere) == [0]
    assert look.work_off() == 1 and due(run)
