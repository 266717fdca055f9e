"""The thread on the decision page, and the ways beside approving and rejecting, as people click them."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from approvals.models import ApprovalRequest, Claim, Refusal, Remark, Vote
from tests.pages import world

pytestmark = pytest.mark.usefixtures("db")


def signed_in(user: User) -> Client:
    browser = Client()
    browser.force_login(user)
    return browser


@pytest.fixture
def maya(db: str) -> User:
    return world.person("Maya Lindgren", "manager")


@pytest.fixture
def priya(db: str) -> User:
    return world.person("Priya Raman", "support")


def post(user: User, ask: ApprovalRequest, key: str, **form: Any) -> HttpResponse:
    return signed_in(user).post(f"/approvals/{ask.pk}/do/{key}", {"as_user": str(user.pk), **form})


def page(user: User, ask: ApprovalRequest, query: str = "") -> str:
    text: str = signed_in(user).get(f"/approvals/{ask.pk}/{query}").text
    return text


def test_each_reader_is_offered_what_is_theirs(maya: User, priya: User) -> None:
    ask = world.ask()
    mine, theirs = page(maya, ask), page(priya, ask)
    for key in ("ask", "amount", "send_back"):
        assert f'id="way-{key}"' in mine and f'id="way-{key}"' not in theirs
    assert 'id="way-withdraw"' in theirs and 'id="way-withdraw"' not in mine
    assert "I am looking at this" in mine and "I am looking at this" not in theirs
    assert 'name="text"' in theirs and "Nobody has written anything yet." in theirs
    world.decide(ask, maya)
    assert "way-send_back" not in page(world.person("Jonas Weber", "manager"), ask)


def test_the_thread_is_shown_as_written_live_and_in_the_record(maya: User, priya: User) -> None:
    ask, browser = world.ask(), signed_in(maya)
    quiet = browser.get(f"/approvals/{ask.pk}/thread?v=0.0..1")
    assert quiet.status_code == 204
    assert post(priya, ask, "comment", text="See <i>the</i> report\nof Monday").status_code == 302
    heard = browser.get(f"/approvals/{ask.pk}/thread?v=0.0..1")
    assert heard.status_code == 200 and "See &lt;i&gt;the&lt;/i&gt; report" in heard.text
    assert "Priya Raman" in heard.text
    assert "See &lt;i&gt;the&lt;/i&gt; report" in signed_in(priya).get(f"/runs/{ask.run_id}/").text
    answer = post(priya, ask, "comment", text="  ")
    assert answer.status_code == 422 and "Write something first." in answer.text
    assert Remark.objects.count() == 1
    assert signed_in(maya).get(f"/approvals/{ask.pk}/do/comment").status_code == 405
    assert post(maya, ask, "dance", text="x").status_code == 404
    other = signed_in(maya).post(f"/approvals/{ask.pk}/do/comment", {"as_user": str(priya.pk), "text": "as her"})
    assert other.status_code == 409 and Remark.objects.count() == 1


def test_a_question_is_asked_shown_and_answered_on_the_page(maya: User, priya: User) -> None:
    ask = world.ask()
    assert post(maya, ask, "ask", text="Which outage?", asked_of="support").status_code == 302
    question = Remark.objects.get()
    shown = page(priya, ask)
    assert "Waiting for an answer" in shown and f"?way=answer&amp;question={question.pk}" in shown
    form = page(priya, ask, f"?way=answer&question={question.pk}")
    assert "Your answer to “Which outage?”" in form
    refused = post(priya, ask, "answer", question=str(question.pk), text="")
    assert refused.status_code == 422 and "Your answer to “Which outage?”" in refused.text
    assert post(priya, ask, "answer", question="rubbish", text="That one").status_code == 409
    assert post(priya, ask, "answer", question=str(question.pk), text="That of 22 October").status_code == 302
    assert "Waiting for an answer" not in page(maya, ask) and "That of 22 October" in page(maya, ask)
    assert "approve_confirmed" in page(maya, ask)


def test_a_claim_is_seen_by_others_and_given_back(maya: User) -> None:
    ask, jonas = world.ask(), world.person("Jonas Weber", "manager")
    assert post(maya, ask, "claim").status_code == 302
    assert "You are looking at this until" in page(maya, ask)
    seen = page(jonas, ask)
    assert "Maya Lindgren is looking at this until" in seen and "approve_confirmed" in seen
    assert post(jonas, ask, "claim").status_code == 409
    assert post(maya, ask, "release").status_code == 302
    assert "is looking at this" not in page(jonas, ask) and Claim.objects.count() == 1


def test_sending_back_needs_a_reason_and_keeps_what_was_typed(maya: User, priya: User) -> None:
    ask = world.ask()
    answer = post(maya, ask, "send_back", text=" ")
    assert answer.status_code == 422 and 'id="way-send_back"' in answer.text and "data-open-now" in answer.text
    answer = post(priya, ask, "send_back", text="not mine to say")
    assert answer.status_code == 403 and Refusal.objects.filter(code="no_right").count() == 1
    assert post(maya, ask, "send_back", text="the wrong incident").status_code == 302
    closed = page(maya, ask)
    assert "Sent back" in closed and "the wrong incident" in closed and not Vote.objects.exists()
    late = post(maya, ask, "send_back", text="again")
    assert late.status_code == 409 and "Maya Lindgren sent this back on" in late.text


def test_withdrawing_is_for_those_who_ask(maya: User, priya: User) -> None:
    ask = world.ask()
    assert post(maya, ask, "withdraw", text="no").status_code == 403
    assert post(priya, ask, "withdraw", text="the customer took it back").status_code == 302
    assert "Priya Raman</b> withdrew the request" in page(maya, ask)


def test_an_amount_that_cannot_be_read_stays_in_its_field(maya: User) -> None:
    ask = world.ask()
    answer = post(maya, ask, "amount", amount="a lot", text="too much")
    assert answer.status_code == 422 and 'value="a lot"' in answer.text and ">too much</textarea>" in answer.text


def test_requests_for_exactly_the_same_are_counted_and_each_is_decided_by_itself(maya: User) -> None:
    first, second = world.ask(), world.ask()
    world.ask(world.Story(memo="another memo"))
    assert first.action_digest == second.action_digest
    assert "2 requests ask for exactly this." in page(maya, first)
    form = {"choice": "approve_confirmed", "page_digest": first.page_digest, "as_user": str(maya.pk), "comment": ""}
    assert signed_in(maya).post(f"/approvals/{first.pk}/", form).status_code == 302
    states = set(ApprovalRequest.objects.values_list("pk", "state"))
    assert {(first.pk, "approved"), (second.pk, "open")} <= states
    assert "requests ask for exactly this" not in page(maya, second)
