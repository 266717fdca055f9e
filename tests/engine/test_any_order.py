"""Freezes, pauses, cancels, waits, lost answers and one shared account, in any order: nothing is lost or doubled."""

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

CREDIT = "billing.create_credit"
FAULTS = ["execute_and_timeout", "timeout_without_effect", "overloaded", "execute_and_timeout"]
SCOPES = ["all", f"tool:{CREDIT}", "workflow:scripted", "workflow:service_credit"]
ACTS = ["freeze", "lift", "lift", "pause", "resume", "resume", "again", "batch", "cancel", "to-person", "signal", "on"]
RARE = ("cancel", "to-person")
SETTLES_WITHIN = 40.0  # seconds


class Story:
    """Seven runs, and what people and programs do to them, drawn by `seed`."""

    def __init__(self, world: World, seed: int) -> None:
        self.world, self.rng = world, random.Random(seed)
        self.me = principals.of_user(user=world.people["priya"])
        waits = [{"key": "t", "timer": 3_000}, {"key": "e", "event": "paid", "within": 6_000}]
        child = {"name": f"child{world.suffix}", "waits": [{"key": "t", "timer": 1_500}]}
        self.target = world.scripted("target", *waits)
        self.runs = [
            *approved_runs(world, 3),
            self.target,
            world.scripted("waiter", {"key": "o", "run": str(self.target.pk)}),
            world.scripted("mother", {"key": "c", "start": child}),
            world.start("CS-8815", key="automatic"),
        ]
        for _ in range(3):
            world.fault(self.rng.choice(FAULTS))

    def act(self) -> None:
        run, what = self.rng.choice(self.runs), self.rng.choice([*ACTS, "vote"])
        if what in RARE and self.rng.random() > 0.3:
            return
        if what == "freeze":
            freezing.freeze(scope=self.rng.choice(SCOPES), principal=self.me, reason="x")
        elif what == "lift":
            self.lift(Freeze.objects.filter(lifted_at__isnull=True).order_by("since")[:1])
        elif what in acts.INNER:
            acts.perform(act=what, run_id=run.pk, principal=self.me, reason="x")
        elif what == "batch":
            live, act = Run.objects.filter(finished_at=None), self.rng.choice(["pause", "resume", "again"])
            batches.start(act=act, runs=live, chosen="all", principal=self.me, reason="x")
        elif what == "signal":
            key, paid = str(self.rng.randrange(3)), {"amount_minor": "1"}
            signalling.send(run_id=self.target.pk, key=key, kind="paid", payload=paid, sender=self.me)
        elif what == "on":
            operate.gather_again(run_id=run.pk, principal=self.me, reason="x")
        else:
            self.vote()

    def lift(self, found: Any) -> None:
        for one in found:
            freezing.lift(freeze_id=one.pk, principal=self.me, reason="x")

    def vote(self) -> None:
        for one in ApprovalRequest.objects.filter(state="open").select_related("run"):
            self.world.vote(one.run)

    def turn(self, *, every: bool) -> None:
        """What the relay and the workers do; not all of it each time, unless `every`."""
        if every or self.rng.random() < 0.8:
            Relay().run_once()
        processes.record_ended()
        found = list(Run.objects.all())
        self.rng.shuffle(found)
        for run in found:
            if every or self.rng.random() < 0.6:
                engine.advance(run_id=run.pk)

    def settle(self) -> None:
        """Everything is lifted and resumed, and people answer: it goes on until only people could go on."""
        self.lift(Freeze.objects.filter(lifted_at__isnull=True))
        until = time.monotonic() + SETTLES_WITHIN
        while time.monotonic() < until and (live().exists() or Batch.objects.filter(finished_at=None).exists()):
            for run in Run.objects.filter(finished_at=None, paused_at__isnull=False):
                acts.perform(act="resume", run_id=run.pk, principal=self.me, reason="end")
            self.vote()
            self.turn(every=True)
            time.sleep(0.05)
        for _ in range(10):
            Relay().run_once()


def live() -> Any:
    """Runs that should go on by themselves; whoever waits for a run that a person has, waits rightly."""
    with_people = Wait.objects.filter(ended_at=None, other__state="needs_person").values("run")
    return Run.objects.filter(finished_at=None).exclude(state="needs_person").exclude(pk__in=with_people)


@pytest.mark.parametrize("seed", [3])
def test_any_order(world: World, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentops.relay.advance.apply_async", lambda args, retry: None)
    story = Story(world, seed)
    for _ in range(40):
        story.act()
        story.turn(every=False)
    story.settle()
    assert not live().exists(), list(live().values_list("title", "state", "waits_for", "wake_at", "frozen_by"))
    assert not Run.objects.filter(state="needs_person", cancel_requested_at__isnull=False).exists()
    assert not Run.objects.filter(finished_at=None, frozen_by__isnull=False).exists()
    assert not Freeze.objects.filter(thawed_at=None).exists() and not Batch.objects.filter(finished_at=None).exists()
    assert not ResourceHold.objects.exists()
    credited = Operation.objects.filter(state="succeeded", tool=CREDIT)
    assert sorted(credited.values_list("identity", flat=True)) == sorted(one["identity"] for one in world.credits())
    for run in Run.objects.all():
        assert credited.filter(run=run).count() <= 1 and record.verify(stream=f"run:{run.pk}") is None
