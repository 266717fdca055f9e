"""Working through the list in real Chromium: filters and views, deciding on from the keyboard, and five at once."""

import re

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from agentops import bulk_votes
from approvals.models import BulkItem, Decision, SavedView
from runs.money import Money
from tests.pages import world
from tests.pages.conftest import Visitor

pytestmark = [pytest.mark.usefixtures("db"), pytest.mark.browser]


@pytest.fixture
def maya(db: str) -> User:
    return world.person("Maya Lindgren", "manager")


def test_filter_keep_the_view_and_decide_on_from_the_keyboard(visitor: Visitor, maya: User) -> None:
    jonas = world.person("Jonas Weber", "manager")
    world.ask(world.Story(customer="Small"), minutes=5)
    large = [
        world.ask(world.Story(customer=f"Large {number}", amount=Money(250_000, "USD")), minutes=10 + number)
        for number in range(3)
    ]
    visitor.sign_in("maya")
    page = visitor.page
    page.locator("#narrow > summary").click()
    page.get_by_label("Amount from").fill("2000")
    page.get_by_label("Currency").fill("usd")
    visitor.assert_sound()
    page.get_by_role("button", name="Show", exact=True).click()
    page.wait_for_url("**/approvals/?tab=mine&least=2000&currency=usd")
    expect(page.locator(".ask")).to_have_count(3)
    page.get_by_role("link", name="Save this view").click()
    page.get_by_label("Name").fill("Large ones")
    page.get_by_label("Open Approvals with it").check()
    visitor.assert_sound()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="Kept as “Large ones”")).to_be_visible()
    assert SavedView.objects.get().query == "least=2000.00&currency=USD"
    visitor.goto("/approvals/")
    expect(page.get_by_role("link", name="Large ones")).to_have_attribute("aria-current", "true")
    page.keyboard.press("/")
    expect(page.get_by_label("Search this list")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("j")
    page.keyboard.press("o")
    expect(page.locator(".crumbs")).to_contain_text("1 of 3")
    world.decide(large[1], jonas)
    page.keyboard.press("a")
    page.get_by_role("dialog", name="Approve this?").get_by_role("button", name="Yes, approve").press("Enter")
    expect(page.locator("h1")).to_contain_text("Large 2")  # what somebody else decided meanwhile is passed over
    page.keyboard.press("r")
    expect(page.locator("#comment")).to_be_focused()
    page.locator("h1").click()
    page.keyboard.press("u")
    expect(page.locator(".ask.here")).to_contain_text("Large 2")
    page.keyboard.press("Enter")
    page.locator("#comment").fill("not ours")
    page.get_by_role("button", name="Reject", exact=True).click()
    expect(page.get_by_role("heading", name="This list is done")).to_be_visible()
    expect(page.get_by_role("link", name="1 other waits for you outside it")).to_be_visible()
    visitor.assert_sound()
    assert Decision.objects.count() == 3


def test_five_at_once_of_which_one_changed_meanwhile(visitor: Visitor, maya: User) -> None:
    asks = [world.ask(world.Story(customer=f"Customer {number}"), minutes=10 + number) for number in range(5)]
    visitor.page.set_viewport_size({"width": 360, "height": 740})
    visitor.sign_in("maya")
    page = visitor.page
    for number in range(5):
        page.keyboard.press("j")
        page.keyboard.press("x")
        expect(page.locator(".ask").nth(number).get_by_role("checkbox")).to_be_checked()
    expect(page.get_by_role("status").filter(has_text="5 ticked")).to_be_visible()
    expect(page.locator("[data-together-sum]")).to_have_text("$6,000.00 USD")
    visitor.assert_sound()
    page.keyboard.press("a")
    expect(page.get_by_role("heading", name="Approve 5 requests?")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    visitor.assert_sound()
    world.ask(world.Story(customer="Customer 3", amount=Money(130_000, "USD")), run=asks[3].run, supersedes=asks[3])
    page.get_by_role("button", name="Approve 5 for $6,000.00 USD").click()
    expect(page.locator("#bulk")).to_contain_text("being counted")
    while bulk_votes.work_off():
        pass
    expect(page.locator("#bulk")).to_contain_text("all done")
    expect(page.get_by_role("row").filter(has_text="Customer 3")).to_contain_text("Changed since you opened it")
    expect(page.locator(".result-rows .is-green")).to_have_count(4)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    visitor.assert_sound()
    assert sorted(BulkItem.objects.values_list("code", flat=True)) == ["approved"] * 4 + ["superseded"]
    page.go_back()
    page.get_by_role("button", name="Approve 5 for $6,000.00 USD").click()  # the same form again
    expect(page.locator(".result-rows .is-green")).to_have_count(4)
    assert BulkItem.objects.count() == 5 and Decision.objects.count() == 4


def test_a_currency_without_a_sign_is_named_once(visitor: Visitor, maya: User) -> None:
    world.ask(world.Story(amount=Money(425_050, "KWD")))
    visitor.sign_in("maya")
    page = visitor.goto("/approvals/")
    page.locator(".ask input[name=request]").check()
    expect(page.locator("[data-together-sum]")).to_have_text(re.compile(r"^KWD\s425\.050$"))


def test_on_a_phone_every_tab_is_seen_and_the_facts_have_most_of_the_page(visitor: Visitor, maya: User) -> None:
    ask = world.ask()
    visitor.page.set_viewport_size({"width": 360, "height": 740})
    visitor.sign_in("maya")
    page = visitor.goto("/approvals/")
    tabs = page.get_by_role("navigation", name="Approvals")
    assert tabs.evaluate("one => one.scrollWidth <= one.clientWidth")
    expect(tabs.get_by_role("link", name="Waiting for others")).to_be_visible()
    page = visitor.goto(f"/approvals/{ask.pk}/")
    assert page.locator("#bar").evaluate("one => one.offsetHeight") < 740 * 0.3
    visitor.assert_sound()


def test_what_waits_is_counted_anew_when_a_tab_is_looked_at_again(visitor: Visitor, maya: User) -> None:
    jonas = world.person("Jonas Weber", "manager")
    asks = [world.ask(world.Story(customer=name)) for name in ("One", "Other")]
    visitor.sign_in("maya")
    page = visitor.goto("/account/preferences/")
    count = page.locator("#count-mine")
    expect(count).to_have_text("2")
    for left, ask in zip((1, 0), asks, strict=True):
        world.decide(ask, jonas)
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        expect(count).to_have_text(str(left))
    expect(count).to_be_hidden()
    world.ask(world.Story(customer="New"))
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(count).to_be_visible()
    visitor.assert_sound()
