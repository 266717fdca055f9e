"""A case in Chromium: claimed, settled by one admin above what one settles alone, confirmed by another."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from playwright.sync_api import Page, expect

from agentops.local.postgres import EmbeddedPostgres
from reconciliation.services import cases
from runs.services import principals
from tests.desk.conftest import Desk
from tests.desk.credits import reference
from tests.engine.conftest import CREATE, World
from tests.runpages import serving
from tests.runpages.conftest import hint_url
from tests.runpages.world import person
from tests.undoing.test_browser import apart, check, page_of

__all__ = ["hint_url", "page_of"]
pytestmark = pytest.mark.browser


@pytest.fixture
def web(world: World, db: str, postgres: EmbeddedPostgres, hint_url: str, settings: Any) -> Iterator[serving.Web]:
    """The product's web process, which asks this test's billing."""
    env = {name: getattr(settings, name) for name in ("BILLING_URL", "BILLING_API_KEY")}
    database = postgres.url("app", db)
    with serving.web_process(
        database_url=database, channel_url=hint_url, SETTLE_ALONE_UP_TO="USD=1000.00", **env
    ) as running:
        yield running


def claim(page: Page, web: serving.Web, number: int) -> None:
    page.goto(f"{web.url}/cases/")
    page.locator(f"a[href='/cases/{number}/']").first.click()
    page.get_by_role("button", name="Claim").click()
    expect(page.get_by_role("button", name="Give back")).to_be_visible()


def test_from_claimed_to_confirmed_by_a_second_admin(
    world: World, desk: Desk, web: serving.Web, page_of: Callable[[User], Page]
) -> None:
    run = apart(world.unknown)
    world.fault("lookup_error", "billing.credit_notes.list", times=None)
    number = apart(lambda: desk.case(run)).pk
    apart(lambda: cases.release(case_number=number, principal=desk.tomas))
    noor = apart(lambda: person("noor"))
    apart(lambda: (noor.groups.add(Group.objects.get(name="admin")), principals.of_user(user=noor)))
    first, second = page_of(world.people["tomas"]), page_of(noor)

    claim(first, web, number)
    check(first)
    first.locator("#v-happened").check()
    first.locator("[name=reference_happened]").fill(apart(lambda: reference(world)))
    verdict = first.locator(".verdict-panel button.btn-primary")
    verdict.click()
    expect(first.locator(".verdict-panel")).to_contain_text("Say how you know")
    first.locator("[name=evidence_happened]").fill("Seen on the statement of 30 November.")
    verdict.click()
    expect(first.locator(".verdict-given")).to_contain_text("You proposed it, so another admin has to confirm it")
    check(first)
    assert apart(lambda: world.credit(run).state) == "unknown"

    claim(second, web, number)
    expect(second.locator(".verdict-given")).to_contain_text("Seen on the statement of 30 November.")
    check(second)
    second.get_by_role("button", name="Confirm: it happened").click()
    expect(second.locator("main")).to_contain_text("Resolved")
    check(second)
    settled = apart(lambda: world.credit(run))
    assert (settled.state, settled.settled_by) == ("succeeded", "person")
    assert len(world.sandbox.requests(operation=CREATE, identity=settled.identity)) == 1 and len(world.credits()) == 1
