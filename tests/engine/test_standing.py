"""Runs under a standing approval: used without asking, never by two beyond it, held while not confirmed, revoked."""

import datetime as dt
import itertools
import threading
from dataclasses import replace
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from agentops import engine
from agentops.demo.world import Story, sandbox_world
from approvals.models import Allowance, ApprovalRequest, Decision, StandingApproval
from approvals.models.standing import Period
from approvals.services import standing as acts
from reconciliation import still_allowed
from reconciliation.models import Operation
from reconciliation.services import execute
from runs import clock
from runs.models import Event, Run
from runs.money import Money
from runs.services import principals
from runs.tools.billing.live import CreateCredit
from tests.approvals.world import at_once
from tests.engine.conftest import World
from tests.engine.test_together import stories

ENOUGH = Money(1_000_000, "USD")


def granted(world: World, **more: object) -> StandingApproval:
    """Of Maya and Jonas, for this test's customer: $1,200.00 credits, twice."""
    maya, jonas = (principals.of_user(user=world.people[name]) for name in ("maya", "jonas"))
    now = clock.now()
    given = {
        "tool": "billing.create_credit", "only": {"account": stories(world, 1)[0].account},
        "each": Money(120_000, "USD"), "total": Money(240_000, "USD"), "count": 10, "period": Period.WHOLE,
        "starts_at": now - dt.timedelta(days=1), "ends_at": now + dt.timedelta(days=30), "reason": "agreed",
    }  # fmt: skip
    one = acts.ask(terms=acts.Terms(**(given | more)), principal=maya).standing  # type: ignore[arg-type]
    assert one is not None
    assert acts.grant(standing_id=one.pk, principal=jonas, seen=acts.seen_digest(standing=one)).ok
    return one


def begin(world: World, number: int) -> list[Run]:
    found: list[Story] = stories(world, number)
    world.sandbox.world(sandbox_world(tuple(found)))
    return [world.start(one.ticket.removesuffix(world.suffix)) for one in found]


def test_used_without_asking_then_used_up_then_asked_again(world: World) -> None:
    one = granted(world)
    first, second, third = begin(world, 3)
    for run in (first, second):
        assert world.work(run).state == "completed"
    assert not ApprovalRequest.objects.exists()
    decisions = Decision.objects.filter(kind="standing")
    assert {row.standing_id for row in decisions} == {one.pk} and {row.request_id for row in decisions} == {None}
    told = Event.objects.get(stream=f"run:{first.pk}", kind="decision.standing").data
    assert told["by"] == "Maya Lindgren and Jonas Weber"
    total = Allowance.objects.get(key=f"standing/{one.pk}")
    assert (total.settled_minor, total.reserved_minor, total.settled_count) == (240_000, 0, 2)
    assert world.work(third).state == "awaiting_approval"
    assert world.vote(third).code == "approved" and world.work(third).state == "completed"
    assert Decision.objects.filter(proposal__run=third, proposal__tool="billing.create_credit").get().kind == "people"


@pytest.mark.parametrize("bound", [{"total": Money(240_000, "USD")}, {"total": ENOUGH, "count": 2}])
def test_of_many_at_once_no_more_get_through_than_it_allows(
    world: World, monkeypatch: pytest.MonkeyPatch, bound: dict[str, object]
) -> None:
    one = granted(world, **bound)
    runs = begin(world, 3)
    met, calls = threading.Barrier(3, timeout=120), itertools.count()
    opened = execute.open_attempt

    def once_all_have_decided(**given: Any) -> Any:
        if next(calls) < 3:
            met.wait()
            assert Decision.objects.filter(kind="standing").count() == 3
        return opened(**given)

    monkeypatch.setattr(execute, "open_attempt", once_all_have_decided)
    at_once(*(lambda run=run: engine.advance(run_id=run.pk) for run in runs))
    for run in runs:
        world.work(run)
    assert not met.broken
    ended = sorted(Run.objects.filter(pk__in=[run.pk for run in runs]).values_list("state", flat=True))
    assert ended == ["awaiting_approval", "completed", "completed"]
    total = Allowance.objects.get(key=f"standing/{one.pk}")
    assert (total.settled_minor, total.reserved_minor, total.settled_count, total.reserved_count) == (240_000, 0, 2, 0)
    assert sum(row["amount_minor"] for row in world.credits()) == 240_000


def test_what_is_not_confirmed_is_used_and_proof_gives_it_back(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CreateCredit, "contract", replace(CreateCredit.contract, max_attempts=2))
    one = granted(world, total=Money(120_000, "USD"), count=1)
    first, second = begin(world, 2)
    world.fault("timeout_without_effect", times=None)
    world.work(first, until=lambda run: run.state == "outcome_unknown")
    total = Allowance.objects.get(key=f"standing/{one.pk}")
    assert (total.reserved_minor, total.reserved_count) == (120_000, 1)
    assert world.work(second).state == "awaiting_approval"
    assert world.work(first, seconds=120).person_code == "gave_up"
    total.refresh_from_db()
    assert (total.reserved_minor, total.reserved_count, total.settled_minor, total.settled_count) == (0, 0, 0, 0)


def test_revoked_between_the_decision_and_the_call(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    one = granted(world)
    (run,) = begin(world, 1)
    maya = principals.of_user(user=world.people["maya"])
    opened = execute.open_attempt

    def revoke_first(**given: Any) -> Any:
        if not StandingApproval.objects.get().ended_at:
            assert acts.revoke(standing_id=one.pk, principal=maya, reason="agreed otherwise").ok
        return opened(**given)

    monkeypatch.setattr(execute, "open_attempt", revoke_first)
    assert world.work(run).state == "awaiting_approval"
    assert Decision.objects.get().kind == "standing" and not Operation.objects.exists() and world.effects() == []
    why = Event.objects.filter(stream=f"run:{run.pk}", kind="run.state", data__target="gathering").last()
    assert why is not None and "has been revoked" in why.data["why"]


def test_the_database_lets_no_operation_under_one_use_nothing_of_it(world: World) -> None:
    granted(world)
    (run,) = begin(world, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(still_allowed.Allowed, "totals", lambda self, **_: list(self.verdict.totals))
        with pytest.raises(AssertionError):  # its worker tries in vain
            world.work(run, seconds=2)
    assert not Operation.objects.exists() and world.effects() == []
    assert "uses it" in Event.objects.filter(stream=f"run:{run.pk}", kind="run.step_failed").last().data["reason"]  # type: ignore[union-attr]
    with pytest.raises(IntegrityError), transaction.atomic():
        Allowance.objects.create(key="x", label="x", currency="USD", limit_minor=9, count_limit=1, reserved_count=2)
