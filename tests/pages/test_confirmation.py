"""The page takes what the policy wants beyond a click: the amount typed again, and a login proved anew."""

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from approvals.models import ApprovalRequest, Vote
from tests.pages import world

pytestmark = pytest.mark.usefixtures("db")


@pytest.fixture
def maya(db: str) -> User:
    return world.person("Maya Lindgren", "manager")


def signed_in(user: User) -> Client:
    browser = Client()
    browser.force_login(user)
    return browser


def yes(browser: Client, ask: ApprovalRequest, user: User, **more: str) -> HttpResponse:
    form = {"choice": "approve_confirmed", "page_digest": ask.page_digest, "as_user": str(user.pk), "comment": "fine"}
    return browser.post(f"/approvals/{ask.pk}/", {**form, **more})


def test_the_amount_is_typed_again_and_what_was_typed_wrong_says_so_beside_the_field(maya: User) -> None:
    ask, browser = world.ask(confirm="retype"), signed_in(maya)
    page = browser.get(f"/approvals/{ask.pk}/").text
    assert "Approving takes the amount typed again." in page and 'name="retyped"' in page
    for typed, words in (("", "Type the amount to approve it."), ("1200.50", "is not the one asked for")):
        answer = yes(browser, ask, maya, retyped=typed)
        assert answer.status_code == 422 and words in answer.text
        assert "data-open" in answer.text and 'value="fine"' in answer.text  # the dialog again, the comment kept
    assert not Vote.objects.exists()
    assert yes(browser, ask, maya, retyped="1,200.00").status_code == 302
    assert Vote.objects.get().confirmed == "retype"


def test_a_fresh_login_is_asked_for_taken_and_led_back_to_the_page(maya: User) -> None:
    ask, browser = world.ask(confirm="reauthenticate"), signed_in(maya)
    page = browser.get(f"/approvals/{ask.pk}/").text
    way = f"/accounts/reauthenticate/?next=%2Fapprovals%2F{ask.pk}%2F"
    assert f'href="{way}"' in page and "approve_confirmed" not in page
    answer = yes(browser, ask, maya, retyped="1200")
    assert answer.status_code == 422 and "Confirm your login, then approve." in answer.text and way in answer.text
    assert not Vote.objects.exists()
    assert browser.get(way).status_code == 200
    assert "next" in browser.get(way).text
    back = 'href="{}">Back without confirming'
    assert back.format(f"/approvals/{ask.pk}/") in browser.get(way).text
    for elsewhere in ("https://elsewhere.example/", "//elsewhere.example", "javascript:alert(1)", ""):
        assert "Back without" not in browser.get("/accounts/reauthenticate/", {"next": elsewhere}).text
    wrong = browser.post(way, {"password": "not it", "next": f"/approvals/{ask.pk}/"})
    assert wrong.status_code == 200 and yes(browser, ask, maya, retyped="1200").status_code == 422
    right = browser.post(way, {"password": world.PASSWORD, "next": f"/approvals/{ask.pk}/"})
    assert right.headers["Location"] == f"/approvals/{ask.pk}/"
    page = browser.get(f"/approvals/{ask.pk}/").text
    assert "Your login is confirmed until" in page and "approve_confirmed" in page
    assert yes(browser, ask, maya, retyped="1200").status_code == 302
    vote = Vote.objects.get()
    assert vote.confirmed == "reauthenticate" and vote.authenticated_by.startswith("password 20")


def test_rejecting_takes_no_more_than_its_reason(maya: User) -> None:
    ask = world.ask(confirm="reauthenticate")
    assert yes(signed_in(maya), ask, maya, choice="reject").status_code == 302
    assert Vote.objects.get().choice == "reject"
