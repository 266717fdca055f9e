"""Who presses "Try again now" on a run that stands in a line moves neither that run nor the others back."""

import datetime as dt
from dataclasses import replace

import pytest

from agentops import acts, engine
from reconciliation.models import Operation
from runs import clock
from runs.models import Run
from runs.services import principals
from runs.tools.base import Rate
from tests.limits import stub as stubs
from tests.limits.conftest import Outside


def on(run: Run) -> Run:
    for _ in range(3):
        engine.advance(run_id=run.pk)
    run.refresh_from_db()
    return run


def test_trying_again_now_costs_nobody_a_place(outside: Outside, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = replace(stubs.Count.contract, rate=Rate(calls=1, per=dt.timedelta(seconds=20)))
    monkeypatch.setattr(stubs.Count, "contract", slow)
    first, second, third = outside.start(3)
    assert on(first).state == "completed"
    assert on(second).state == "waiting"
    place = Operation.objects.get(run=second).turn_at
    assert place is not None
    for _ in range(10):
        result = acts.perform(act="again", run_id=second.pk, principal=principals.system(), reason="now")
        assert result.ok, result
        on(second)
    moved = Operation.objects.get(run=second).turn_at
    assert moved is not None
    newcomer = on(third).wake_at
    assert newcomer is not None
    assert moved - place < dt.timedelta(seconds=5), moved - place
    assert newcomer - clock.read() < dt.timedelta(seconds=60)
