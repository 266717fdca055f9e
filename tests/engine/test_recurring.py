"""Recurring work: once however many relays there are, noted, and said when it stalls or fails."""

import datetime as dt

import pytest
from django.test import Client

from agentops import relay
from runs import clock
from runs.models import Recurring
from runs.services import recurring
from tests.approvals.world import at_once
from tests.runpages import world

pytestmark = pytest.mark.usefixtures("db")


def said() -> dict[str, str]:
    return {job.name: wrong for job, wrong in recurring.told(names=relay.JOBS)}


def test_of_many_relays_one_takes_the_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    monkeypatch.setattr("reconciliation.services.processes.record_ended", lambda: looked.append(1) or [])
    at_once(*[lambda: relay.Relay().run_once()] * 8)
    assert len(looked) == 1
    assert at_once(*[lambda: recurring.begin(name="x", every=3600)] * 8).count(True) == 1


def test_each_turn_is_noted_and_a_later_one_is_taken_again() -> None:
    relay.Relay().run_once()
    assert set(Recurring.objects.values_list("name", flat=True)) == set(relay.JOBS) == set(said())
    assert not any(said().values())
    for job in Recurring.objects.all():
        assert job.finished_at is not None and job.finished_at >= job.started_at and not job.failed
        assert job.every_seconds == relay.JOBS[job.name] and job.result == "0 since the turn before"
    Recurring.objects.update(started_at=clock.now() - dt.timedelta(seconds=40))
    relay.Relay().run_once()
    assert Recurring.objects.filter(started_at__gt=clock.now() - dt.timedelta(seconds=9)).count() == len(relay.JOBS)


def test_work_that_fails_holds_up_no_other_and_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(**_: object) -> int:
        raise ZeroDivisionError("a day without hours")

    monkeypatch.setattr(relay, "process_events", fails)
    relay.Relay().run_once()
    found = said()
    assert found.pop("received events") == "failed the last time: ZeroDivisionError: a day without hours"
    assert not any(found.values())


def test_a_stalled_one_is_said_in_health_and_on_the_overview() -> None:
    relay.Relay().run_once()
    ago = clock.now() - dt.timedelta(minutes=3)
    Recurring.objects.filter(name="received events").update(started_at=ago, finished_at=ago)
    Recurring.objects.filter(name="due runs").update(started_at=ago, finished_at=None)
    parts = Client().get("/health/ready", {"all": "1"}).json()["parts"]["recurring"]
    assert "received events: last finished 18" in parts and "due every 5 s" in parts
    assert "due runs: has never finished; it began 18" in parts and "ended processes" not in parts
    assert Client().get("/health/ready").status_code == 200  # people can still read and decide
    browser = Client()
    browser.force_login(world.support())
    page = browser.get("/overview/").content.decode()
    assert "Last finished 18" in page and "Has never finished; it began 18" in page and "Ended processes" in page
