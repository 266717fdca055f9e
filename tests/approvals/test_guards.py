"""Each guard of a vote by itself: whose votes count, and which locks a vote stands behind."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections, transaction

from approvals.models import ApprovalRequest, Decision, Vote
from approvals.models.request import RequestState
from approvals.services import requests
from approvals.services.votes import VoteResult
from runs import record
from runs.models import Run
from runs.services import principals
from tests.approvals import world

pytestmark = pytest.mark.usefixtures("db")


@pytest.fixture
def people(db: str) -> tuple[User, User, User]:
    return world.user("anna"), world.user("bert"), world.user("cleo")


def supersede(asked: world.Asked, *, quorum: int) -> None:
    """The same action is asked again; `asked` goes on with the new request."""
    with transaction.atomic(durable=True):
        run = Run.objects.select_for_update(of=("self",)).get(pk=asked.run.pk)
        old = requests.close_open(run=run, to=RequestState.SUPERSEDED, why="moved", actor=principals.system())
        asked.request = world.open_one(run, asked.proposal, asked.version, quorum=quorum, supersedes=old)


def test_a_yes_to_the_first_request_is_none_to_its_successor(people: tuple[User, User, User]) -> None:
    anna, bert, _ = people
    asked = world.ask(quorum=2)
    first = asked.request
    assert world.cast(asked, anna).code == "voted"
    supersede(asked, quorum=2)
    second = world.cast(asked, bert)
    assert (second.code, second.detail["votes_for"], second.decision) == ("voted", 1, None)
    assert (Decision.objects.count(), asked.fresh().state) == (0, RequestState.OPEN)
    third = world.cast(asked, anna)  # who has to say it again, and may
    assert (third.code, third.detail["votes_for"]) == ("approved", 2)
    assert Vote.objects.filter(request=first).count() == 1
    assert Decision.objects.get().request_id == asked.request.pk != first.pk


def test_a_yes_to_the_first_request_does_not_fill_a_gap_at_sending(people: tuple[User, User, User]) -> None:
    anna, bert, cleo = people
    asked = world.ask(quorum=2)
    world.cast(asked, anna)
    supersede(asked, quorum=2)
    assert [world.cast(asked, who).code for who in (bert, cleo)] == ["voted", "approved"]

    def authority() -> requests.Authority:
        with transaction.atomic(durable=True):
            run = Run.objects.select_for_update(of=("self",)).get(pk=asked.run.pk)
            found = requests.lock_for_sending(run=run, proposal=asked.proposal)
        assert found is not None
        return found

    found = authority()
    assert (found.problem, {vote.principal.user for vote in found.votes}) == ("", {bert, cleo})
    cleo.groups.clear()
    found = authority()
    assert (found.problem, found.votes_for) == ("rights_lost", 1)


# ---- locks


def beside(asked: world.Asked, who: User, others_work: Callable[[], Any]) -> VoteResult:
    """The vote of somebody who comes while another's transaction has done its work and not yet committed. The vote must
    stand and wait, and then see what was done."""
    results: list[Any] = []

    def vote() -> None:
        try:
            results.append(world.cast(asked, who))
        finally:
            connections.close_all()

    thread = threading.Thread(target=vote)
    with transaction.atomic(durable=True):
        others_work()
        thread.start()
        assert world.somebody_waits(), "the vote did not wait"
        assert results == []
    thread.join(timeout=120)
    assert len(results) == 1, "the vote broke off"
    found: VoteResult = results[0]
    return found


def test_a_vote_waits_for_whoever_holds_the_run(people: tuple[User, User, User]) -> None:
    asked = world.ask()

    def cancel() -> None:
        run = Run.objects.select_for_update(of=("self",)).get(pk=asked.run.pk)
        run.cancel_requested_at, run.cancel_reason = run.state_since, "wrong customer"
        run.save(update_fields=["cancel_requested_at", "cancel_reason"])

    assert beside(asked, people[0], cancel).code == "cancelled"
    assert (Vote.objects.count(), Decision.objects.count()) == (0, 0)


def test_a_vote_waits_for_whoever_holds_the_request(people: tuple[User, User, User]) -> None:
    asked = world.ask()

    def withdraw() -> None:  # without the run's lock, which everybody else takes first: it is this lock that is tried
        request = ApprovalRequest.objects.select_for_update(of=("self",)).get(pk=asked.request.pk)
        request.withdraw()
        request.closed_at = request.created_at
        request.save(update_fields=["state", "closed_at"])

    assert beside(asked, people[0], withdraw).code == "withdrawn"
    assert (Vote.objects.count(), Decision.objects.count()) == (0, 0)


def test_a_vote_waits_for_whoever_takes_the_right_away(people: tuple[User, User, User]) -> None:
    anna, bert, _ = people
    asked = world.ask()
    assert beside(asked, anna, lambda: anna.groups.clear()).code == "no_right"
    assert Vote.objects.count() == 0
    asked = world.ask(quorum=2, version=asked.version)
    assert world.cast(asked, bert).code == "voted"
    cleo = people[2]
    told = beside(asked, cleo, lambda: bert.groups.clear())  # and so does the vote that would have counted with it
    assert (told.code, told.detail["votes_for"]) == ("voted", 1)


def test_of_two_votes_at_once_the_second_counts_the_first(
    people: tuple[User, User, User], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first has counted itself and not committed; were the second not to wait, both would count one of two."""
    anna, bert, _ = people
    asked = world.ask(quorum=2)
    append = record.append
    counted, waited = threading.Event(), []

    def held(**kw: Any) -> Any:
        if not counted.is_set():
            counted.set()
            waited.append(world.somebody_waits())
        return append(**kw)

    monkeypatch.setattr("approvals.services.votes.record.append", held)
    results: dict[str, VoteResult] = {}

    def first() -> None:
        results["first"] = world.cast(asked, anna)
        connections.close_all()

    thread = threading.Thread(target=first)
    thread.start()
    assert counted.wait(timeout=120)
    second = world.cast(asked, bert)
    thread.join(timeout=120)
    assert waited == [True]
    assert (results["first"].code, second.code, second.detail["votes_for"]) == ("voted", "approved", 2)
    assert Decision.objects.get().approved
    assert record.verify(stream=f"run:{asked.run.pk}") is None
