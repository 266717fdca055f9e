"""A run whose two approvals never counted at the same time goes on once they do, without another vote: the relay
counts, under the policy in force, and pages and mails say so."""

import time
import uuid
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agentops.pages import story
from agentops.relay import Relay
from agentops.starting import start_workflow
from agentops.telling import letters
from approvals.models import Decision, Notice
from approvals.services import counting, staffing, telling
from runs.models import Event, Run
from runs.services import principals
from tests.engine.conftest import World
from tests.engine.test_nobody_to_ask import asking, gone

KINDS = ("request.counted", "request.approved")


def both_said_yes(world: World, *, starter: User | None = None) -> Run:
    """Jonas comes back after Maya has voted; each had approved while the other's word counted for nothing."""
    asking(quorum=2)
    by = None if starter is None else principals.of_user(user=starter)
    data = {"ticket": world.named("CS-8812")}
    run = world.start() if by is None else start_workflow(name="service_credit", data=data, initiator=by).run
    run = world.work(run)
    assert world.vote(run, "jonas").code == "voted"
    gone("jonas")
    assert world.vote(run, "maya").code == "voted"
    gone("jonas", active=True)
    return run


def test_the_relay_counts_and_the_run_goes_on(world: World) -> None:
    run = both_said_yes(world)
    Relay().run_once()
    decision = Decision.objects.get(request=world.request(run))
    assert decision.approved and world.work(run).state == "completed" and len(world.credits()) == 1
    counted, closed = Event.objects.filter(stream=f"run:{run.pk}", kind__in=KINDS).order_by("seq")
    said = story.tell(counted)
    assert (said.lead, said.text) == (
        "System counted again for support managers", "what Jonas Weber, Maya Lindgren had approved; that is enough now",
    )  # fmt: skip
    assert story.tell(closed).text == "by Jonas Weber, Maya Lindgren, counted again by the system"
    reader = Client()
    reader.force_login(world.people["maya"])
    page = reader.get(f"/approvals/{decision.request_id}/").text
    assert "counted again what Jonas Weber, Maya Lindgren had approved: support managers has enough now" in page


def test_a_policy_that_asks_for_more_by_now_is_heard(world: World) -> None:
    run = both_said_yes(world)
    world.people["priya"].groups.add(*world.people["maya"].groups.filter(name="manager"))
    asking(quorum=3)
    Relay().run_once()
    assert not Decision.objects.filter(kind="people").exists()
    assert world.work(run, until=lambda one: world.request(one).quorum == 3).state == "awaiting_approval"


def test_the_mail_says_who_had_approved_and_that_the_system_counted(world: World) -> None:
    both_said_yes(world, starter=world.people["priya"])
    Relay().run_once()
    telling.spread(limit=100)
    mail = letters.compose(notices=[Notice.objects.get(kind=Notice.Kind.OUTCOME)])
    assert "Approved by “Jonas Weber”, “Maya Lindgren” on" in mail.text
    assert "They had approved before; the system counted that when all of them were entitled to it." in mail.text


@pytest.mark.usefixtures("db")
def test_very_many_to_count_hold_up_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is due is looked at between them, and each has its turn once, whatever becomes of another."""
    many, seen = [uuid.uuid4() for _ in range(12)], []

    def slow(*, requests: list[uuid.UUID], reevaluate: Any) -> int:
        seen.extend(requests)
        time.sleep(0.1)
        if requests == many[7:8]:
            raise counting.one_by_one.NotAll("nobody foresaw it")
        return 1

    looks = [staffing.Looked(woken=0, to_count=many, last=None)]
    nothing = staffing.Looked(woken=0, to_count=[], last=None)
    monkeypatch.setattr(staffing, "work_off", lambda **_: looks.pop() if looks else nothing)
    monkeypatch.setattr(counting, "work_off", slow)
    relay = Relay()
    relay.run_once()
    assert 0 < len(seen) < 7 and relay.more
    while relay.more:
        relay.run_once()
    assert seen == many
