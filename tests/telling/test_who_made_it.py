"""Who made a decision is told alike everywhere: a yes whose person had lost the right by then is no part of it."""

import json

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client

from agentops.api import stages as told
from agentops.pages import story
from agentops.telling import letters
from approvals import announced, objections
from approvals.models import ApprovalRequest, Decision, Notice, Vote
from approvals.services import requests
from approvals.words import sentence
from runs import clock
from runs.models import Event, Run
from runs.services import principals
from tests.approvals import world
from tests.telling.conftest import person, spread

pytestmark = pytest.mark.usefixtures("db")


@pytest.fixture
def carla(db: str) -> User:
    return person("carla")


@pytest.fixture
def decided(carla: User) -> world.Asked:
    """Two have to approve: Anna did before she lost the right, then Bert and Carla; Maya had asked."""
    anna, bert = person("anna"), person("bert")
    asked = world.ask(quorum=2, initiator=principals.of_user(user=person("maya")))
    assert world.cast(asked, anna).code == "voted"
    anna.groups.clear()
    assert world.cast(asked, bert).code == "voted"
    assert world.cast(asked, carla).code == "approved"
    return asked


def by(name: str) -> str:
    return str(Vote.objects.get(principal__user__username=name).pk)


def test_the_decision_keeps_the_votes_that_made_it(decided: world.Asked) -> None:
    assert Decision.objects.get().votes == [by("bert"), by("carla")]


def test_a_no_is_made_by_those_who_said_no(carla: User) -> None:
    anna, asked = person("anna"), world.ask(quorum=2)
    world.cast(asked, anna)
    assert world.cast(asked, carla, "reject").code == "rejected"
    assert Decision.objects.get().votes == [by("carla")]
    found = objections.closed(request=asked.fresh(), run=asked.run, user=person("dora"), now=clock.now())
    assert found is not None and found.detail["by"] == "Carla"


def test_whoever_comes_later_reads_who_decided(decided: world.Asked) -> None:
    def said(username: str) -> str:
        user = User.objects.get(username=username)
        found = objections.closed(request=decided.fresh(), run=decided.run, user=user, now=clock.now())
        assert found is not None
        return sentence(code=found.code, detail=found.detail)

    assert said("anna").startswith("Bert, Carla approved this on ") and "Your answer was not counted" in said("anna")
    assert said("bert").startswith("You and others approved this on ")


def test_the_mail_names_them(decided: world.Asked) -> None:
    spread()
    letter = letters.compose(notices=[Notice.objects.get(kind="outcome")])
    assert "Approved by “Bert”, “Carla” on" in letter.text and "Anna" not in letter.text
    assert "the system counted" not in letter.text


def test_the_webhook_names_them_and_nobody_before_there_is_a_decision(decided: world.Asked) -> None:
    bodies = {
        event.kind: json.loads(announced.body(event=event, request=decided.fresh()))
        for event in Event.objects.filter(kind__in=["request.opened", "request.approved"])
    }
    assert bodies["request.approved"]["decided_by"] == ["Bert", "Carla"]
    assert bodies["request.opened"]["decided_by"] == []


def test_the_run_names_them_and_says_of_no_click_that_the_system_counted(decided: world.Asked) -> None:
    assert story.tell(Event.objects.select_related("actor").get(kind="request.approved")).text == "by Bert, Carla"


def test_the_same_click_again_is_told_what_it_was_told(decided: world.Asked) -> None:
    again = world.cast(decided, User.objects.get(username="bert"))
    assert (again.code, again.detail["votes_for"], again.detail["quorum"]) == ("voted", 1, 2)


def test_pages_say_which_yes_made_no_part_of_it_once_nothing_hangs_on_it(decided: world.Asked, carla: User) -> None:
    browser = Client()
    browser.force_login(carla)
    page = f"/approvals/{decided.request.pk}/"
    assert "no longer counts: " in browser.get(page).text  # it is looked at again before it is used
    with transaction.atomic(durable=True):
        run = Run.objects.select_for_update(of=("self",)).get(pk=decided.run.pk)
        requests.spend(request=decided.fresh(), actor=principals.system(), run=run)
    shown = " ".join(browser.get(page).text.split())
    assert shown.count("did not count: they were not entitled to it when it was decided") == 1
    assert "Anna approved" in shown and "no longer counts" not in shown
    run = " ".join(browser.get(f"/runs/{decided.run.pk}/?tab=approvals").text.split())
    assert "from Anna – did not count" in run and "from Bert <time" in run
    found = told.newest(run=decided.run)
    assert found is not None and [(one.approved, one.needed) for one in found.stages] == [(2, 2)]


def test_of_decisions_from_before_that_was_kept_all_are_named(decided: world.Asked) -> None:
    request = ApprovalRequest.objects.select_related("decision").get()
    request.decision.votes = []
    assert all(request.decision.made_by(vote) for vote in Vote.objects.all())
