"""In real Chromium: a live thread, a dialog that keeps what was typed, and an approval that takes amount and login."""

import pytest
from playwright.sync_api import expect

from approvals.models import Remark, Vote
from approvals.services import talking
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
