"""Everything that can hold a run holds it at once, and each hold ends by itself."""

import datetime as dt

import pytest
from django.db import transaction

from agentops import acts, engine
from agentops.relay import Relay
from approvals.services import freezing
from reconciliation.case_opening import open_case
from reconciliation.models import Case, ResourceHold
from runs import retry
from runs.models import Run
from runs.services import principals
from tests.engine.conftest import World
from tests.engine.test_lookups import settle
from tests.engine.test_together import approved_runs


def test_a_freeze_a_cancel_a_case_and_one_account_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next in line goes on, the cancelled run ends with what it did, and each credit is one."""
    monkeypatch.setattr("agentops.relay.advance.apply_async", lambda args, retry: None)
    me = principals.of_user(user=world.people["priya"])
    first, second = approved_runs(world, 2)
    world.fault("execute_and_timeout")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retry, "backoff", lambda **_: dt.timedelta(hours=1))
        world.work(first, until=lambda one: one.state == "outcome_unknown" and one.lease_until is None)
    second = world.work(second, until=lambda one: one.waits_on.startswith("resource:"))
    frozen = freezing.freeze(scope="tool:billing.create_credit", principal=me, reason="x").freeze
    wide = freezing.freeze(scope="all", principal=me, reason="x").freeze
    assert frozen is not None and wide is not None
    for run in (first, second):
        assert acts.perform(act="pause", run_id=run.pk, principal=me, reason="x").ok
    assert acts.perform(act="cancel", run_id=first.pk, principal=me, reason="x").ok
    for run in (first, second):
        engine.advance(run_id=run.pk)
    with transaction.atomic():
        locked = Run.objects.select_for_update().get(pk=first.pk)
        open_case(
            run=locked, operation=world.credit(first), kind=Case.Kind.NOT_CONFIRMED, doubts=["x"], why="x", actor=me
        )
    world.fault("lookup_error", "billing.credit_notes.list", times=1)
    told = settle(world, first, "happened", reference="INV-CN-seen-there")
    assert told.ok, told
    assert not ResourceHold.objects.exists()
    first = world.work(first, until=lambda one: one.is_over)
    assert first.state == "cancelled" and "Done before, and staying" in first.outcome
    assert freezing.lift(freeze_id=frozen.pk, principal=me, reason="x").ok
    assert acts.perform(act="resume", run_id=second.pk, principal=me, reason="x").ok
    second = world.work(second, until=lambda one: one.frozen_by == wide.pk)
    assert len(world.credits()) == 1
    assert freezing.lift(freeze_id=wide.pk, principal=me, reason="x").ok
    for _ in range(3):
        Relay().run_once()
    second = world.work(second)
    assert second.state == "completed" and len(world.credits()) == 2 and not ResourceHold.objects.exists()
