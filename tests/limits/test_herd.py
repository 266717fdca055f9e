"""A limit that lifts brings no herd: each of many operations is sent when it may be, and once."""

import datetime as dt

from reconciliation.models import Attempt, Operation
from runs.models import Run
from tests.limits.conftest import Outside
from tests.limits.stub import ALLOWED

NUMBER, WORKERS, CLOSED = 200, 4, 3.0


def test_two_hundred_operations_at_a_system_that_allows_five_a_second(outside: Outside) -> None:
    """The stub asks the first callers to wait, then allows five a second. It judges by its own clock."""
    outside.stub.closed_for = CLOSED
    outside.start(NUMBER)
    outside.work(WORKERS)
    outside.until(lambda: not Run.objects.filter(finished_at__isnull=True).exists())
    assert (
        Run.objects.filter(state="completed").count() == NUMBER == Operation.objects.filter(state="succeeded").count()
    )

    calls = outside.stub.calls
    done = [one for one in calls if one.status == 201]
    assert len(done) == NUMBER == len({one.identity for one in done})
    told = [one for one in calls if one.status == 429]
    # only what was already under way when the first was told to wait; after that nobody called too early, ever
    assert 1 <= len(told) <= WORKERS, [(one.at - calls[0].at, one.status) for one in calls[:20]]
    lifts = min(one.at + one.wait for one in told)
    assert all(one.at >= lifts for one in done)
    windows = [sum(first.at <= one.at < first.at + 1 for one in done) for first in done]
    assert max(windows) <= 2 * ALLOWED  # a full bucket, and what flows into it meanwhile

    # by the database's clock: once one had been told, none was opened before the time it was told
    for one in Attempt.objects.filter(result="overloaded"):
        assert one.answer is not None and one.closed_at is not None
        until = one.closed_at + dt.timedelta(seconds=int(one.answer["headers"]["retry-after"]))
        heard = one.closed_at + dt.timedelta(seconds=1)  # what was under way then may be some moments late
        assert not Attempt.objects.filter(opened_at__gt=heard, opened_at__lt=until).exists()
    assert Attempt.objects.count() == len(calls)
