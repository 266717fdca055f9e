"""The pages in real Chromium: keys, dialogs, live changes, both themes and widths, the content policy, and axe."""

import re

import pytest
from django.contrib.auth.models import Group, User
from playwright.sync_api import expect

from approvals import freezes
from approvals.models import Decision, Refusal, Viewing, Vote
from approvals.services import freezing
from runs.money import Money
from tests.pages import world
from tests.pages.conftest import Visitor
from tests.pages.world import PASSWORD

KEPT = "Object.keys(sessionStorage).filter((name) => name.startsWith('sent:'))"
pytestmark = [pytest.mark.usefixtures("db"), pytest.mark.browser]


@pytest.fixture
def maya(db: str) -> User:
    return world.person("Maya Lindgren", "manager")


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("light", 360), ("dark", 390)])
def test_every_page_is_sound(visitor: Visitor, maya: User, theme: str, width: int) -> None:
    old = world.ask(world.Story(invoice_version="2", amount=Money(124000, "USD")))
    new = world.ask(run=old.run, supersedes=old)
    decided = world.ask(world.Story(customer="Bluebird Bikes"))
    world.operation(world.decide(decided, maya), to="unknown")
    visitor.page.set_viewport_size({"width": width, "height": 844})
    visitor.context.add_cookies([{"name": "theme", "value": theme, "url": visitor.url}])
    visitor.goto("/accounts/login/")
    expect(visitor.page.get_by_label("User name")).to_be_focused()
    visitor.assert_sound()
    visitor.sign_in("maya")
    for path in (
        "/approvals/", "/approvals/?tab=others", "/approvals/?tab=decided", f"/approvals/{new.pk}/",
        f"/approvals/{decided.pk}/", "/overview/", "/policies/", "/policies/service-credits/", "/account/preferences/",
    ):  # fmt: skip
        page = visitor.goto(path)
        assert page.evaluate("document.documentElement.dataset.bsTheme") == theme
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} is wider than {width}"
        visitor.assert_sound()


def test_a_decision_from_the_keyboard_alone(visitor: Visitor, maya: User) -> None:
    first = world.ask(world.Story(customer="First"), minutes=10)
    world.ask(world.Story(customer="Second"), minutes=20)
    visitor.sign_in("maya")
    page = visitor.page
    page.wait_for_url("**/approvals/")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator(".ask.here")).to_contain_text("Second")
    page.keyboard.press("k")
    expect(page.locator(".ask.here")).to_contain_text("First")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/approvals/{first.pk}/")
    page.locator("#approve").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Approve this?")
    expect(dialog).to_contain_text("$1,200.00 USD")
    visitor.assert_sound()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.locator("#approve")).to_be_focused()
    assert not Decision.objects.exists()
    page.keyboard.press("Enter")
    dialog.get_by_role("button", name="Yes, approve").press("Enter")
    expect(page.get_by_role("status").filter(has_text="waiting to run")).to_be_visible()
    expect(page.locator("h1")).to_contain_text("Second")
    assert Decision.objects.get().approved
    assert Viewing.objects.filter(request=first).count() == 1


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_keyboard_is_seen_wherever_it_is(visitor: Visitor, maya: User, theme: str) -> None:
    ask = world.ask()
    visitor.context.add_cookies([{"name": "theme", "value": theme, "url": visitor.url}])
    visitor.sign_in("maya")
    drawn = "one => { const s = getComputedStyle(one); return [s.outlineStyle, s.outlineWidth, s.outlineColor]; }"
    ring = ["solid", "2px", "rgb(10, 101, 115)" if theme == "light" else "rgb(86, 194, 209)"]
    for path, places in (
        ("/approvals/", ("nav.tabs a[aria-current]", "#find", "#keys", ".ask .title", "#account summary")),
        (f"/approvals/{ask.pk}/", ("#approve", "#comment", ".fold summary")),
    ):
        page = visitor.goto(path)
        page.keyboard.press("Tab")
        for place in places:
            found = page.locator(place).first
            assert found.evaluate(drawn) != ring
            found.focus()
            assert found.evaluate(drawn) == ring, f"{place} on {path}"


def test_keys_can_be_switched_off_and_stay_off(visitor: Visitor, maya: User) -> None:
    ask, other = world.ask(minutes=10), world.ask(minutes=20)
    visitor.sign_in("maya")
    page = visitor.goto("/approvals/")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys on this page")).to_be_visible()
    page.keyboard.press("Escape")
    page.goto(f"{visitor.url}/approvals/{ask.pk}/")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys on this page")).to_be_visible()
    visitor.assert_sound()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.wait_for_url(f"**/approvals/{other.pk}/")
    page.goto(f"{visitor.url}/approvals/")
    with page.expect_response("**/account/preferences/keys"):
        page.get_by_role("switch", name="Keys on").uncheck()
    page.goto(f"{visitor.url}/approvals/{ask.pk}/")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.goto(f"{visitor.url}/approvals/")
    page.keyboard.press("j")
    page.keyboard.press("?")
    expect(page.locator(".ask.here")).to_have_count(0)
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_two_clicks_on_yes_are_one_vote(visitor: Visitor, maya: User) -> None:
    ask = world.ask()
    visitor.sign_in("maya")
    page = visitor.goto(f"/approvals/{ask.pk}/")
    sent: list[str] = []
    page.on("request", lambda one: sent.append(one.url) if one.method == "POST" and one.is_navigation_request() else 0)
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to your decision")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.locator("#comment")).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_role("dialog", name="Approve this?").get_by_role("button", name="Yes, approve").dblclick()
    page.get_by_role("link", name="See what became of it").click()
    page.wait_for_url(f"**/approvals/{ask.pk}/")
    expect(page.locator("#bar .is-green")).to_contain_text("You approved this")
    assert len(sent) == 1 and Decision.objects.get().approved and not Refusal.objects.exists()
    visitor.assert_sound()


def test_an_open_page_moves_to_the_successor_and_keeps_what_was_typed(visitor: Visitor, maya: User) -> None:
    old = world.ask(world.Story(invoice_version="2", amount=Money(124000, "USD")))
    visitor.sign_in("maya")
    with visitor.page.expect_response("**/opened"):
        page = visitor.goto(f"/approvals/{old.pk}/")
    page.locator("#comment").fill("looks right")
    expect(page.locator("#approve")).to_be_enabled()
    new = world.ask(run=old.run, supersedes=old)
    page.wait_for_url(f"**/approvals/{new.pk}/")
    expect(page.get_by_role("heading", name="changed since you opened this")).to_be_visible()
    expect(page.locator("#moved")).to_contain_text("$1,240.00 USD")
    expect(page.locator("#approve")).to_be_disabled()
    expect(page.locator("#why-off")).to_be_visible()
    expect(page.locator("#comment")).to_have_value("looks right")
    page.get_by_label("I have read what changed").check()
    expect(page.locator("#approve")).to_be_enabled()
    by = world.principal("system", "t", "T")
    froze = freezing.freeze(scope=freezes.of_tool(world.TOOL), principal=by, reason="twice").freeze
    assert froze is not None
    expect(page.locator("#held")).to_be_visible()
    expect(page.locator("#approve")).to_be_disabled()
    page.get_by_label("I have read what changed").uncheck()
    page.get_by_label("I have read what changed").check()
    expect(page.locator("#approve")).to_be_disabled()
    visitor.assert_sound()
    assert freezing.lift(freeze_id=froze.pk, principal=by, reason="put right").ok
    expect(page.locator("#held")).to_have_count(0)
    expect(page.locator("#approve")).to_be_enabled()


def test_a_comment_that_was_refused_is_there_again_once_its_author_may_answer(visitor: Visitor, maya: User) -> None:
    ask = world.ask()
    visitor.sign_in("maya")
    page = visitor.goto(f"/approvals/{ask.pk}/")
    page.locator("#comment").fill("not like this")
    groups = [*maya.groups.all()]
    maya.groups.set([Group.objects.get(name="support")])
    page.get_by_role("button", name="Reject").click()
    expect(page.locator("#unsent")).to_contain_text("not like this")
    expect(page.locator("#comment")).to_have_count(0)
    maya.groups.set(groups)
    expect(page.locator("#comment")).to_have_value("not like this", timeout=30_000)


def test_an_open_page_hears_that_somebody_else_decided(visitor: Visitor, maya: User) -> None:
    jonas = world.person("Jonas Weber", "manager")
    ask = world.ask()
    visitor.sign_in("maya")
    page = visitor.goto(f"/approvals/{ask.pk}/")
    expect(page.locator("#approve")).to_be_visible()
    decision = world.decide(ask, jonas)
    expect(page.locator("#bar")).to_contain_text("Jonas Weber approved this")
    expect(page.locator("#approve")).to_have_count(0)
    expect(page.locator("#status")).to_contain_text("Waiting to run")
    world.operation(decision, to="unknown")
    expect(page.locator("#status")).to_contain_text("Not confirmed")
    visitor.assert_sound()


def test_the_inbox_tells_of_arrivals_and_lets_go_of_what_left(visitor: Visitor, maya: User) -> None:
    jonas = world.person("Jonas Weber", "manager")
    goes = world.ask(world.Story(customer="Goes"))
    world.ask(world.Story(customer="Stays"))
    visitor.sign_in("maya")
    page = visitor.goto("/approvals/")
    expect(page.locator(".ask")).to_have_count(2)
    world.ask(world.Story(customer="New"))
    world.decide(goes, jonas)
    expect(page.get_by_role("link", name="Show 1 new")).to_be_visible()
    expect(page.locator(".ask")).to_have_count(1)
    expect(page.locator("#count-mine")).to_have_text("2")
    page.get_by_role("link", name="Show 1 new").click()
    expect(page.locator(".ask")).to_have_count(2)
    visitor.assert_sound()


def test_a_login_that_ends_leaves_the_page_and_says_so(visitor: Visitor, maya: User) -> None:
    ask = world.ask()
    visitor.sign_in("maya")
    page = visitor.goto(f"/approvals/{ask.pk}/")
    page.locator("#comment").fill("typed")
    visitor.context.clear_cookies(name=re.compile("session"))
    expect(page.locator("#signed-out")).to_be_visible()
    expect(page.locator("#comment")).to_have_value("typed")
    visitor.assert_sound(known=("401",))
    page.get_by_role("button", name="Reject", exact=True).click()
    page.wait_for_url("**/accounts/login/**")
    page.get_by_label("User name").fill("maya")
    page.get_by_label("Password").fill("not this one")
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("alert")).to_have_text("The user name or the password is wrong. Type both again.")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(f"**/approvals/{ask.pk}/")
    expect(page.locator("#comment")).to_have_value("typed")
    page.get_by_role("button", name="Reject", exact=True).click()
    expect(page.locator("#messages")).to_contain_text("Rejected. What was asked will not be done.")
    assert Vote.objects.get().comment == "typed"
    assert page.evaluate(KEPT) == []


def test_a_comment_kept_over_a_login_that_ended_is_its_authors_alone(visitor: Visitor, maya: User) -> None:
    world.person("Jonas Weber", "manager")
    ask = world.ask()
    for one in ("jonas", "maya"):
        visitor.context.clear_cookies(name=re.compile("session"))
        visitor.sign_in(one)
    page = visitor.goto(f"/approvals/{ask.pk}/")
    page.locator("#comment").fill("typed")
    visitor.context.clear_cookies(name=re.compile("session"))
    page.get_by_role("button", name="Reject", exact=True).click()
    page.wait_for_url("**/accounts/login/**")
    assert len(page.evaluate(KEPT)) == 1
    page.get_by_label("User name").fill("jonas")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(f"**/approvals/{ask.pk}/")
    expect(page.locator("#comment")).to_have_value("")
    assert page.evaluate(KEPT) == []


def test_the_theme_is_remembered_and_follows_the_system(visitor: Visitor, maya: User) -> None:
    visitor.sign_in("maya")
    page = visitor.goto("/approvals/")
    theme = "document.documentElement.dataset.bsTheme"
    assert page.evaluate(theme) == "light"
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")
    page.locator("#account summary").click()
    page.locator("label", has_text="Light").click()
    page.reload()
    assert page.evaluate(theme) == "light"
    assert page.locator("html").get_attribute("data-theme") == "light"
    page.locator("#account summary").click()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/accounts/login/**")
