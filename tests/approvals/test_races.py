"""Two at once, many rounds: one decision and one event each, the loser is told why, and nobody meets an exception."""

import threading
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connections, transaction

from approvals.models import ApprovalRequest, Decision, Refusal, Vote
from approvals.models.request import RequestState
from approvals.services import requests
from runs import record
from runs.models import Run
from runs.services import principals
from tests.approvals import world

pytestmark = pytest.mark.usefixtures("db")
CLOSING = ("request.approved", "request.rejected", "request.expired", "request.withdrawn")


@pytest.fixture
def anna(db: str) -> User:
    return world.user("anna")


@pytest.fixture
def bert(db: str) -> User:
    return world.user("bert")


def withdraw(asked: world.Asked) -> ApprovalRequest | None:
    """What a cancelling service does."""
    with transaction.atomic(durable=True):
        run = Run.objects.select_for_update(of=("self",)).get(pk=asked.run.pk)
        closed = requests.close_open(run=run, to=RequestState.WITHDRAWN, why="stopped", actor=principals.system())
        if closed is not None:
            run.cancel_requested_at = closed.closed_at
            run.save(update_fields=["cancel_requested_at"])
        return closed


def one_end(asked: world.Asked, results: list[Any]) -> str:
    """No exception, one closing event, a decision exactly where one was made; the state it ended in."""
    assert not [result for result in results if isinstance(result, BaseException)], results
    state: str = asked.fresh().state
    assert asked.events(*CLOSING) == [f"request.{state}"]
    decisions = list(Decision.objects.filter(proposal=asked.proposal))
    assert len(decisions) == Vote.objects.filter(request=asked.request).count()
    assert [decision.approved for decision in decisions] == {"approved": [True], "rejected": [False]}.get(state, [])
    assert record.verify(stream=f"run:{asked.run.pk}") is None
    return state


def test_approve_against_reject_a_hundred_rounds(anna: User, bert: User) -> None:
    version = world.policy()
    ends = {"approved": 0, "rejected": 0}
    for _ in range(100):
        asked = world.ask(version=version)
        results = world.at_once(
            lambda asked=asked: world.cast(asked, anna), lambda asked=asked: world.cast(asked, bert, "reject")
        )
        state = one_end(asked, results)
        ends[state] += 1
        loser = next(result for result in results if not result.accepted)
        winner = next(result for result in results if result.accepted)
        assert (winner.code, loser.code) == (state, "decided")
        assert loser.detail["by"] == ("Anna" if state == "approved" else "Bert")
        assert loser.detail["choice"] == ("approve" if state == "approved" else "reject")
        assert loser.detail["at"] == winner.detail["at"]
    assert sum(ends.values()) == 100
    assert Refusal.objects.filter(code="decided").count() == 100


def test_two_people_approve_where_one_is_enough(anna: User, bert: User) -> None:
    version = world.policy()
    for _ in range(20):
        asked = world.ask(version=version)
        results = world.at_once(
            lambda asked=asked: world.cast(asked, anna), lambda asked=asked: world.cast(asked, bert)
        )
        assert one_end(asked, results) == "approved"
        assert sorted(result.code for result in results) == ["approved", "decided"]


def test_two_people_approve_where_two_are_needed(anna: User, bert: User) -> None:
    version = world.policy(quorum=2)
    for _ in range(20):
        asked = world.ask(version=version, quorum=2)
        results = world.at_once(
            lambda asked=asked: world.cast(asked, anna), lambda asked=asked: world.cast(asked, bert)
        )
        assert sorted(result.code for result in results) == ["approved", "voted"]
        assert Decision.objects.filter(proposal=asked.proposal).count() == 1
        assert asked.events("request.vote", *CLOSING) == ["request.vote", "request.approved"]


def test_one_person_clicks_twice(anna: User, bert: User) -> None:
    version = world.policy(quorum=2)
    for quorum, code in ((1, "approved"), (2, "voted")):
        for _ in range(10):
            asked = world.ask(version=version, quorum=quorum)
            results = world.at_once(*[lambda asked=asked: world.cast(asked, anna)] * 3)
            assert [result.code for result in results] == [code] * 3
            assert sorted(result.repeated for result in results) == [False, True, True]
            assert Decision.objects.filter(request=asked.request).count() == (1 if quorum == 1 else 0)
            assert len(asked.events("request.vote", *CLOSING)) == 1
            assert Vote.objects.filter(request=asked.request).count() == 1


def test_a_new_person_clicks_twice_at_their_very_first_vote(anna: User) -> None:
    """Nobody has made their principal yet: both clicks try to."""
    version = world.policy()
    for number in range(10):
        asked = world.ask(version=version)
        new = world.user(f"new{number}")
        results = world.at_once(*[lambda asked=asked, new=new: world.cast(asked, new)] * 2)
        assert [result.code for result in results] == ["approved", "approved"]
        assert sorted(result.repeated for result in results) == [False, True]


def test_approve_against_withdraw(anna: User) -> None:
    version = world.policy()
    for _ in range(30):
        asked = world.ask(version=version)
        results = world.at_once(lambda asked=asked: world.cast(asked, anna), lambda asked=asked: withdraw(asked))
        state = one_end(asked, results)
        assert state in ("approved", "withdrawn")
        assert results[0].code == ("approved" if state == "approved" else "cancelled")
        assert (results[1] is None) is (state == "approved")


def test_approve_against_the_sweeper_around_the_deadline(anna: User, owner: psycopg.Connection) -> None:
    version = world.policy()
    ends = []
    for round_ in range(30):
        asked = world.ask(version=version)
        offset = (5000, -5000, 2)[round_ % 3]  # clearly in time, clearly late, and anybody's guess; in ms
        owner.execute(
            "UPDATE approvals_approvalrequest SET respond_by = clock_timestamp() + make_interval(secs => %s)"
            " WHERE id = %s",
            [offset / 1000, asked.request.pk],
        )
        results = world.at_once(
            lambda asked=asked: world.cast(asked, anna),
            lambda asked=asked: world.expire_as_the_engine_does(asked.request.pk),
        )
        if asked.fresh().state == RequestState.OPEN:
            raise AssertionError("neither the vote nor the sweeper closed it")
        state = one_end(asked, results)
        ends.append(state)
        assert results[0].code == state
        assert not (results[1] and state == "approved")
    assert ends.count("approved") >= 10
    assert ends.count("expired") >= 10


def test_the_second_starts_after_the_first_has_read_and_before_it_commits(
    anna: User, bert: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is held just before its event; only when the second stands before the lock does it go on."""
    asked = world.ask()
    reached, waited = threading.Event(), []
    append = record.append

    def held(**kw: Any) -> Any:
        if kw["kind"] == "request.approved":
            reached.set()
            waited.append(world.somebody_waits())
        return append(**kw)

    monkeypatch.setattr("approvals.services.votes.record.append", held)
    results: dict[str, Any] = {}

    def first() -> None:
        results["first"] = world.cast(asked, anna)
        connections.close_all()

    thread = threading.Thread(target=first)
    thread.start()
    assert reached.wait(timeout=20)
    results["second"] = world.cast(asked, bert, "reject")
    thread.join(timeout=20)
    assert waited == [True]
    assert (results["first"].code, results["second"].code) == ("approved", "decided")
    assert results["second"].detail["by"] == "Anna"
    assert one_end(asked, list(results.values())) == "approved"
