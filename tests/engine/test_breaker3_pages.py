"""Every page and answer about runs that are frozen, paused, in a line and waiting at once is an answer."""

import pytest
from django.test import Client

from agentops import acts, batches, engine
from approvals.services import freezing
from reconciliation.models import Dependency
from runs import clock
from runs.models import Batch, Run
from runs.services import principals
from tests.engine.conftest import World


def test_pages_in_every_mix(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentops.relay.advance.apply_async", lambda args, retry: None)
    me, now = principals.of_user(user=world.people["priya"]), clock.read()
    asked = world.work(world.start())
    target = world.scripted("target", {"key": "t", "timer": 900_000})
    waiter = world.scripted("waiter", {"key": "o", "run": str(target.pk), "within": 900_000})
    child = world.scripted("mother", {"key": "c", "start": {"name": "kid" + world.suffix, "waits": [{"key": "e", "event": "paid"}]}})
    for run in (target, waiter, child):
        world.work(run, until=lambda one: one.state == "waiting" and one.lease_until is None)
    Dependency.objects.create(name="billing", failures=9, open_since=now, ask_at=now, trial_until=now, not_before=now, line_at=now, last_failure="<b>\u202ex")
    credit = world.start("CS-8815", key="auto")
    engine.advance(run_id=credit.pk)
    person = world.start("CS-8836")
    frozen = freezing.freeze(scope="all", principal=me, reason="<script>\u202e" * 50).freeze
    freezing.freeze(scope="workflow:scripted", principal=me, reason="x")
    assert frozen is not None
    for act in ("pause", "resume", "again", "to-person", "cancel"):
        batches.start(act=act, runs=Run.objects.filter(pk__in=[waiter.pk, person.pk]), chosen="x" * 300, principal=me, reason="x")
    batches.work_off()
    acts.perform(act="pause", run_id=child.pk, principal=me, reason="x")
    for run in Run.objects.all():
        Run.objects.filter(pk=run.pk, wake_at__isnull=False).update(wake_at=clock.ClockTimestamp())
        engine.advance(run_id=run.pk)
    for name in ("priya", "tomas", "maya"):
        client = Client(raise_request_exception=False)
        client.force_login(world.people[name])
        paths = ["/", "/runs/", "/runs/?state=waiting", "/runs/many/", "/switches/", "/overview/", "/inbox/", "/policies/", "/health/ready?all=1", "/health/live", "/reconciliation/"]
        paths += [f"/runs/{run.pk}/{tab}" for run in Run.objects.all() for tab in ("", "?tab=evidence", "?tab=trace", "?event=1", "?act=cancel")]
        paths += [f"/runs/many/{one.pk}/" for one in Batch.objects.all()]
        got = {path: client.get(path, follow=True).status_code for path in paths}
        assert not [one for one in got.items() if one[1] >= 500 and "health" not in one[0]], got
        print({code: sum(one == code for one in got.values()) for code in set(got.values())}, [p for p, c in got.items() if c == 404])
        html = client.get("/switches/").content.decode()
        assert "<script>\u202e" not in html
    assert asked.pk
