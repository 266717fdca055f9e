"""A request that two people have to approve one after the other, and a stand-in, as they see it."""

import datetime as dt

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from playwright.sync_api import expect

from approvals.models import Absence, ApprovalRequest, Remit, Stage, Vote
from approvals.services import absences
from approvals.staffing import NOBODY
from runs import clock
from runs.models import Run
from tests.pages import world
from tests.pages.conftest import Visitor

pytestmark = pytest.mark.usefixtures("db")


@pytest.fixture
def maya(db: str) -> User:
    return world.person("Maya Lindgren", "manager")


@pytest.fixture
def rosa(db: str) -> User:
    return world.person("Rosa Okafor", "admin")


def two_stages(minutes: int = 50) -> ApprovalRequest:
    """Managers, then finance."""
    request = world.ask(minutes=minutes)
    Stage.objects.create(request=request, position=2, name="Finance", groups=["finance"], quorum=1, in_turn=True)
    return request


@pytest.fixture
def noor(db: str) -> User:
    person = world.person("Noor Haddad")
    finance, _ = Group.objects.get_or_create(name="finance")
    finance.permissions.set(Group.objects.get(name="manager").permissions.all())
    person.groups.set([finance])
    return person


def signed_in(user: User) -> Client:
    browser = Client()
    browser.force_login(user)
    return browser


def test_the_page_says_who_is_asked_now_and_who_next(maya: User, noor: User) -> None:
    request = two_stages()
    page = signed_in(noor).get(f"/approvals/{request.pk}/").text
    assert "Stage 1 of 2 – support managers; then: Finance" in page
    assert "Finance is asked later: manager answers first" in page
    assert "Waiting for Maya Lindgren" in page
    assert "Times in UTC." in page
    others = signed_in(noor).get("/approvals/?tab=others").text
    assert "Stage 1 of 2" in others


def test_the_pages_say_that_too_few_are_left(maya: User, noor: User, rosa: User) -> None:
    request = world.ask()
    Stage.objects.create(request=request, position=2, name="Finance", groups=["finance"], quorum=2, in_turn=True)
    page = signed_in(maya).get(f"/approvals/{request.pk}/").text
    assert "Too few are left who may answer: there is 1 of the 2 needed." in page
    assert "Too few left to ask" not in signed_in(rosa).get("/overview/").text
    said = f"{NOBODY}: there is 1 of the 2 needed; it takes 2 of finance"
    Run.objects.filter(pk=request.run_id).update(waits_for=said)
    assert "Too few left to ask" in signed_in(rosa).get("/overview/").text
    assert "Somebody who may answer: there is 1 of the 2 needed" in signed_in(rosa).get(f"/runs/{request.run_id}/").text
    noor.groups.first().user_set.add(world.person("Nils Berg"))
    assert "Too few are left" not in signed_in(maya).get(f"/approvals/{request.pk}/").text


def test_naming_a_stand_in_is_ones_own_affair_or_an_admins(maya: User, noor: User, rosa: User) -> None:
    now = clock.now()
    form = {
        "person": str(maya.pk),
        "stand_in": str(noor.pk),
        "begins": f"{now:%Y-%m-%dT%H:%M}",
        "ends": f"{now + dt.timedelta(days=2):%Y-%m-%dT%H:%M}",
        "note": "On leave",
    }
    offered = {user: signed_in(user).get("/settings/absence/").context["form"] for user in (maya, rosa)}
    assert maya not in offered[maya].fields["stand_in"].queryset and noor in offered[maya].fields["stand_in"].queryset
    assert maya in offered[rosa].fields["stand_in"].queryset, "an admin arranges it for others"
    wrong = signed_in(noor).post("/settings/absence/", {**form, "as_user": str(noor.pk)})
    assert wrong.status_code == 422 and not Absence.objects.exists()
    for days, field, told in (  # from and until, in days from now
        ((2, 1), "ends", "This is not after the time in From. Choose a later time."),
        ((-2, -1), "ends", "This time is past already. Choose a later one."),
        ((1, 400), "ends", "This is more than a year after the time in From. Choose an earlier time."),
        ((400, 401), "begins", "This is more than a year from now. Choose an earlier time."),
    ):
        begins, ends = (f"{now + dt.timedelta(days=one):%Y-%m-%dT%H:%M}" for one in days)
        given = {**form, "as_user": str(maya.pk), "begins": begins, "ends": ends}
        answer = signed_in(maya).post("/settings/absence/", given)
        assert answer.status_code == 422 and answer.context["form"].errors == {field: [told]}
        assert told in answer.text.partition(f'id="id_{field}_error"')[2][:200]
    assert not Absence.objects.exists()
    assert signed_in(maya).post("/settings/absence/", {**form, "as_user": str(maya.pk)}).status_code == 302
    again = signed_in(maya).post("/settings/absence/", {**form, "as_user": str(maya.pk)})
    assert again.status_code == 409 and "There is a stand-in for part of that time already" in again.text
    request = world.ask()
    assert "You answer for <b>Maya Lindgren</b>" in signed_in(noor).get(f"/approvals/{request.pk}/").text
    made = Absence.objects.get()
    end = f"/settings/absence/{made.pk}/end"
    assert signed_in(noor).post(end, {"as_user": str(noor.pk)}).status_code == 403
    assert signed_in(rosa).post(end, {"as_user": str(rosa.pk)}).status_code == 302
    limits = {"as_user": str(rosa.pk), "user": str(maya.pk), "team": "emea", "region": "", "limits": "USD=5000"}
    assert signed_in(rosa).post("/settings/absence/limits", limits).status_code == 302
    assert Remit.objects.get().limits == {"USD": 500_000}
    bad = signed_in(rosa).post("/settings/absence/limits", {**limits, "limits": "USD=x"})
    assert bad.status_code == 422 and "write such as USD=5000.00" in bad.text


def test_handing_on_and_adding_from_the_page(maya: User, noor: User) -> None:
    jonas = world.person("Jonas Weber", "manager")
    request = world.ask()
    browser, as_user = signed_in(maya), {"as_user": str(maya.pk)}
    stage = request.stages.get()
    hand = {**as_user, "stage": str(stage.pk), "to": f"user:{jonas.pk}", "reason": "Knows them"}
    page = browser.post(f"/approvals/{request.pk}/hand-on", hand, follow=True).text
    assert "Support managers: handed on to Jonas Weber." in page and "handed on to Jonas Weber" in page
    add = {**as_user, "person": str(noor.pk), "reason": "Their budget"}
    page = browser.post(f"/approvals/{request.pk}/add-approver", add, follow=True).text
    assert "Noor Haddad has to approve as well now" in page and "added by Maya Lindgren: Their budget" in page
    for junk in ({**hand, "to": "user:x"}, {**hand, "to": "user:99999999"}):
        assert browser.post(f"/approvals/{request.pk}/hand-on", junk).status_code == 404
    assert browser.post(f"/approvals/{request.pk}/hand-on", {**hand, "stage": "x"}).status_code == 302


@pytest.mark.browser
def test_two_people_one_after_the_other(visitor: Visitor, maya: User, noor: User) -> None:
    request = two_stages()
    absences.arrange(
        person_id=maya.pk,
        stand_in_id=noor.pk,
        begins=clock.now() + dt.timedelta(days=3),
        ends=clock.now() + dt.timedelta(days=5),
        note="On leave",
        by=maya,
    )
    visitor.sign_in("maya")
    for path in (f"/approvals/{request.pk}/", "/settings/absence/"):
        page = visitor.goto(path)
        visitor.assert_sound()
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} is wider than the phone"
        page.set_viewport_size({"width": 1280, "height": 844})
    page = visitor.goto(f"/approvals/{request.pk}/")
    page.locator("#approve").click()
    page.get_by_role("button", name="Yes, approve").click()
    expect(page.get_by_text("Your approval counts: 1 of 2. It waits for others.")).to_be_visible()
    visitor.context.clear_cookies()
    visitor.sign_in("noor")
    page = visitor.goto(f"/approvals/{request.pk}/")
    expect(page.locator("#stages")).to_contain_text("Maya Lindgren approved")
    page.locator("#approve").click()
    page.get_by_role("button", name="Yes, approve").click()
    expect(page.get_by_text("Approved. It is waiting to run.")).to_be_visible()
    assert [vote.whose for vote in Vote.objects.order_by("at")] == ["Maya Lindgren", "Noor Haddad"]


@pytest.mark.browser
def test_a_stand_in_is_named_and_answers(visitor: Visitor, maya: User, noor: User) -> None:
    request = world.ask()
    visitor.sign_in("maya")
    page = visitor.goto("/settings/absence/")
    begins = clock.now().replace(second=0, microsecond=0) - dt.timedelta(days=1)  # whatever zone the form is in
    form = page.locator("form", has=page.locator("[name=stand_in]"))
    form.locator("[name=stand_in]").select_option(label="Noor Haddad")
    form.locator("[name=begins]").fill(f"{begins:%Y-%m-%dT%H:%M}")
    form.locator("[name=ends]").fill(f"{begins + dt.timedelta(days=2):%Y-%m-%dT%H:%M}")
    form.locator("button[type=submit]").click()
    page.wait_for_load_state()
    made = Absence.objects.get()
    assert (made.person, made.stand_in) == (maya, noor)
    visitor.assert_sound()
    visitor.context.clear_cookies()
    visitor.sign_in("noor")
    page = visitor.goto("/approvals/?tab=mine")
    expect(page.locator("main")).to_contain_text("You answer for Maya Lindgren, who is away")
    page = visitor.goto(f"/approvals/{request.pk}/")
    expect(page.locator("main")).to_contain_text("You answer for Maya Lindgren")
    page.locator("#approve").click()
    page.get_by_role("button", name="Yes, approve").click()
    page.wait_for_url("**/approvals/?*done=1")
    vote = Vote.objects.get()
    assert vote.principal.user == noor and vote.instead_of is not None and vote.instead_of.user == maya
