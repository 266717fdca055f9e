"""Every page about runs that are frozen, paused, in a line and waiting at once is an answer."""

import pytest
from django.test import Client

from agentops import acts, batches, engine
from approvals.services import freezing
from reconciliation.models import Dependency
from runs import clock
from runs.models import Batch, Run
from runs.services import principals
from tests.engine.conftest import World

NASTY = "<script>\u202e"
PAGES = [
    *("/", "/runs/", "/runs/?state=waiting", "/runs/many/", "/switches/", "/overview/", "/inbox/", "/policies/"),
    *("/health/ready?all=1", "/health/live", "/reconciliation/"),
]
TABS = ("", "?tab=evidence", "?tab=trace", "?event=1", "?act=cancel")


def mix(world: World) -> None:
    """Runs with everything at once, each taken one step on."""
    me, now = principals.of_user(user=world.people["priya"]), clock.read()
    world.work(world.start())
    target = world.scripted("target", {"key": "t", "timer": 900_000})
    waiter = world.scripted("waiter", {"key": "o", "run": str(target.pk), "within": 900_000})
    child = {"name": "kid" + world.suffix, "waits": [{"key": "e", "event": "paid"}]}
    mother = world.scripted("mother", {"key": "c", "start": child})
    for run in (target, waiter, mother):
        world.work(run, until=lambda one: one.state == "waiting" and one.lease_until is None)
    times = dict.fromkeys(("open_since", "ask_at", "trial_until", "not_before", "line_at"), now)
    Dependency.objects.create(name="billing", failures=9, last_failure=NASTY, **times)
    engine.advance(run_id=world.start("CS-8815", key="auto").pk)
    person = world.start("CS-8836")
    assert freezing.freeze(scope="all", principal=me, reason=NASTY * 50).ok
    assert freezing.freeze(scope="workflow:scripted", principal=me, reason="x").ok
    chosen = Run.objects.filter(pk__in=[waiter.pk, person.pk])
    for act in acts.INNER:
        assert batches.start(act=act, runs=chosen, chosen="x" * 300, principal=me, reason="x").ok
    batches.work_off()
    assert acts.perform(act="pause", run_id=mother.pk, principal=me, reason="x").ok
    for run in Run.objects.all():
        Run.objects.filter(pk=run.pk, wake_at__isnull=False).update(wake_at=clock.ClockTimestamp())
        engine.advance(run_id=run.pk)


def test_every_page_in_a_mix(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentops.relay.advance.apply_async", lambda args, retry: None)
    mix(world)
    paths = [*PAGES, *(f"/runs/many/{one.pk}/" for one in Batch.objects.all())]
    paths += [f"/runs/{run.pk}/{tab}" for run in Run.objects.all() for tab in TABS]
    for name in ("priya", "maya"):
        client = Client(raise_request_exception=False)
        client.force_login(world.people[name])
        got = {path: client.get(path, follow=True).status_code for path in paths}
        assert not [one for one in got.items() if one[1] >= 500 and "health" not in one[0]], got
        assert NASTY not in client.get("/switches/").content.decode()
