"""Names taken all or none by many at once, in whatever order they are given."""

import random
from functools import partial

from agentops import engine
from reconciliation.models import Operation, ResourceHold
from reconciliation.services import holds
from tests.approvals.world import at_once
from tests.limits.conftest import Outside

NAMES = ["account 1", "Account 2", "account 10", "b", "ä"]


def test_all_or_none_and_nobody_waits_for_another_in_a_ring(outside: Outside) -> None:
    for run in outside.start(5):
        while not Operation.objects.filter(run=run).exists():
            engine.advance(run_id=run.pk)
    operations = list(Operation.objects.all())
    rng = random.Random(5)
    for _ in range(5):
        wanted = {one.pk: rng.sample(NAMES, 2) for one in operations}
        answers = at_once(*[partial(holds.take, operation=one, names=wanted[one.pk]) for one in operations])
        assert all(one is None or isinstance(one, holds.Busy) for one in answers)  # no deadlock was broken
        assert None in answers
        for operation, answer in zip(operations, answers, strict=True):
            mine = set(ResourceHold.objects.filter(operation=operation).values_list("name", flat=True))
            assert mine == (set(wanted[operation.pk]) if answer is None else set())
            holds.let_go(operation=operation)
