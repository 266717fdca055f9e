"""A tool without a rate: a good answer to a trial closes its circuit, and failures are in a row only."""
import datetime as dt

from reconciliation.models import Dependency
from runs import clock
from tests.engine.conftest import World


def test_the_trial_of_a_tool_without_a_rate_closes_its_circuit(world: World) -> None:
    run = world.approved()
    now = clock.read()
    Dependency.objects.create(
        name="billing.create_credit", failures=6, open_since=now - dt.timedelta(minutes=1), ask_at=now,
        last_failure="No answer.",
    )
    assert world.work(run).state == "completed" and len(world.credits()) == 1
    one = Dependency.objects.get(pk="billing.create_credit")
    assert (one.open_since, one.failures, one.trial_until) == (None, 0, None)


def test_failures_that_are_not_in_a_row_open_no_circuit(world: World) -> None:
    run = world.approved()
    Dependency.objects.create(name="billing.create_credit", failures=4, last_failure="No answer.")
    assert world.work(run).state == "completed"
    assert Dependency.objects.get(pk="billing.create_credit").failures == 0
