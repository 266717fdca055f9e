"""Two at once, many rounds: one decision and one event each, the loser is told why, and nobody meets an exception."""

import threading
from collections import Counter
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connections

from approvals.models import ApprovalRequest, Claim, Decision, Refusal, Vote
from approvals.services import claiming, votes
from approvals.services.acting import Acted
from approvals.services.votes import VoteResult
from runs import record
from runs.models import Principal
from runs.services import principals
from tests.approvals import rounds, world

pytestmark = pytest.mark.usefixtures("db")
CLOSING = ("request.approved", "request.rejected", "request.expired", "request.withdrawn", "request.superseded")


@pytest.fixture
def anna(db: str) -> User:
    return world.user("anna")


@pytest.fixture
def bert(db: str) -> User:
    return world.user("bert")


def each_ended_once(played: list[rounds.Round]) -> Counter[str]:
    """No exception, one closing event a round, a decision exactly where one was made; how often it ended how."""
    rounds.met(played)
    found = rounds.ends(played, *CLOSING)
    for one in found.values():
        assert one.events == [f"request.{one.state}"]
        assert one.decisions == {"approved": [True], "rejected": [False]}.get(one.state, [])
        assert one.votes == len(one.decisions)
    return Counter(one.state for one in found.values())


def often(ends: Counter[str], *states: str) -> None:
    """These are all the ends there were, and none was rare."""
    assert set(ends) == set(states), ends
    assert min(ends.values()) > sum(ends.values()) // 20, ends


def cast(request: ApprovalRequest, who: User, choice: str = "approve") -> VoteResult:
    comment = "because" if choice == "reject" else ""
    return votes.cast(
        request_id=request.pk,
        user=who,
        choice="reject" if choice == "reject" else "approve",
        comment=comment,
        page_digest=request.page_digest,
        acknowledged=False,
        authenticated_by="password",
        channel="page",
    )


def accepted(first: Any, second: Any) -> bool:
    return bool(first.accepted)


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


def test_approve_against_approve(anna: User, bert: User, owner: psycopg.Connection) -> None:
    played = rounds.race(
        rounds.copies(world.ask(), owner),
        lambda request: cast(request, anna),
        lambda request: cast(request, bert),
        first_won=accepted,
    )
    assert each_ended_once(played) == {"approved": rounds.ROUNDS}
    assert all(sorted((one.first.code, one.second.code)) == ["approved", "decided"] for one in played)
    often(Counter("anna" if one.first.accepted else "bert" for one in played), "anna", "bert")


def test_approve_against_reject(anna: User, bert: User, owner: psycopg.Connection) -> None:
    played = rounds.race(
        rounds.copies(world.ask(), owner),
        lambda request: cast(request, anna),
        lambda request: cast(request, bert, "reject"),
        first_won=accepted,
    )
    often(each_ended_once(played), "approved", "rejected")
    for one in played:
        winner, loser = (one.first, one.second) if one.first.accepted else (one.second, one.first)
        assert (winner.code, loser.code) == ("approved" if winner is one.first else "rejected", "decided")
        assert loser.detail["by"] == ("Anna" if winner is one.first else "Bert")
        assert loser.detail["choice"] == ("approve" if winner is one.first else "reject")
        assert loser.detail["at"] == winner.detail["at"]
    assert Refusal.objects.filter(code="decided").count() == rounds.ROUNDS


def test_claim_against_claim(anna: User, bert: User, owner: psycopg.Connection) -> None:
    first, second = (principals.of_user(user=one) for one in (anna, bert))

    def claim(request: ApprovalRequest, who: Principal) -> Acted:
        return claiming.claim(request_id=request.pk, principal=who, channel="page")

    played = rounds.race(
        rounds.copies(world.ask(), owner),
        lambda request: claim(request, first),
        lambda request: claim(request, second),
        first_won=lambda a, b: a.ok,
    )
    rounds.met(played)
    held = dict(Claim.objects.values_list("request_id", "principal_id"))
    found = rounds.ends(played, "request.claimed", *CLOSING)
    for one in played:
        assert sorted((one.first.code, one.second.code)) == ["claimed_by_other", "ok"]
        assert held[one.request.pk] == (first if one.first.ok else second).pk
        assert found[one.request.pk] == rounds.End(state="open", decisions=[], votes=0, events=["request.claimed"])
    often(Counter("anna" if one.first.ok else "bert" for one in played), "anna", "bert")


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
    assert reached.wait(timeout=120)
    results["second"] = world.cast(asked, bert, "reject")
    thread.join(timeout=120)
    assert waited == [True]
    assert (results["first"].code, results["second"].code) == ("approved", "decided")
    assert results["second"].detail["by"] == "Anna"
    assert one_end(asked, list(results.values())) == "approved"
