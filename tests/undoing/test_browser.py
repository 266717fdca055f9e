"""A reversal in Chromium: proposed on the run's page, approved by somebody else, and told as reversed."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from django.db import connections
from playwright.sync_api import Page, expect, sync_playwright

from reconciliation.models import Case
from tests.runpages import serving
from tests.runpages.conftest import hint_url, web
from tests.undoing.conftest import Undoing

__all__ = ["hint_url", "web"]
pytestmark = pytest.mark.browser
PATIENCE = 60_000  # ms, for a busy machine


@pytest.fixture
def page_of(web: serving.Web) -> Iterator[Callable[[User], Page]]:
    """A page on which that person is signed in."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path="/usr/bin/chromium")

        def make(user: User) -> Page:
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            context.set_default_timeout(PATIENCE)
            session = serving.session_of(user)
            context.add_cookies([{"name": web.cookie_name, "value": session, "url": web.url}])
            return context.new_page()

        yield make
        browser.close()
        connections.close_all()  # inside Playwright's event loop Django keeps connections of its own


def apart(work: Callable[[], Any]) -> Any:
    """In a thread of its own: Playwright keeps an event loop in this one."""

    def once() -> Any:
        try:
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(once).result()


def check(page: Page) -> None:
    found = [f"{one['id']}: {one['nodes'][0]['html'][:120]}" for one in Axe().run(page).response["violations"]]
    assert not found, found
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{page.url} is too wide"
    page.set_viewport_size({"width": 1280, "height": 900})


def test_from_a_run_and_from_its_case_through_approval_to_reversed(
    undo: Undoing, web: serving.Web, page_of: Callable[[User], Page]
) -> None:
    run, credit = undo.credited()
    people = undo.world.people
    case = Case.objects.create(operation=credit, kind=Case.Kind.DIFFERENT, why="the customer says it is not theirs")
    support, admin, manager = page_of(people["priya"]), page_of(people["tomas"]), page_of(people["maya"])

    admin.goto(f"{web.url}/cases/{case.pk}/")
    admin.get_by_role("link", name="Propose a reversal…").click()
    expect(admin.locator("h1")).to_have_text("Propose a reversal")
    check(admin)

    support.goto(f"{web.url}/runs/{run.pk}/?tab=operations")
    check(support)
    support.get_by_role("link", name="Propose a reversal…").click()
    support.get_by_label("Why").fill("It was credited for the wrong outage.")
    check(support)
    support.get_by_role("button", name="Propose the reversal").click()
    expect(support.get_by_role("status").filter(has_text="Nothing is undone until")).to_be_visible()

    admin.get_by_label("Why").fill("The customer says so.")
    admin.get_by_role("button", name="Propose the reversal").click()
    expect(admin.get_by_role("alert")).to_contain_text("Nothing was proposed a second time")
    check(admin)

    own = apart(lambda: undo.world.work(undo.run_of(credit)))
    request = apart(lambda: undo.world.request(own))
    support.reload()
    expect(support.locator("#run-head")).to_contain_text("Waiting for approval")
    manager.goto(f"{web.url}/approvals/{request.pk}/")
    expect(manager.locator("h1")).to_contain_text("Void $420.00 USD credit")
    check(manager)
    manager.locator("#approve").click()
    manager.get_by_role("button", name="Yes, approve").click()
    expect(manager.get_by_role("status").filter(has_text="waiting to run")).to_be_visible()

    apart(lambda: (undo.world.work(own), undo.relay()))
    support.reload()
    expect(support.locator("#run-head")).to_contain_text("Reversed since")
    check(support)
    support.get_by_role("link", name="its run").first.click()
    expect(support.locator("#run-head")).to_contain_text("Undoes")
    check(support)
    assert undo.state(credit) == "compensated" and len(undo.voids()) == 1
