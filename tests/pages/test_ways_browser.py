"""In real Chromium: a live thread, a dialog that keeps what was typed, and an approval that takes amount and login."""

import re

import pytest
from playwright.sync_api import expect

from approvals.models import Remark, Vote
from approvals.services import talking
from runs import clock
from runs.models import Run
from runs.services import principals
from tests.pages import world
from tests.pages.conftest import Visitor

pytestmark = [pytest.mark.usefixtures("db"), pytest.mark.browser]


def test_asking_hearing_and_approving_with_all_that_it_takes(visitor: Visitor) -> None:
    world.person("Maya Lindgren", "manager")
    priya = principals.of_user(user=world.person("Priya Raman", "support"))
    ask = world.ask(confirm="reauthenticate")
    visitor.sign_in("maya")
    page = visitor.goto(f"/approvals/{ask.pk}/")
    page.get_by_label("Comment (needed to reject").fill("checked with finance")
    page.get_by_role("link", name="Ask for information…").click()
    dialog = page.get_by_role("dialog", name="Ask for information")
    dialog.get_by_label("Support staff").check()
    dialog.get_by_label("What do you need to know?").fill("Which outage?")
    visitor.assert_sound()
    dialog.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator("#status")).to_contain_text("Waiting for an answer")
    expect(page.locator("#messages")).to_contain_text("keeps its place")
    page.locator("#say").fill("half a sentence")
    question = Remark.objects.get()
    talking.answer(
        request_id=ask.pk, principal=priya, question_id=question.pk, text="That of 22 October", channel="page"
    )
    expect(page.locator("#thread")).to_contain_text("That of 22 October")
    expect(page.locator("#status")).not_to_contain_text("Waiting for an answer")
    expect(page.locator("#say")).to_have_value("half a sentence")
    expect(page.locator("#comment")).to_have_value("checked with finance")
    visitor.assert_sound()

    page.goto(f"{visitor.url}/accounts/reauthenticate/?next=/approvals/{ask.pk}/")
    expect(page.get_by_role("heading")).to_have_text("Confirm your login")
    visitor.assert_sound()
    page.get_by_label("Password").fill(world.PASSWORD)
    page.get_by_role("button", name="Confirm").click()
    page.wait_for_url(f"**/approvals/{ask.pk}/")
    page.locator("#approve").click()
    page.get_by_label("Type the amount").fill("1100")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Approve this?")).to_contain_text("not the one asked for")
    assert not Vote.objects.exists()
    page.get_by_label("Type the amount").fill("1,200.00")
    page.keyboard.press("Enter")
    page.wait_for_url("**/approvals/?*done=1")
    vote = Vote.objects.get()
    assert (vote.confirmed, vote.comment) == ("reauthenticate", "checked with finance")


def test_what_is_typed_beside_the_answer_survives_the_move_a_refusal_and_a_lost_login(visitor: Visitor) -> None:
    maya = world.person("Maya Lindgren", "manager")
    world.person("Jonas Weber", "manager")
    old = world.ask(world.Story(invoice_version="2"))
    visitor.sign_in("maya")
    with visitor.page.expect_response("**/opened"):
        page = visitor.goto(f"/approvals/{old.pk}/")
    page.locator("#say").fill("half a remark")
    page.get_by_text("Hand on", exact=True).click()
    page.locator("#hand-why").fill("I am away")
    page.get_by_role("link", name="Ask for information…").click()
    page.locator("#text-ask").fill("half a question")
    new = world.ask(run=old.run, supersedes=old)
    page.wait_for_url(f"**/approvals/{new.pk}/")
    for field, kept in (("#say", "half a remark"), ("#text-ask", "half a question"), ("#hand-why", "I am away")):
        expect(page.locator(field)).to_have_value(kept)

    page.locator("#hand-to").select_option(f"user:{maya.pk}")
    Vote.objects.create(
        request=new, stage=new.stages.get(), principal=principals.of_user(user=maya), choice="reject", comment="No",
        page_digest="", binding_digest="", authenticated_by="password", group="manager", channel="page", at=clock.now(),
    )  # fmt: skip
    page.get_by_role("button", name="Hand it on").click()
    expect(page.locator("#messages")).to_contain_text("has answered already")
    expect(page.locator("#hand-why")).to_have_value("I am away")
    expect(page.locator("#hand-why")).to_be_visible()

    visitor.context.clear_cookies(name=re.compile("session"))
    page.get_by_role("button", name="Add comment").click()
    page.wait_for_url("**/accounts/login/**")
    page.get_by_label("User name").fill("maya")
    page.get_by_label("Password").fill(world.PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(f"**/approvals/{new.pk}/")
    expect(page.locator("#say")).to_have_value("half a remark")
    page.get_by_role("button", name="Add comment").click()
    expect(page.locator("#thread")).to_contain_text("half a remark")
    expect(page.locator("#say")).to_have_value("")
    assert Remark.objects.get().text == "half a remark"


def test_a_comment_that_was_refused_goes_along_to_the_successor(visitor: Visitor) -> None:
    world.person("Maya Lindgren", "manager")
    old = world.ask(confirm="retype")
    visitor.sign_in("maya")
    page = visitor.goto(f"/approvals/{old.pk}/")
    page.locator("#comment").fill("checked with finance")
    page.locator("#approve").click()
    page.get_by_label("Type the amount").fill("1")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Approve this?")).to_contain_text("not the one asked for")
    expect(page.locator("#comment")).to_have_value("checked with finance")
    new = world.ask(run=Run.objects.get(), supersedes=old)
    page.wait_for_url(f"**/approvals/{new.pk}/")
    expect(page.locator("#comment")).to_have_value("checked with finance")
