"""Two people change a policy in real Chromium: live findings, rules moved with what was typed kept, both themes."""

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from approvals.models import PolicyDraft, PolicyVersion
from tests.pages import world
from tests.pages.conftest import Visitor

pytestmark = [pytest.mark.usefixtures("db"), pytest.mark.browser]
AT = "/policies/service-credits"
FOLDER = Path(__file__).resolve().parents[2] / "screenshots"


@pytest.fixture
def people(db: str) -> dict[str, User]:
    made = {"maya": world.person("Maya Lindgren", "manager"), "tomas": world.person("Tomas Reyes", "admin")}
    for customer in ("Acme Corp", "Bluebird Bikes"):
        world.ask(world.Story(customer=customer))
    world.operation(world.decide(world.ask(world.Story(customer="Northwind Traders")), made["maya"]), to="succeeded")
    return made


def edit(page: Page) -> None:
    """Make a higher limit automatic, with a mistake on the way that is named while it is typed."""
    small = page.locator(".one-rule").nth(1)
    small.get_by_label("When").fill("currency == 'USD' && amout_minor <= 150000")
    expect(page.locator("#findings")).to_contain_text("uses amout_minor, which is not a variable")
    page.locator("#findings").get_by_role("link", name="small, when").click()
    small.get_by_label("When").fill("currency == 'USD' && amount_minor <= 150000 && amount_minor > 150000")
    expect(page.locator("#findings")).to_contain_text("can never match")
    small.get_by_label("When").fill("currency == 'USD' && amount_minor <= 150000")
    expect(page.locator("#findings")).to_contain_text("It can be saved")
    page.locator(".one-rule").nth(2).get_by_label("When").fill("currency == 'USD' && amount_minor > 150000")
    page.get_by_label("Why it changes").fill("Most credits below $1,500 were approved unchanged")


def test_two_people_change_a_policy(visitor: Visitor, people: dict[str, User]) -> None:
    visitor.sign_in("tomas")
    page = visitor.goto(f"{AT}/")
    page.get_by_role("button", name="Write a change").click()
    page.wait_for_url(f"**{AT}/draft/")
    edit(page)
    page.get_by_role("button", name="Move rule 2 up").click()
    expect(page.get_by_label("Name").first).to_have_value("small")
    page.get_by_role("button", name="Add a rule").click()
    expect(page.locator(".one-rule legend", has_text="Rule 4")).to_be_visible()
    page.get_by_role("button", name="Remove rule 4").click()
    expect(page.locator(".one-rule legend", has_text="Rule 4")).to_have_count(0)
    expect(page.get_by_label("Why it changes")).to_have_value("Most credits below $1,500 were approved unchanged")
    assert PolicyDraft.objects.get().revision == 1, "nothing of this is saved yet"
    visitor.assert_sound()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="It is not in force yet")).to_be_visible()
    page.get_by_role("link", name="What it changes").click()
    page.get_by_role("button", name="Ask for publication").click()
    expect(page.get_by_text("You had a part in writing this")).to_be_visible()
    visitor.assert_sound()
    visitor.context.clear_cookies()
    visitor.sign_in("maya")
    page = visitor.goto(f"{AT}/draft/review")
    expect(page.locator(".changes")).to_contain_text("the amount is at most $1,500.00 USD")
    expect(page.locator(".trial")).to_contain_text("3 of them would go another way")
    page.get_by_role("button", name="Publish it").click()
    page.wait_for_url(f"**{AT}/")
    expect(page.locator("h1")).to_contain_text("v2")
    assert PolicyVersion.objects.get(number=2).published_by.label == "Maya Lindgren"
    page.get_by_role("link", name="Versions").click()
    expect(page.locator(".changes")).to_contain_text("the amount is at most $1,500.00 USD")
    visitor.assert_sound()
    photograph(page, "two-versions")
    visitor.goto(f"{AT}/")
    visitor.assert_sound()
    photograph(page, "in-force-v2")


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_every_page_of_a_draft_is_sound(visitor: Visitor, people: dict[str, User], theme: str, width: int) -> None:
    visitor.page.set_viewport_size({"width": width, "height": 900})
    visitor.context.add_cookies([{"name": "theme", "value": theme, "url": visitor.url}])
    visitor.sign_in("tomas")
    page = visitor.goto(f"{AT}/")
    page.get_by_role("button", name="Write a change").click()
    edit(page)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="It is not in force yet")).to_be_visible()
    page.get_by_role("link", name="What it changes").click()
    page.get_by_role("button", name="Ask for publication").click()
    visitor.context.clear_cookies()
    visitor.context.add_cookies([{"name": "theme", "value": theme, "url": visitor.url}])
    visitor.sign_in("maya")
    look(visitor, "review-second", f"{AT}/draft/review", theme, width)
    visitor.context.clear_cookies()
    visitor.context.add_cookies([{"name": "theme", "value": theme, "url": visitor.url}])
    visitor.sign_in("tomas")
    for name, path in (
        ("draft", f"{AT}/draft/"),
        ("draft-text", f"{AT}/draft/?mode=text"),
        ("review", f"{AT}/draft/review"),
        ("try", f"{AT}/draft/try"),
        ("versions", f"{AT}/versions/"),
        ("in-force", f"{AT}/"),
        ("list", "/policies/"),
    ):
        look(visitor, name, path, theme, width)


def look(visitor: Visitor, name: str, path: str, theme: str, width: int) -> None:
    page = visitor.goto(path)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} is wider than {width}"
    visitor.assert_sound()
    photograph(page, f"{name}-{width}-{theme}")


def photograph(page: Page, name: str) -> None:
    """For a person to leaf through, beside those of every other page."""
    FOLDER.mkdir(exist_ok=True)
    page.screenshot(path=FOLDER / f"policy-{name}.png", full_page=True)
