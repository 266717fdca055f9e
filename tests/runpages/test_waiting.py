"""What a run waits for is on its page, in its trace and in the list, and the other run is a link away."""

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.db import connections
from django.test import Client
from playwright.sync_api import Page, sync_playwright

from runs import waiting
from runs.models import Run, Wait
from tests.runpages import serving, world

Maker = Callable[..., Client]
S = world.S


def waits(run: Run, **what: Any) -> Wait:
    """As a worker writes it down: the wait, the state, the record."""
    system = world.principals.system()
    with world.transaction.atomic():
        locked = Run.objects.select_for_update(of=("self",)).get(pk=run.pk)
        made = waiting.begin(run=locked, actor=system, **what)
    world.move(run, S.WAITING, resume_to="gathering", waits_for=made.words, wake_at=waiting.due(wait=made))
    return made


def new(title: str, subject: str) -> Run:
    run = world.new_run(title=title, subject=subject, workflow="follow_up")
    world.tell(run, "run.started", title=title, workflow="follow_up", workflow_version="1")
    world.move(run, S.GATHERING)
    return run


@pytest.fixture
def runs(db: str) -> dict[str, Run]:
    found = {name: new(f"Follow-up on ticket CS-{n}", f"CS-{n}") for n, name in ((9401, "timer"), (9402, "event"))}
    waits(found["timer"], key="quiet", kind="timer", within=dt.timedelta(hours=2))
    waits(found["event"], key="fix", kind="event", event="fix_released", within=dt.timedelta(days=14))
    found["run"] = new("Follow-up on ticket CS-9403", "CS-9403")
    found["child"] = world.new_run(title="Status note on ticket CS-9403", subject="CS-9403", workflow="status_note")
    made = waits(found["run"], key="note", kind="run", starts={"workflow": "status_note", "input": {}})
    with world.transaction.atomic():
        locked = Run.objects.select_for_update(of=("self",)).get(pk=found["run"].pk)
        waiting.link(run=locked, wait=made, other=found["child"], actor=world.principals.system())
    Run.objects.filter(pk=found["run"].pk).update(waits_for=made.words, wake_at=None)
    return {name: Run.objects.get(pk=run.pk) for name, run in found.items()}


def test_the_page_says_what_it_waits_for_and_until_when(runs: dict[str, Run], signed_in: Maker) -> None:
    client = signed_in("runs.view_run")
    page = {name: client.get(f"/runs/{run.pk}/").content.decode() for name, run in runs.items()}
    assert "The timer “quiet”" in page["timer"] and "then it goes on by itself" in page["timer"]
    assert "Waits for the timer “quiet”" in page["timer"] and "for 2 h" in page["timer"]
    assert "The event “fix released”" in page["event"] and "then it goes on without it" in page["event"]
    assert "Another run: Status note on ticket CS-9403" in page["run"]
    assert (
        f'href="/runs/{runs["child"].pk}/">open that run' in page["run"] and "nothing happens by itself" in page["run"]
    )
    assert f'For the run <a href="/runs/{runs["run"].pk}/"' in page["child"]
    listed = client.get("/runs/?state=waiting").content.decode()
    assert listed.count("until <time") == 2 and "Another run: Status note" in listed


def assert_accessible(page: Page) -> None:
    found = Axe().run(page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"][:120]) for one in found] == []


@pytest.mark.browser
@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_the_pages_are_sound_in_a_browser(
    runs: dict[str, Run], web: serving.Web, tmp_path: Path, theme: str, width: int
) -> None:
    session = serving.session_of(world.admin())
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path="/usr/bin/chromium")
        context = browser.new_context(viewport={"width": width, "height": 900})
        context.add_cookies([
            {"name": web.cookie_name, "value": session, "url": web.url},
            {"name": "theme", "value": theme, "url": web.url},
        ])  # fmt: skip
        page = context.new_page()
        for name in ("timer", "event", "run", "child"):
            page.goto(f"{web.url}/runs/{runs[name].pk}/")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
            assert_accessible(page)
            page.screenshot(path=tmp_path / f"{name}-{theme}-{width}.png", full_page=True)
        page.goto(f"{web.url}/runs/?state=waiting")
        assert_accessible(page)
        page.screenshot(path=tmp_path / f"list-{theme}-{width}.png", full_page=True)
        browser.close()
        connections.close_all()  # inside Playwright's event loop Django keeps connections of its own
