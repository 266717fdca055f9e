"""What a sender may rely on: the newest decision, in time, on a request that stands, by people entitled still."""

import datetime as dt
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connections, transaction
from django_fsm import TransitionNotAllowed

from approvals import queries
from approvals.evaluation import Verdict
from approvals.models import Decision, Viewing
from approvals.models.request import RequestState
from approvals.services import requests
from approvals.services.requests import AlreadyDecided, Authority
from runs import record, transitions
from runs.models import Run
from runs.models.run import RunState
from runs.services import principals
from tests.approvals import world

pytestmark = pytest.mark.usefixtures("db")
ALLOWS = Verdict(effect="allow", rules=[{"id": "small", "text": "Small"}])


@contextmanager
def locked(asked: world.Asked) -> Iterator[Run]:
    with transaction.atomic(durable=True):
        yield Run.objects.select_for_update(of=("self",)).get(pk=asked.run.pk)


def authority(asked: world.Asked) -> Authority | None:
    with locked(asked) as run:
        return requests.lock_for_sending(run=run, proposal=asked.proposal)


def problem(asked: world.Asked) -> str:
    found = authority(asked)
    assert found is not None
    return found.problem


def test_an_approval_that_stands_may_be_used_and_is_spent_once() -> None:
    anna = world.user("anna")
    asked = world.ask()
    assert authority(asked) is None
    world.cast(asked, anna)
    with locked(asked) as run:
        found = requests.lock_for_sending(run=run, proposal=asked.proposal)
        assert found is not None
        assert found.request is not None
        assert (found.problem, found.votes_for, found.decision.approved) == ("", 1, True)
        transitions.move(run=run, to=RunState.EXECUTING, actor=principals.system())
        requests.spend(request=found.request, actor=principals.system())
        record.append(run=run, kind="run.went_on", actor=principals.system())  # the caller's numbering goes on
    assert asked.fresh().state == RequestState.SPENT
    assert problem(asked) == ""  # for the operation that spent it
    with locked(asked), pytest.raises(TransitionNotAllowed):
        requests.spend(request=asked.fresh(), actor=principals.system())
    assert asked.events("request.spent") == ["request.spent"]
    assert record.verify(stream=f"run:{asked.run.pk}") is None


def test_a_rejection_is_no_authority() -> None:
    anna = world.user("anna")
    asked = world.ask()
    world.cast(asked, anna, "reject")
    assert problem(asked) == "rejected"


def test_an_approval_that_was_not_used_in_time_has_expired(owner: psycopg.Connection) -> None:
    """The deadline falls between approval and sending (the second half of D9)."""
    anna = world.user("anna")
    asked = world.ask()
    world.cast(asked, anna)
    owner.execute("UPDATE approvals_decision SET valid_until = clock_timestamp()")
    assert problem(asked) == "expired"


@pytest.mark.parametrize("to", [RequestState.STALE, RequestState.EXPIRED, RequestState.REVOKED])
def test_a_voided_approval_is_no_authority(to: RequestState) -> None:
    anna = world.user("anna")
    asked = world.ask()
    with locked(asked) as run, pytest.raises(TransitionNotAllowed):
        requests.close_approved(request=asked.fresh(), to=to, why="", actor=principals.system(), run=run)
    world.cast(asked, anna)
    with locked(asked) as run:
        requests.close_approved(request=asked.fresh(), to=to, why="moved", actor=principals.system(), run=run)
    assert (asked.fresh().state, asked.fresh().close_reason) == (to, "moved")
    assert problem(asked) == "not_approved"
    assert asked.events()[-1] == f"request.{to}"


def test_a_voter_who_is_no_longer_entitled_takes_the_authority_away() -> None:
    anna, bert = world.user("anna"), world.user("bert")
    asked = world.ask(quorum=2)
    world.cast(asked, anna)
    world.cast(asked, bert)
    assert problem(asked) == ""
    bert.groups.clear()
    found = authority(asked)
    assert found is not None
    assert (found.problem, found.votes_for, found.votes[0].principal.user) == ("rights_lost", 1, anna)
    bert.groups.add(world.voters("manager"))
    assert problem(asked) == ""
    User.objects.filter(pk=anna.pk).update(is_active=False)
    assert problem(asked) == "rights_lost"


def test_a_removal_waits_until_the_sender_has_committed() -> None:
    anna = world.user("anna")
    asked = world.ask()
    world.cast(asked, anna)
    removed = threading.Event()

    def work() -> None:
        User.objects.get(pk=anna.pk).groups.clear()
        removed.set()
        connections.close_all()

    other = threading.Thread(target=work)
    with locked(asked) as run:
        found = requests.lock_for_sending(run=run, proposal=asked.proposal)
        assert found is not None
        assert found.problem == ""
        other.start()
        assert world.somebody_waits()
        assert not removed.is_set()
    other.join(timeout=120)
    assert removed.is_set()
    assert problem(asked) == "rights_lost"


def allow(asked: world.Asked, *, binding: str = "b" * 64, verdict: Verdict = ALLOWS) -> Decision:
    with locked(asked) as run:
        return requests.policy_decision(
            run=run,
            proposal=asked.proposal,
            version=asked.version,
            verdict=verdict,
            binding_digest=binding,
            valid_for=dt.timedelta(minutes=5),
            actor=principals.system(),
        )


def test_the_policy_decides_a_proposal_once(owner: psycopg.Connection) -> None:
    world.user("anna")
    asked = world.ask()
    decision = allow(asked)
    assert allow(asked) == decision
    with pytest.raises(AlreadyDecided):
        allow(asked, binding="c" * 64)
    with pytest.raises(ValueError, match="allows"):
        allow(asked, verdict=world.verdict())
    assert Decision.objects.count() == 1
    assert asked.events("decision.policy") == ["decision.policy"]
    found = authority(asked)
    assert found is not None
    assert (found.decision, found.request, found.problem) == (decision, None, "")
    owner.execute("UPDATE approvals_decision SET valid_until = clock_timestamp()")
    assert problem(asked) == "expired"


def test_people_asked_after_the_policy_had_allowed_are_the_newest_word() -> None:
    anna = world.user("anna")
    asked = world.ask()
    allow(asked)
    world.cast(asked, anna, "reject")
    assert problem(asked) == "rejected"


def test_only_a_verdict_that_asks_opens_a_request_and_rows_have_keys_of_their_own() -> None:
    world.user("anna")
    asked = world.ask()
    with locked(asked) as run:
        requests.close_open(run=run, to=RequestState.WITHDRAWN, why="", actor=principals.system())
        for shown in ([], [*world.rows(), *world.rows()]):
            with pytest.raises(ValueError, match="own key"):
                world.open_one(run, asked.proposal, asked.version, shown=shown)
        with pytest.raises(ValueError, match="asks"):
            requests.open_request(
                run=run,
                proposal=asked.proposal,
                version=asked.version,
                verdict=ALLOWS,
                binding_digest="b" * 64,
                rows=world.rows(),
                ask="x",
                supersedes=None,
                actor=principals.system(),
            )
        assert requests.close_open(run=run, to=RequestState.WITHDRAWN, why="", actor=principals.system()) is None


def test_facts_that_are_not_there_bind_nothing() -> None:
    world.user("anna")
    asked = world.ask()
    proposal = asked.proposal
    assert queries.newest_binding(run=asked.run, proposal=proposal) == asked.request.binding_digest
    proposal.rests_on = [*proposal.rests_on, str(proposal.pk)]
    assert queries.newest_binding(run=asked.run, proposal=proposal) is None
    other = world.run()
    world.read(of=other, reading=9, version="4")
    proposal.rests_on = proposal.rests_on[:1]
    assert queries.newest_binding(run=asked.run, proposal=proposal) == asked.request.binding_digest


def test_two_documents_of_one_kind_are_each_compared_with_themselves() -> None:
    world.user("anna")
    asked = world.ask()
    pieces = [world.read(of=asked.run, reading=2, locator=locator) for locator in ("INV-1", "INV-2")]
    proposal = world.propose(of=asked.run, rests_on=pieces)
    bound = queries.newest_binding(run=asked.run, proposal=proposal)
    for locator in ("INV-2", "INV-1"):
        world.read(of=asked.run, reading=3, locator=locator)
    assert queries.newest_binding(run=asked.run, proposal=proposal) == bound
    world.read(of=asked.run, reading=4, locator="INV-1")  # the other one has disappeared
    assert queries.newest_binding(run=asked.run, proposal=proposal) is None
    world.read(of=asked.run, reading=4, locator="INV-2", version="4")
    assert queries.newest_binding(run=asked.run, proposal=proposal) not in (bound, None)


def test_opening_the_page_is_remembered_once() -> None:
    anna = world.user("anna")
    asked = world.ask()
    results = world.at_once(*[lambda: requests.record_viewing(request_id=asked.request.pk, user=anna)] * 3)
    assert results == [None] * 3
    first = Viewing.objects.get().at
    requests.record_viewing(request_id=asked.request.pk, user=anna)
    assert Viewing.objects.get().at == first
