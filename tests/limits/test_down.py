"""A system that is down is left alone but for one question at a time; runs wait visibly and nothing is given up."""

import re

from reconciliation.models import Attempt, Dependency, Observation, Operation
from reconciliation.services import gates
from runs.models import Run
from tests.limits.conftest import Outside
from tests.limits.stub import SYSTEM, TOOL

NUMBER, WORKERS = 12, 3


def test_runs_wait_for_a_system_that_is_down_and_all_go_on_when_it_answers(outside: Outside) -> None:
    outside.stub.down = True
    outside.start(NUMBER)
    outside.work(WORKERS)
    outside.until(lambda: Dependency.objects.filter(open_since__isnull=False, failures__gte=7).exists())
    # every operation that was sent is not confirmed, every other was not sent; none is failed or given up
    states = set(Operation.objects.values_list("state", flat=True))
    assert states <= {"unknown", "sending", "authorised"} and "unknown" in states
    outside.until(
        lambda: Run.objects.filter(waits_on__in=[TOOL, SYSTEM], lease_until__isnull=True).count() >= NUMBER - WORKERS
    )
    words = list(Run.objects.filter(waits_on=SYSTEM).values_list("waits_for", flat=True))
    assert any(re.fullmatch(r"stub to answer again; asked next at \d\d:\d\d:\d\d UTC", one) for one in words), words

    asked = len(outside.stub.calls) + len(outside.stub.lookups)
    # until both circuits opened, and what every worker had under way then: a slow machine has several steps of it
    most = gates.OPENS_AFTER * 2 + WORKERS * 4
    trials = sum(Dependency.objects.values_list("failures", flat=True))
    assert asked <= most + trials

    outside.stub.down = False
    outside.until(lambda: not Run.objects.filter(finished_at__isnull=True).exists())
    assert Run.objects.filter(state="completed").count() == NUMBER
    assert len({one.identity for one in outside.stub.calls if one.status == 201}) == NUMBER
    assert not Dependency.objects.filter(open_since__isnull=False).exists()
    # waiting was never an attempt, and never a question: each one there is reached the stub
    assert Attempt.objects.count() == len(outside.stub.calls)
    assert Observation.objects.filter(source="probe").count() == len(outside.stub.lookups)
