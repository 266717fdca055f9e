"""What our record calls failed, and the other side shows, is not done anew by anybody until a person has judged it."""

import threading
import time

import psycopg
import pytest
from django.db import IntegrityError, connection, connections, transaction

from reconciliation import late, moves
from reconciliation.models import Case, Operation
from runs.models import Run
from runs.services import principals
from runs.tools.base import Record
from tests.approvals.world import at_once
from tests.desk.conftest import Desk
from tests.desk.outside import lookup_brings
from tests.engine.conftest import World


@pytest.fixture
def failed(world: World, desk: Desk) -> Operation:
    """Settled by a person as not having happened."""
    run = world.unknown("timeout_without_effect")
    case = desk.case(run)
    desk.until_proof()
    assert desk.settle(case, "did_not") == "ok"
    return world.credit(run)


@pytest.fixture
def second(world: World, failed: Operation) -> Run:
    """Another run for the same incident, approved and not yet sent."""
    run = world.work(world.start("CS-8812", key="once more"))
    assert world.vote(run).code == "approved"
    return run


def shown(operation: Operation) -> Record:
    return Record(reference="CN-LATE", identity=operation.identity)


def held(operation: Operation) -> bool:
    operation.refresh_from_db()
    return operation.key_held


def test_it_holds_its_business_key_until_the_case_is_settled(
    world: World, desk: Desk, failed: Operation, second: Run
) -> None:
    lookup_brings(failed, shown(failed))
    assert held(failed)
    run = world.work(second)
    assert (run.state, run.person_code) == ("needs_person", "business_key_taken")
    assert world.credits() == [] and not run.operations.exists()
    assert desk.settle(desk.case(failed.run), "noted") == "ok"
    assert not held(failed)


def test_only_a_case_changes_what_is_held(failed: Operation) -> None:
    with pytest.raises(Exception, match="permission denied"), connection.cursor() as cursor:
        cursor.execute("UPDATE reconciliation_operation SET key_held = true WHERE id = %s", [failed.pk])


def test_a_successor_that_was_first_keeps_the_key_and_the_case_names_it(
    world: World, failed: Operation, second: Run
) -> None:
    assert world.work(second).state == "completed"
    lookup_brings(failed, shown(failed))
    [case] = Case.objects.filter(operation=failed).exclude(state="resolved")
    assert case.kind == "duplicate" and "has done it anew since" in case.why
    assert not held(failed)


def test_a_sender_waits_for_a_dispute_that_is_being_opened(
    failed: Operation, second: Run, owner: psycopg.Connection
) -> None:
    """The database itself keeps the second one out, whatever it had read before."""
    ended: list[BaseException | None] = []

    def create() -> None:
        try:
            Operation.objects.create(
                run=second, proposal=second.proposals.get(), decision=second.proposals.get().decisions.get(),
                tool=failed.tool, contract_version="1", system=failed.system, identity="another",
                business_key=failed.business_key, effect={},
            )  # fmt: skip
            ended.append(None)
        except IntegrityError as error:
            ended.append(error)
        finally:
            connections.close_all()

    other = threading.Thread(target=create)
    with transaction.atomic():
        run, operation = moves.lock(operation_id=failed.pk)
        late.judge(run=run, operation=operation, found=shown(failed), what="a lookup", actor=principals.system())
        other.start()
        until = time.monotonic() + 120
        while not owner.execute("SELECT FROM pg_locks WHERE NOT granted").fetchall() and time.monotonic() < until:
            time.sleep(0.01)
    other.join(10)
    assert "operation_business_key_once" in str(ended[0])


def test_a_dispute_and_a_second_sender_at_once_never_both_have_it(world: World, failed: Operation, second: Run) -> None:
    results = at_once(lambda: lookup_brings(failed, shown(failed)), lambda: world.work(second))
    assert not [one for one in results if isinstance(one, BaseException)]
    second.refresh_from_db()
    assert held(failed) != second.operations.exists()
    assert len(world.credits()) == (0 if failed.key_held else 1)
