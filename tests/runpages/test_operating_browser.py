"""Choosing runs and switches in Chromium: what is ticked stays ticked, and every page of it is for everybody."""

import datetime as dt
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.db import connections
from playwright.sync_api import Page, expect, sync_playwright

from runs.models import Batch
from tests.runpages import scenes, serving, world

pytestmark = pytest.mark.browser
AGO = world.NOW - dt.timedelta(hours=5)
RIGHTS = ("runs.view_run", "runs.operate_run", "approvals.freeze")


@pytest.fixture
def complaints() -> list[str]:
    return []


@pytest.fixture
def page(web: serving.Web, complaints: list[str]) -> Iterator[Page]:
    session = serving.session_of(world.person("priya", *RIGHTS))
    for number in range(3):
        world.new_run(title=f"Credit for customer {number}", subject=f"CS-77{number}")
    scenes.completed(AGO)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path="/usr/bin/chromium")
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        context.add_cookies([{"name": web.cookie_name, "value": session, "url": web.url}])
        opened = context.new_page()
        opened.on("console", lambda note: complaints.append(note.text) if note.type == "error" else None)
        opened.on("pageerror", lambda error: complaints.append(str(error)))
        yield opened
        browser.close()
        connections.close_all()  # inside Playwright's event loop Django keeps connections of its own


def check(page: Page) -> None:
    found = [f"{one['id']}: {one['nodes'][0]['html'][:120]}" for one in Axe().run(page).response["violations"]]
    assert not found, found


def test_runs_are_ticked_asked_about_and_each_has_its_result(
    page: Page, web: serving.Web, complaints: list[str]
) -> None:
    page.goto(f"{web.url}/runs/")
    expect(page.locator("#pick button").first).to_be_disabled()
    page.get_by_label("Choose Credit for customer 1").check()
    page.get_by_label("Choose Credit for customer 2").check()
    expect(page.locator("[data-pick-count]")).to_have_text("2 chosen. The list stands still meanwhile.")
    with page.expect_event("console", predicate=lambda note: note.text == "asked"):  # it would have refreshed itself
        page.evaluate(
            "document.addEventListener('htmx:beforeRequest', () => console.log('asked'));"
            "htmx.trigger('#run-list', 'every 5s'); htmx.ajax('GET', location.href, {source: '#run-list'})"
        )
    expect(page.get_by_label("Choose Credit for customer 1")).to_be_checked()
    check(page)
    page.get_by_role("button", name="Pause…").click()
    expect(page.locator("h1")).to_have_text("Pause 2 runs?")
    page.get_by_label("Why").fill("the prices are wrong")
    check(page)
    page.get_by_role("button", name="Pause 2 runs").click()
    expect(page.locator("h1")).to_have_text("Pause 2 runs")
    expect(page.locator("#batch")).to_contain_text("being done; this page keeps up")
    check(page)
    assert Batch.objects.get().total == 2 and not complaints


def test_on_a_phone_the_buttons_come_with_the_first_tick(page: Page, web: serving.Web) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{web.url}/runs/")
    expect(page.locator("#pick button").first).to_be_hidden()
    page.get_by_label("Choose Credit for customer 1").check()
    expect(page.locator("#pick button").first).to_be_visible()
    check(page)


def test_freezing_shows_a_band_and_lifting_takes_it_away(page: Page, web: serving.Web, complaints: list[str]) -> None:
    page.goto(f"{web.url}/switches/")
    page.get_by_role("link", name="Freeze…").click()
    page.get_by_label("What", exact=True).select_option("tool:billing.create_credit")
    page.get_by_label("Why").first.fill("booked twice")
    check(page)
    page.get_by_role("button", name="Freeze it").click()
    expect(page.locator(".frozen-bar")).to_contain_text("Tool billing.create_credit is frozen by Priya Example")
    check(page)
    page.get_by_role("link", name="Lift…").click()
    page.locator("dialog[open] textarea").fill("mended")
    check(page)
    page.get_by_role("button", name="Lift it").click()
    expect(page.locator("#messages")).to_contain_text("Lifted.")
    expect(page.locator(".frozen-bar")).to_have_count(0)
    assert not complaints
