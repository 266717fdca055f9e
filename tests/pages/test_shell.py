"""The frame around every page: sign-in, where it leads, what a lost login and a foreign form look like."""

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.models import User
from django.test import Client

from agentops.permissions import GROUPS, ensure_groups

pytestmark = pytest.mark.usefixtures("db")


def person(name: str, *groups: str) -> User:
    made = ensure_groups()
    user = User.objects.create_user(name, password="a-long-demo-word", first_name=name.title())
    user.groups.add(*(made[group] for group in groups))
    return user


def test_groups_have_their_rights_and_no_others() -> None:
    groups = ensure_groups()
    for name, wanted in GROUPS.items():
        held = {f"{p.content_type.app_label}.{p.codename}" for p in groups[name].permissions.all()}
        assert held == set(wanted)
    assert "approvals.vote" not in GROUPS["admin"] and "reconciliation.settle_case" not in GROUPS["manager"]


def test_sign_in_page_and_back() -> None:
    person("maya", "manager")
    browser = Client()
    assert browser.get("/").headers["Location"] == "/accounts/login/?next=/"
    page = browser.get("/accounts/login/?next=/approvals/")
    assert page.status_code == 200 and "Sign in" in page.text and "sign up" not in page.text.lower()
    answer = browser.post("/accounts/login/", {"login": "maya", "password": "wrong", "next": "/approvals/"})
    assert answer.status_code == 200 and "the password is wrong" in answer.text and 'value="maya"' in answer.text
    answer = browser.post("/accounts/login/", {"login": "maya", "password": "a-long-demo-word", "next": "/approvals/"})
    assert answer.headers["Location"] == "/approvals/"
    assert "uccessfully" not in browser.get("/approvals/").text, "the page names who is signed in, and that is enough"


def test_lost_login_during_an_htmx_action_leads_back_to_the_page_not_to_the_action() -> None:
    browser = Client(headers={"HX-Request": "true", "HX-Current-URL": "http://testserver/runs/?q=1"})
    answer = browser.post("/")
    assert answer.status_code == 204 and answer.headers["HX-Redirect"] == "/accounts/login/?next=%2Fruns%2F%3Fq%3D1"
    assert browser.get("/").status_code == 401
    foreign = Client(headers={"HX-Request": "true", "HX-Current-URL": "https://evil.example/x"}).post("/")
    assert foreign.headers["HX-Redirect"] == "/accounts/login/?next=%2F"


def test_who_may_not_is_told_as_whom_and_who_can_change_it() -> None:
    for name, groups, where in (("maya", ["manager"], "/admin/"), ("nobody", [], "/runs/")):
        browser = Client()
        browser.force_login(person(name, *groups))
        answer = browser.get(where, follow=True)
        assert answer.status_code == 403 and f"You are signed in as <b>{name.title()}</b>." in answer.text
        assert "An administrator can give it, by a group." in answer.text


def test_somebody_in_no_group_is_told_so() -> None:
    browser = Client()
    browser.force_login(person("nobody"))
    answer = browser.get("/")
    assert answer.status_code == 403 and "none of the groups" in answer.text


@pytest.mark.parametrize("cookie", ["America%2FNew_York", "", "../../etc/passwd", "America", "\x00", "Nowhere/At_All"])
def test_the_zone_cookie_never_breaks_a_page(cookie: str) -> None:
    browser = Client()
    browser.cookies["tz"] = cookie
    assert browser.get("/accounts/login/").status_code == 200


def test_an_unknown_address_and_a_stale_form_have_their_own_pages() -> None:
    browser = Client(enforce_csrf_checks=True)
    assert "nothing at this address" in browser.get("/no/such/page").text
    answer = browser.post("/accounts/login/", {"login": "x", "password": "y"})
    assert answer.status_code == 403 and "was not done" in answer.text


CLOSED = ["signup/", "email/", "password/reset/", "password/reset/key/1-abc/", "confirm-email/x/"]


@pytest.mark.parametrize("where", CLOSED)
def test_what_an_administrator_does_nobody_does_for_themselves(where: str) -> None:
    visitor, maya = Client(), Client()
    maya.force_login(person("maya", "manager"))
    for browser in (visitor, maya):
        assert browser.get(f"/accounts/{where}").status_code == 404
        assert browser.post(f"/accounts/{where}", {"email": "maya@elsewhere.example"}).status_code == 404


def test_a_forgotten_password_leads_to_an_administrator() -> None:
    browser = Client()
    assert "An administrator can set a new one." in browser.get("/accounts/login/").text
    browser.force_login(person("maya", "manager"))
    page = browser.get("/accounts/password/change/").text
    assert "<h1>Change password</h1>" in " ".join(page.split()).replace("> ", ">").replace(" <", "<")
    assert "Current password" in page and "New password (again)" in page and "New Password" not in page
    assert "An administrator can set a new one." in page and "password/reset" not in page


def test_an_address_that_nobody_proved_keeps_nobody_from_a_second_factor() -> None:
    browser, maya = Client(), person("maya", "manager")
    EmailAddress.objects.create(user=maya, email="maya@agentops.example", verified=False)
    browser.post("/accounts/login/", {"login": "maya", "password": "a-long-demo-word"})
    browser.post("/accounts/reauthenticate/", {"password": "a-long-demo-word"})
    page = browser.get("/accounts/2fa/totp/activate/")
    assert page.status_code == 200 and 'name="code"' in page.text
