"""What a click may be told, in the order in which the reasons are given; every refusal is stored and does nothing."""

from typing import Any

import psycopg
import pytest
from django.db import transaction

from approvals.models import ApprovalRequest, Decision, Refusal, Vote
from approvals.models.request import RequestState
from approvals.services import requests, votes
from approvals.words import sentence
from runs import record, transitions
from runs.models import Run
from runs.models.run import RunState
from runs.services import principals
from tests.approvals import world

pytestmark = pytest.mark.usefixtures("db")


def refused(asked: world.Asked, result: votes.VoteResult, code: str) -> None:
    """It was refused with this code, that is stored in both places, and nothing else happened."""
    assert result.code == code
    assert not result.accepted
    assert result.decision is None
    stored = Refusal.objects.filter(request=asked.request).latest("at")
    assert (stored.code, stored.channel) == (code, "page")
    assert asked.events()[-1] == "request.refused" or code == "expired"
    assert "request.refused" in asked.events()
    assert record.verify(stream=f"run:{asked.run.pk}") is None
    assert sentence(code=code, detail=result.detail).count("?") == 0


def cancel(asked: world.Asked, *, withdraw: bool) -> None:
    with transaction.atomic(durable=True):
        run = Run.objects.select_for_update().get(pk=asked.run.pk)
        run.cancel_requested_at = run.state_since
        run.cancel_reason = "wrong customer"
        run.cancelled_by = principals.system()
        run.save(update_fields=["cancel_requested_at", "cancel_reason", "cancelled_by"])
        if withdraw:
            requests.close_open(run=run, to=RequestState.WITHDRAWN, why="cancelled", actor=principals.system())


def test_an_approval_is_one_vote_one_decision_one_event_and_a_due_run() -> None:
    anna = world.user("anna")
    asked = world.ask()
    assert Run.objects.get(pk=asked.run.pk).wake_at is None
    result = world.cast(asked, anna, comment="  fine \x00 ")
    assert result.code == "approved"
    assert result.decision == Decision.objects.get(proposal=asked.proposal)
    assert result.decision.binding_digest == asked.request.binding_digest
    assert result.decision.valid_until == asked.request.valid_until
    assert asked.fresh().state == RequestState.APPROVED
    assert Vote.objects.get().comment == "fine \ufffd"
    assert asked.events("request.approved", "request.vote") == ["request.approved"]
    assert Run.objects.get(pk=asked.run.pk).wake_at is not None
    assert Refusal.objects.count() == 0


def test_a_rejection_decides_at_once_and_needs_a_reason() -> None:
    anna, bert = world.user("anna"), world.user("bert")
    asked = world.ask(quorum=2)
    for empty in ("", "  \n", "\u200b\u00a0", "\x1c\x85"):
        refused(asked, world.cast(asked, anna, "reject", comment=empty), "reason_needed")
    assert Vote.objects.count() == 0
    result = world.cast(asked, anna, "reject", comment="No contract")
    assert (result.code, asked.fresh().state) == ("rejected", RequestState.REJECTED)
    assert result.decision is not None
    assert not result.decision.approved
    late = world.cast(asked, bert)
    refused(asked, late, "decided")
    assert late.detail["by"] == "Anna"
    assert sentence(code="decided", detail=late.detail).startswith("Anna rejected this on ")


def test_two_people_are_needed_when_two_are_asked_and_one_person_is_one() -> None:
    anna, bert = world.user("anna"), world.user("bert")
    asked = world.ask(quorum=2)
    first = world.cast(asked, anna)
    assert (first.code, first.detail["votes_for"], first.decision) == ("voted", 1, None)
    again = world.cast(asked, anna, comment="And another thing")
    refused(asked, again, "already_voted")
    assert sentence(code="already_voted", detail=again.detail).endswith("1 of 2 have approved.")
    assert Decision.objects.count() == 0
    assert world.cast(asked, bert).code == "approved"
    assert asked.events("request.vote", "request.approved") == ["request.vote", "request.approved"]
    twice = world.cast(asked, bert, comment="And another thing")
    refused(asked, twice, "decided")
    assert sentence(code="decided", detail=twice.detail).startswith("You and others approved this")


@pytest.mark.parametrize("choice", ["approve", "reject"])
def test_the_same_click_again_gets_the_first_answer_and_leaves_no_trace(choice: str) -> None:
    anna = world.user("anna")
    asked = world.ask()
    first = world.cast(asked, anna, choice, comment="Checked")
    before = asked.events()
    for comment in ("Checked", "  Checked ", ""):
        again = world.cast(asked, anna, choice, comment=comment)
        assert (again.code, again.decision, again.detail) == (first.code, first.decision, first.detail)
        assert again.accepted and again.repeated and not first.repeated
    assert asked.events() == before
    assert (Vote.objects.count(), Decision.objects.count(), Refusal.objects.count()) == (1, 1, 0)


def test_the_first_of_two_clicks_again_before_and_after_the_second_answered() -> None:
    anna, bert = world.user("anna"), world.user("bert")
    asked = world.ask(quorum=2)
    first = world.cast(asked, anna)
    again = world.cast(asked, anna)
    assert (again.code, again.repeated, again.detail) == ("voted", True, first.detail)
    assert world.cast(asked, bert).code == "approved"
    late = world.cast(asked, anna)
    assert (late.code, late.decision, late.detail) == ("voted", None, first.detail)
    assert world.cast(asked, bert).code == "approved"
    assert (Decision.objects.count(), Refusal.objects.count()) == (1, 0)


def test_what_differs_from_the_first_click_is_refused_as_ever() -> None:
    anna = world.user("anna")
    asked = world.ask()
    assert world.cast(asked, anna).code == "approved"
    refused(asked, world.cast(asked, anna, "reject"), "decided")
    refused(asked, world.cast(asked, anna, page_digest="0" * 64), "decided")
    refused(asked, world.cast(asked, anna, comment="Only this once"), "decided")
    anna.groups.clear()
    refused(asked, world.cast(asked, anna), "decided")
    assert (Vote.objects.count(), Decision.objects.count(), Refusal.objects.count()) == (1, 1, 4)


def test_the_same_click_after_the_run_was_cancelled_is_refused() -> None:
    anna, _ = world.user("anna"), world.user("bert")
    asked = world.ask(quorum=2)
    assert world.cast(asked, anna).code == "voted"
    cancel(asked, withdraw=False)
    refused(asked, world.cast(asked, anna), "cancelled")


def test_a_vote_whose_voter_lost_the_right_is_not_counted() -> None:
    anna, bert, cleo = (world.user(name) for name in ("anna", "bert", "cleo"))
    asked = world.ask(quorum=2)
    world.cast(asked, anna)
    anna.groups.clear()
    second = world.cast(asked, bert)
    assert (second.code, second.detail["votes_for"]) == ("voted", 1)
    assert world.cast(asked, cleo).code == "approved"


def test_superseded_leads_to_the_newest_successor() -> None:
    anna = world.user("anna")
    asked = world.ask()
    newest = asked.request
    for number in (4, 5):
        world.read(of=asked.run, reading=number, version=str(number))
        with transaction.atomic(durable=True):
            run = Run.objects.select_for_update().get(pk=asked.run.pk)
            old = requests.close_open(run=run, to=RequestState.SUPERSEDED, why="moved", actor=principals.system())
            newest = world.open_one(
                run, asked.proposal, asked.version, shown=world.rows(version=str(number)), supersedes=old
            )
    result = world.cast(asked, anna)
    refused(asked, result, "superseded")
    assert result.successor_id == newest.pk
    assert newest.changes == [{"key": "invoice", "label": "Invoice", "old": "INV-2041 · v4", "new": "INV-2041 · v5"}]


@pytest.mark.parametrize("withdraw", [True, False])
def test_a_cancelled_run_takes_no_votes(withdraw: bool) -> None:
    anna = world.user("anna")
    asked = world.ask()
    cancel(asked, withdraw=withdraw)
    result = world.cast(asked, anna)
    refused(asked, result, "cancelled")
    assert result.detail["by"] == "System"


def test_a_withdrawn_request_takes_no_votes() -> None:
    anna = world.user("anna")
    asked = world.ask()
    with transaction.atomic(durable=True):
        run = Run.objects.select_for_update().get(pk=asked.run.pk)
        requests.close_open(run=run, to=RequestState.WITHDRAWN, why="no longer needed", actor=principals.system())
    refused(asked, world.cast(asked, anna), "withdrawn")


def test_after_the_deadline_the_refusing_click_itself_expires_the_request(owner: psycopg.Connection) -> None:
    """No sweeper runs here: the vote alone leaves the row, the event, the closed request and a due run."""
    anna = world.user("anna")
    asked = world.ask()
    owner.execute("UPDATE approvals_approvalrequest SET respond_by = clock_timestamp() - interval '1 second'")
    result = world.cast(asked, anna)
    refused(asked, result, "expired")
    assert asked.fresh().state == RequestState.EXPIRED
    assert asked.events("request.refused", "request.expired") == ["request.refused", "request.expired"]
    assert Run.objects.get(pk=asked.run.pk).wake_at is not None
    assert (Vote.objects.count(), Decision.objects.count()) == (0, 0)
    refused(asked, world.cast(asked, anna), "expired")
    assert asked.events("request.expired") == ["request.expired"]


@pytest.mark.parametrize("minor", [100, 49_999, 50_000])
@pytest.mark.parametrize("part", ["initiator", "proposer"])
@pytest.mark.parametrize("choice", ["approve", "reject"])
def test_initiator_and_proposer_never_decide(minor: int, part: str, choice: str) -> None:
    anna, bert = world.user("anna"), world.user("bert")
    own: dict[str, Any] = {part: principals.of_user(user=anna)}
    asked = world.ask(minor=minor, **own)
    for channel in ("page", "command"):
        result = world.cast(asked, anna, choice, channel=channel)
        assert (result.code, result.detail["part"]) == ("own_request", part)
    assert Refusal.objects.filter(code="own_request").count() == 2
    assert asked.events("request.refused") == ["request.refused"] * 2
    assert (Vote.objects.count(), asked.fresh().state) == (0, RequestState.OPEN)
    assert world.cast(asked, bert, choice).accepted


def test_an_editor_of_an_earlier_proposal_never_decides_its_successor() -> None:
    anna = world.user("anna")
    asked = world.ask(proposer=principals.of_user(user=anna))
    with transaction.atomic(durable=True):
        run = Run.objects.select_for_update().get(pk=asked.run.pk)
        old = requests.close_open(run=run, to=RequestState.SUPERSEDED, why="edited", actor=principals.system())
        successor = world.propose(of=run, rests_on=list(run.evidence.all()), minor=50_000)
        asked.request = world.open_one(run, successor, asked.version, supersedes=old)
    refused(asked, world.cast(asked, anna, acknowledged=True), "own_request")


def test_a_page_that_showed_something_else_is_refused() -> None:
    anna = world.user("anna")
    asked = world.ask()
    refused(asked, world.cast(asked, anna, page_digest="f" * 64), "page_differs")
    refused(asked, world.cast(asked, anna, page_digest=""), "page_differs")
    assert asked.fresh().state == RequestState.OPEN


def test_moved_facts_refuse_and_want_another_reading() -> None:
    """The invoice went to version 4 after the request was made (the first half of D12)."""
    anna = world.user("anna")
    asked = world.ask()
    world.read(of=asked.run, reading=2, version="4")
    refused(asked, world.cast(asked, anna), "out_of_date")
    run = Run.objects.get(pk=asked.run.pk)
    assert run.facts_wanted_at is not None
    assert run.wake_at is not None
    assert asked.fresh().state == RequestState.OPEN
    world.read(of=asked.run, reading=3, version="3")  # corrected back: the same facts as were shown
    assert world.cast(asked, anna).code == "approved"


def test_another_document_of_the_same_kind_is_out_of_date() -> None:
    anna = world.user("anna")
    asked = world.ask()
    world.read(of=asked.run, reading=2, locator="INV-9999")
    refused(asked, world.cast(asked, anna), "out_of_date")


def test_changes_have_to_be_confirmed_before_a_yes_but_not_before_a_no() -> None:
    anna, bert = world.user("anna"), world.user("bert")
    asked = world.ask(quorum=2)
    world.read(of=asked.run, reading=2, version="4")
    with transaction.atomic(durable=True):
        run = Run.objects.select_for_update().get(pk=asked.run.pk)
        old = requests.close_open(run=run, to=RequestState.SUPERSEDED, why="moved", actor=principals.system())
        asked.request = world.open_one(
            run, asked.proposal, asked.version, quorum=2, shown=world.rows(version="4"), supersedes=old
        )
    result = world.cast(asked, anna)
    refused(asked, result, "unread_changes")
    assert result.detail["changes"][0]["old"] == "INV-2041 · v3"
    assert world.cast(asked, anna, acknowledged=True).code == "voted"
    assert world.cast(asked, bert, "reject").code == "rejected"


def test_a_comment_that_is_too_long_is_refused_not_cut() -> None:
    anna = world.user("anna")
    asked = world.ask()
    refused(asked, world.cast(asked, anna, comment="x" * 4001), "comment_too_long")
    assert world.cast(asked, anna, comment="x" * 4000).code == "approved"


def test_words_that_do_not_exist_are_the_programs_mistake() -> None:
    anna = world.user("anna")
    asked = world.ask()
    with pytest.raises(ValueError, match="choice"):
        world.cast(asked, anna, "maybe")
    with pytest.raises(ValueError, match="channel"):
        world.cast(asked, anna, channel="api")
    with pytest.raises(ApprovalRequest.DoesNotExist):
        world.cast(asked, anna, request_id=asked.run.pk)


def test_a_finished_run_still_records_who_came_too_late() -> None:
    anna = world.user("anna")
    asked = world.ask()
    world.cast(asked, anna, "reject")
    with transaction.atomic(durable=True):
        run = Run.objects.select_for_update().get(pk=asked.run.pk)
        transitions.move(run=run, to=RunState.REJECTED, actor=principals.system())
    refused(asked, world.cast(asked, anna), "decided")
