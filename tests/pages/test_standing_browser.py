"""In real Chromium: written, put in force by a second person, used, used up, asked again, revoked; and how it looks."""

import datetime as dt
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from approvals.models import StandingApproval
from runs import clock
from tests.pages import world
from tests.pages.conftest import Visitor
from tests.pages.test_standing_pages import ask_about_a_second, covered, document, use

pytestmark = [pytest.mark.usefixtures("db"), pytest.mark.browser]
FOLDER = Path(__file__).resolve().parents[2] / "screenshots"


@pytest.fixture
def people(db: str) -> dict[str, User]:
    made = {
        "maya": world.person("Maya Lindgren", "manager"),
        "jonas": world.person("Jonas Weber", "manager"),
    }
    world.policy(document=document())
    return made


def again(visitor: Visitor, who: str) -> None:
    visitor.context.clear_cookies()
    visitor.sign_in(who)


def everywhere(visitor: Visitor, name: str, path: str) -> None:
    """Both widths and themes; sound in each."""
    for theme, width in (("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)):
        visitor.page.set_viewport_size({"width": width, "height": 900})
        visitor.context.add_cookies([{"name": "theme", "value": theme, "url": visitor.url}])
        page = visitor.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} is wider than {width}"
        visitor.assert_sound()
        FOLDER.mkdir(exist_ok=True)
        page.screenshot(path=FOLDER / f"standing-{name}-{width}-{theme}.png", full_page=True)
    visitor.page.set_viewport_size({"width": 1280, "height": 900})


def test_given_used_used_up_asked_again_and_revoked(visitor: Visitor, people: dict[str, User]) -> None:
    visitor.sign_in("maya")
    page = visitor.goto("/policies/")
    page.get_by_role("link", name="Standing approvals").click()
    page.get_by_role("link", name="Approve beforehand").click()
    everywhere(visitor, "new", "/standing/new")
    page.get_by_role("textbox", name="Account").fill("ACC-1093")
    page.get_by_label("Up to, each").fill("1500.00")
    page.get_by_label("Up to, together").fill("2400.00")
    page.get_by_label("Actions").fill("5")
    page.get_by_label("Until the end of").fill((clock.now() + dt.timedelta(days=30)).date().isoformat())
    page.get_by_role("textbox", name="Why").fill("Agreed after the outages of October")
    page.get_by_role("button", name="See what it leads to").click()
    expect(page.get_by_text("without asking anybody")).to_be_visible()
    expect(page.get_by_role("button", name="Put it in force")).to_have_count(0)
    at = f"/standing/{StandingApproval.objects.get().pk}/"

    again(visitor, "jonas")
    everywhere(visitor, "asked", at)
    page.get_by_role("button", name="Put it in force").click()
    expect(page.get_by_role("status").filter(has_text="In force from now on")).to_be_visible()
    one = StandingApproval.objects.get()
    first = use(one)
    page = visitor.goto(at)
    expect(page.get_by_text("$1,200.00 USD and 4 actions left")).to_be_visible()
    everywhere(visitor, "run", f"/runs/{first.run_id}/?tab=approvals")
    assert covered(one) is not None
    use(one)
    assert covered(one) is None, "people are asked again"
    page = visitor.goto("/standing/")
    expect(page.locator(".chip", has_text="Used up")).to_be_visible()
    everywhere(visitor, "list", "/standing/")
    everywhere(visitor, "used-up", at)

    page = visitor.goto(at)
    page.get_by_role("link", name="Revoke").click()
    expect(page.get_by_role("dialog")).to_contain_text("From the moment this is recorded nothing more is sent")
    page.get_by_role("dialog").get_by_role("textbox", name="Why").fill("Agreed otherwise")
    page.get_by_role("button", name="Revoke it").click()
    expect(page.get_by_role("status").filter(has_text="Revoked")).to_be_visible()
    assert StandingApproval.objects.get().state == "revoked"
    visitor.assert_sound()
    everywhere(visitor, "policy", "/policies/service-credits/")
    everywhere(visitor, "decision", ask_about_a_second()[0])
