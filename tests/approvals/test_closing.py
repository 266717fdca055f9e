"""An act beside voting meets a vote: one of them is first, the other is told, and the request ends once."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.models import Decision, Refusal, Vote
from approvals.services import closing
from runs import record
from runs.models import Run
from runs.services import principals
from tests.approvals import world

pytestmark = pytest.mark.usefixtures("db")
ROUNDS = 8
ENDS = ("request.approved", "request.rejected", "request.sent_back", "request.withdrawn")


@pytest.fixture
def people(db: str) -> tuple[User, User]:
    return world.user("anna"), world.user("bert")


def back(asked: world.Asked, who: User) -> Any:
    me = principals.of_user(user=who)
    return closing.send_back(request_id=asked.request.pk, principal=me, reason="look again", channel="page")


def away(asked: world.Asked, who: User) -> Any:
    return closing.withdraw(
        request_id=asked.request.pk, principal=asked.run.initiator, reason="not wanted", channel="api"
    )


@pytest.mark.parametrize(("act", "state"), [(back, "sent_back"), (away, "withdrawn")])
@pytest.mark.parametrize("choice", ["approve", "reject"])
def test_a_vote_against_an_act(people: tuple[User, User], act: Callable[..., Any], state: str, choice: str) -> None:
    anna, bert = people
    version, ended = world.policy(), set()
    for _ in range(ROUNDS):
        asked = world.ask(version=version)
        vote, acted = world.at_once(
            lambda asked=asked: world.cast(asked, anna, choice), lambda asked=asked: act(asked, bert)
        )
        now = asked.fresh()
        ended.add(now.state)
        assert asked.events(*ENDS) == [f"request.{now.state}"]
        assert (vote.accepted, acted.ok) == (now.state != state, now.state == state)
        assert Vote.objects.filter(request=now).count() == Decision.objects.filter(request=now).count() == vote.accepted
        assert {vote.code, acted.code} & {"decided", state}
        assert Refusal.objects.filter(request=now).count() == 1
        assert Run.objects.get(pk=asked.run.pk).wake_at is not None
        assert record.verify(stream=f"run:{asked.run.pk}") is None
    assert ended <= {state, "approved", "rejected"}


def test_sent_back_twice_at_once_is_sent_back_once(people: tuple[User, User]) -> None:
    asked = world.ask(version=world.policy())
    results = world.at_once(*(lambda who=who: back(asked, who) for who in people))
    assert sorted(one.code for one in results) == ["ok", "sent_back"]
    told = next(one for one in results if not one.ok)
    assert told.detail["by"] in ("Anna", "Bert")
    assert asked.events(*ENDS) == ["request.sent_back"]
