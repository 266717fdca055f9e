"""The run page in Chromium: live, in place, reconnecting without gaps, under the strict policy and for everybody."""

import datetime as dt
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.db import connections
from playwright.sync_api import Page, expect, sync_playwright

from agentops import hints
from agentops.local.postgres import EmbeddedPostgres
from tests.runpages import scenes, serving, world

pytestmark = pytest.mark.browser
AGO = world.NOW - dt.timedelta(hours=5)
PATIENCE = 60_000


@pytest.fixture
def complaints() -> list[str]:
    """What the browser's console had to complain about, policy violations included."""
    return []


@pytest.fixture
def page(web: serving.Web, complaints: list[str]) -> Iterator[Page]:
    session = serving.session_of(world.admin())
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path="/usr/bin/chromium")
        context = browser.new_context(viewport={"width": 1280, "height": 900}, timezone_id="America/New_York")
        context.add_cookies([{"name": web.cookie_name, "value": session, "url": web.url}])
        context.set_default_timeout(PATIENCE)
        opened = context.new_page()
        opened.on("console", lambda note: complaints.append(note.text) if note.type == "error" else None)
        opened.on("pageerror", lambda error: complaints.append(str(error)))
        yield opened
        browser.close()
        connections.close_all()  # inside Playwright's event loop Django keeps connections of its own


def numbers(page: Page) -> list[int]:
    found: list[int] = page.eval_on_selector_all("#events li[data-seq]", "rows => rows.map(row => +row.dataset.seq)")
    return found


def hint(run: Any) -> None:
    """From a thread of its own: Playwright keeps an event loop in this one."""
    with ThreadPoolExecutor(1) as threads:
        threads.submit(hints.publish, run_id=run.pk, seq=run.event_seq).result()


def happen(run: Any, kind: str = "run.note", **data: Any) -> None:
    world.tell(run, kind, **(data or {"text": "more"}))
    hint(run)


def live(page: Page, patience: int = PATIENCE) -> None:
    expect(page.locator("#live-state")).to_have_attribute("data-state", "live", timeout=patience)


def test_what_happens_appears_in_place(page: Page, web: serving.Web, complaints: list[str]) -> None:
    run = scenes.asked(AGO)[0].run
    page.goto(f"{web.url}/runs/{run.pk}/")
    live(page)
    page.locator("a.bar[data-event]").first.focus()
    first = page.evaluate("document.activeElement.id")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") != first
    page.keyboard.press("Enter")
    expect(page.locator("#detail h3")).to_have_text("Gathering")
    assert "?event=" not in page.url, "shown in place"
    focused = page.evaluate("document.activeElement.id")
    happen(run, reason="customer withdrew", kind="run.cancel_requested")
    expect(page.locator(f"#e-{run.event_seq}")).to_have_count(1)
    expect(page.locator("#run-lanes")).to_contain_text("People")
    assert page.evaluate("document.activeElement.id") == focused, "focus stays where it was"
    world.move(run, world.S.NEEDS_PERSON, "nobody answered", person_code="expired", waits_for="a person", wake_at=None)
    hint(run)
    expect(page.locator("#run-head .chip").first).to_have_text("Needs a person")
    expect(page.locator("#run-strip .now")).to_contain_text("Needs a person")
    expect(page.locator("#count-audit")).to_have_text(str(run.event_seq))
    assert page.get_by_text("Cancel…").is_visible(), "nobody really asked to cancel"
    world.Run.objects.filter(pk=run.pk).update(cancel_requested_at=world.NOW)
    happen(run)
    expect(page.get_by_text("Cancel…")).to_be_hidden()
    page.get_by_text("Full", exact=True).click()
    expect(page.locator("#events")).to_be_visible()
    assert numbers(page) == list(range(1, run.event_seq + 1))
    assert complaints == []


def test_a_restarted_server_is_said_and_nothing_is_missed(
    page: Page, web: serving.Web, db: str, postgres: EmbeddedPostgres
) -> None:
    run = scenes.unknown(AGO)[0].run
    page.goto(f"{web.url}/runs/{run.pk}/")
    live(page)
    web.process.terminate()
    web.process.wait(15)
    expect(page.locator("#live-state")).to_contain_text("may be behind")
    for _ in range(40):
        happen(run)
    again = serving.web_process(database_url=postgres.url("app", db), channel_url=web.channel_url, port=web.port)
    with again:
        expect(page.locator(f"#e-{run.event_seq}")).to_have_count(1, timeout=120_000)
        live(page, 90_000)  # the socket is tried again after longer and longer pauses; until then the page asks
        happen(run)
        expect(page.locator(f"#e-{run.event_seq}")).to_have_count(1)
        assert numbers(page) == list(range(1, run.event_seq + 1))


def test_without_a_socket_the_page_asks(page: Page, web: serving.Web) -> None:
    run = scenes.asked(AGO)[0].run
    page.route_web_socket(re.compile("/ws/"), lambda socket: socket.close(code=1011))
    page.goto(f"{web.url}/runs/{run.pk}/")
    happen(run)
    expect(page.locator(f"#e-{run.event_seq}")).to_have_count(1)
    expect(page.locator("#live-state")).to_contain_text("looked every 4 s")
    assert numbers(page) == list(range(1, run.event_seq + 1))


def test_a_line_that_comes_twice_stays_once(page: Page, web: serving.Web) -> None:
    run = scenes.asked(AGO)[0].run
    page.goto(f"{web.url}/runs/{run.pk}/")
    live(page)
    happen(run)
    expect(page.locator(f"#e-{run.event_seq}")).to_have_count(1)
    answer = page.evaluate(
        "async path => { const answer = await fetch(path); const text = await answer.text();"
        " htmx.swap(document.getElementById('live'), text, { swapStyle: 'none' }); return answer.status; }",
        f"/runs/{run.pk}/live?after={run.event_seq - 3}",
    )
    assert answer == 200
    happen(run)
    expect(page.locator(f"#e-{run.event_seq}")).to_have_count(1)
    assert numbers(page) == list(range(1, run.event_seq + 1))


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (390, "dark")])
def test_every_page_fits_and_reads(page: Page, web: serving.Web, complaints: list[str], width: int, theme: str) -> None:
    done = scenes.completed(AGO)[0].run
    case = scenes.in_a_case(AGO, title="x" * 200, subject="y" * 120, customer="Z" * 200)[1].cases.get()
    person = scenes.needs_person(AGO).run
    page.set_viewport_size({"width": width, "height": 900})
    page.context.add_cookies([{"name": "theme", "value": theme, "url": web.url}])
    tabs = [
        f"/runs/{done.pk}/?tab={tab}"
        for tab in ("trace&event=9", "evidence", "approvals", "operations", "audit", "file")
    ]
    paths = ["/runs/", "/runs/?q=none", *tabs, "/needs-a-person/", f"/needs-a-person/{person.pk}/", "/cases/",
             f"/cases/{case.number}/", f"/runs/{person.pk}/?act=cancel"]  # fmt: skip
    for path in paths:
        page.goto(web.url + path)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, f"{path} scrolls sideways"
        found = Axe().run(page).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"][:120]) for one in found] == [], path
    assert complaints == []
