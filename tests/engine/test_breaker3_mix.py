"""Freezes, pauses, cancels, waits, unknown outcomes and one shared account, in any order: nothing is lost or doubled."""

import os
import random
import time
from typing import Any

import pytest

from agentops import acts, batches, engine
from agentops.relay import Relay
from approvals.models import ApprovalRequest, Freeze
from approvals.services import freezing
from reconciliation.models import Operation, ResourceHold
from reconciliation.services import processes
from runs import record
from runs.models import Batch, Run, Wait
from runs.services import operate, principals, signalling
from tests.engine.conftest import World
from tests.engine.test_together import approved_runs

FAULTS = ["execute_and_timeout", "timeout_without_effect", "overloaded", "execute_and_timeout"]
SEEDS = [int(one) for one in os.environ.get("SEEDS", "1,2,3").split(",")]


@pytest.mark.parametrize("seed", SEEDS)
def test_any_order(world: World, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentops.relay.advance.apply_async", lambda args, retry: None)
    rng = random.Random(seed)
    me = principals.of_user(user=world.people["priya"])
    runs = approved_runs(world, 3)
    target = world.scripted("target", {"key": "t", "timer": 3_000}, {"key": "e", "event": "paid", "within": 6_000})
    runs += [
        target,
        world.scripted("waiter", {"key": "o", "run": str(target.pk)}),
        world.scripted("mother", {"key": "c", "start": {"name": f"child{world.suffix}", "waits": [{"key": "t", "timer": 1500}]}}),
        world.start("CS-8815", key="automatic"),
    ]
    scopes = ["all", "tool:billing.create_credit", "workflow:scripted", "workflow:service_credit"]
    log: list[Any] = []
    for _ in range(3):
        world.fault(rng.choice(FAULTS))

    def act() -> None:
        run = rng.choice(runs)
        what = rng.choice(["freeze", "lift", "lift", "pause", "resume", "resume", "again", "batch", "cancel", "hand", "signal", "on", "vote"])
        log.append((what, str(run.title)))
        if what == "freeze":
            freezing.freeze(scope=rng.choice(scopes), principal=me, reason="x")
        elif what == "lift" and (one := Freeze.objects.filter(lifted_at__isnull=True).order_by("?").first()):
            freezing.lift(freeze_id=one.pk, principal=me, reason="x")
        elif what in ("pause", "resume", "again"):
            acts.perform(act=what, run_id=run.pk, principal=me, reason="x")
        elif what == "batch":
            batches.start(
                act=rng.choice(["pause", "resume", "again"]), runs=Run.objects.filter(finished_at=None), chosen="all",
                principal=me, reason="x",
            )
        elif what == "cancel" and rng.random() < 0.3:
            acts.perform(act="cancel", run_id=run.pk, principal=me, reason="x")
        elif what == "hand" and rng.random() < 0.3:
            acts.perform(act="to-person", run_id=run.pk, principal=me, reason="x")
        elif what == "signal":
            signalling.send(run_id=target.pk, key=str(rng.randrange(3)), kind="paid", payload={"amount_minor": "1"}, sender=me)
        elif what == "on" and run.state == "needs_person":
            operate.gather_again(run_id=run.pk, principal=me, reason="x")
        elif what == "vote":
            for one in ApprovalRequest.objects.filter(state="open").select_related("run"):
                world.vote(one.run)

    def everybody() -> list[Run]:
        return list(Run.objects.all())

    def turn() -> None:
        if rng.random() < 0.8 or settled:
            Relay().run_once()
        processes.record_ended()
        found = everybody()
        rng.shuffle(found)
        for run in found:
            if settled or rng.random() < 0.6:
                engine.advance(run_id=run.pk)

    settled = False
    for _ in range(40):
        act()
        turn()
    settled = True
    for one in Freeze.objects.filter(lifted_at__isnull=True):
        freezing.lift(freeze_id=one.pk, principal=me, reason="end")
    until = time.monotonic() + 40
    # whoever waits for a run that a person has waits rightly
    with_people = Wait.objects.filter(ended_at=None, other__state="needs_person").values("run")
    for _ in range(10):
        Relay().run_once()
    while time.monotonic() < until:
        for run in Run.objects.filter(finished_at=None, paused_at__isnull=False):
            acts.perform(act="resume", run_id=run.pk, principal=me, reason="end")
        for one in ApprovalRequest.objects.filter(state="open").select_related("run"):
            world.vote(one.run)
        turn()
        live = Run.objects.filter(finished_at=None).exclude(state="needs_person").exclude(pk__in=with_people)
        if not live.exists() and not Batch.objects.filter(finished_at=None).exists():
            break
        time.sleep(0.05)
    told = [(r.title, r.state, r.waits_for, r.wake_at, r.frozen_by, r.paused_at, r.cancel_requested_at, r.person_reason, r.outcome) for r in everybody()]
    print(log)
    print("\n".join(map(str, told)))
    live = Run.objects.filter(finished_at=None).exclude(state="needs_person").exclude(pk__in=with_people)
    assert not live.exists(), "stuck"
    assert not Run.objects.filter(state="needs_person", cancel_requested_at__isnull=False).exists(), "cancel lost"
    assert not Run.objects.filter(finished_at=None, frozen_by__isnull=False).exists()
    assert not Freeze.objects.filter(thawed_at=None).exists() and not Batch.objects.filter(finished_at=None).exists()
    assert not ResourceHold.objects.exists()
    said = set(Operation.objects.filter(state="succeeded", tool="billing.create_credit").values_list("identity", flat=True))
    really = [one["identity"] for one in world.credits()]
    assert sorted(said) == sorted(really)
    for run in everybody():
        mine = Operation.objects.filter(run=run, state="succeeded", tool="billing.create_credit")
        assert mine.count() <= 1 and record.verify(stream=f"run:{run.pk}") is None
