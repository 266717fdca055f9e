"""All there is to know about one operation, on one page and in the API, and what every tool promises."""

import datetime as dt
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.db import connections
from django.test import Client
from playwright.sync_api import Page, sync_playwright

from reconciliation.models import Case, Correction, Operation, Statement
from reconciliation.services import cases
from runs import clock
from runs.hiding import HIDDEN, without_secrets
from runs.services import principals, tokens
from tests.api.caller import Caller
from tests.runpages import scenes, serving, world
from tests.runpages.billing import Billing, record
from tests.runpages.test_backed import listed
from tests.runpages.test_desk import SEE, SETTLE, Maker, html, me

AGO = world.NOW - dt.timedelta(hours=5)


@pytest.fixture
def operation(db: str) -> Operation:
    return scenes.completed(AGO)[1]


@pytest.fixture
def tomas(signed_in: Maker) -> Client:
    return signed_in(SEE, SETTLE, "runs.view_run", name="tomas")


def doubted(client: Client, operation: Operation, billing: Billing) -> Case:
    """Billing has voided it since, somebody doubts our record, and their verdict corrects it."""
    world.attempt(operation, 3, AGO, closed_at=AGO, result="done")
    billing.records = (record(operation.identity, "CR-5520", amount="120000", void=True),)
    answer = client.post(f"/operations/{operation.pk}/doubt", me(reason="the customer’s invoice shows no credit"))
    case = Case.objects.get(operation=operation)
    assert answer.status_code == 302 and answer["Location"] == f"/cases/{case.number}/"
    form = {"verdict": "did_not", "evidence_did_not": "voided by finance on Monday"}
    answer = client.post(f"/cases/{case.number}/settle", me(**form))
    assert answer.status_code == 302, html(answer)
    return case


def test_the_page_tells_all_of_it(operation: Operation, tomas: Client) -> None:
    page = html(tomas.get(f"/operations/{operation.pk}/"))
    for told in (
        operation.identity, operation.business_key, "Maya", "Checked against the incident report.",
        "Service credits v1", "connection refused", "No: no connection was made", "They may have; no answer says so",
        "worker-1 pid 41",
        "Exactly one, as sent", "settled by asking billing", "CR-5520", operation.proposal.action_digest,
    ):  # fmt: skip
        assert told in page, told
    links = (f"/runs/{operation.run_id}/", f"/approvals/{operation.decision.request_id}/", "/policies/")
    assert all(f'href="{one}' in page for one in links)
    assert f"/operations/{operation.pk}/" in html(tomas.get(f"/runs/{operation.run_id}/?tab=operations"))


def test_a_correction_is_an_entry_of_its_own_and_every_page_follows_it(
    operation: Operation, tomas: Client, billing: Billing
) -> None:
    case = doubted(tomas, operation, billing)
    entry = Correction.objects.get(operation=operation)
    assert (entry.source, entry.target, entry.before["external_reference"]) == ("succeeded", "failed", "CR-5520")
    page = html(tomas.get(f"/operations/{operation.pk}/"))
    assert "Correction 1" in page and "completed as CR-5520" in page and "voided by finance on Monday" in page
    assert "Our record was corrected by this" in html(tomas.get(f"/cases/{case.number}/"))
    run = html(tomas.get(f"/runs/{operation.run_id}/"))
    assert "Corrected" in run and f"Corrected ({case.label})" in run and "nothing of it stands" in run


def test_who_may_not_settle_may_read_but_not_doubt(operation: Operation, signed_in: Maker) -> None:
    priya = signed_in("runs.view_run", name="priya")
    page = html(priya.get(f"/operations/{operation.pk}/"))
    assert "CR-5520" in page and "Our record is wrong" not in page
    assert priya.post(f"/operations/{operation.pk}/doubt", me("priya", reason="x")).status_code == 403
    assert not Case.objects.exists()
    assert signed_in(SEE, name="nobody").get(f"/operations/{operation.pk}/").status_code == 403
    assert priya.get(f"/operations/{operation.run_id}/").status_code == 404


@pytest.mark.parametrize("reason", ["", "  "])
def test_a_doubt_needs_a_reason(operation: Operation, tomas: Client, reason: str) -> None:
    answer = tomas.post(f"/operations/{operation.pk}/doubt", me(reason=reason), follow=True)
    assert "Say why you doubt it" in html(answer) and not Case.objects.exists()


def test_the_api_gives_the_same_to_who_started_the_run(operation: Operation, tomas: Client, billing: Billing) -> None:
    at, other = f"/api/v1/operations/{operation.pk}", Caller(tokens.issue(name="another", label="Another"))
    assert other.client.get(at, headers=other.headers).status_code == 404, "not one of its runs"
    caller = Caller(tokens.issue(name="helpdesk", label="Help desk"))
    doubted(tomas, operation, billing)
    told = caller.client.get(at, headers=caller.headers).json()
    assert (told["id"], told["outcome"], told["corrected"]) == (str(operation.pk), "failed", 1)
    assert [one["result"] for one in told["attempts"]] == ["not_sent", "ambiguous", "done"]
    assert told["allowed"]["policy"] == "Service credits v1" and told["allowed"]["votes"][0]["choice"] == "approve"
    assert told["corrections"][0]["before"]["external_reference"] == "CR-5520"
    assert told["learned"][-1]["source"] == "person" and "Corrected" in told["in_words"]
    run = caller.read(operation.run_id).json()
    assert run["operations"][0]["id"] == str(operation.pk)
    assert caller.client.get(at).status_code == 401


def test_secrets_never_show(operation: Operation, tomas: Client, settings: Any) -> None:
    settings.BILLING_API_KEY = "opens-every-door"
    answer = {
        "headers": {"Authorization": "Bearer abc", "x-api-key": "k"},
        "said": ["key opens-every-door", "sk_live_9x"],
    }
    world.attempt(operation, 3, AGO, closed_at=AGO, result="refused", answer=answer)
    page = html(tomas.get(f"/operations/{operation.pk}/"))
    assert "opens-every-door" not in page and "sk_live_9x" not in page and "Bearer abc" not in page and HIDDEN in page
    assert without_secrets({"n": 1, "list": [None, True, "plain"]}) == {"n": 1, "list": [None, True, "plain"]}
    bytes_sent = '{"api_key": "x\\"y", "amount": "1"}'
    assert without_secrets(bytes_sent) == f'{{"api_key": "{HIDDEN}", "amount": "1"}}'
    assert without_secrets({"credentials": ["x"], "token": {"a": "b"}, "tokens": 3, "secret": ""}) == {
        "credentials": HIDDEN, "token": HIDDEN, "tokens": 3, "secret": "",
    }  # fmt: skip


def test_every_tool_says_what_it_promises(tomas: Client) -> None:
    page = html(tomas.get("/tools/"))
    for told in ("Create credit", "Draft reply", "Update ticket", "Repeatable by identity", "ticket_version", "1 d"):
        assert told in page, told


# ---- to look at


@pytest.fixture
def doubtful(operation: Operation) -> int:
    """The number of a case about our own record, claimed."""
    admin = principals.of_user(user=world.admin())
    result = cases.doubt(operation_id=operation.pk, principal=admin, reason="the customer’s invoice shows no credit")
    return int(result.detail["case"])


@pytest.fixture
def statement(operation: Operation) -> Statement:
    """One that backs an open case."""
    now = clock.read()
    found = Statement.objects.create(
        system="billing", source="read", since=now - dt.timedelta(days=1), until=now,
        asked_by=principals.system(), read_at=now, matched_at=now, finished_at=now,
    )  # fmt: skip
    listed(found, world.open_case(scenes.unknown(AGO, subject="CS-9")[1], "asked 8 times"), "INV-2041-CN-02")
    return found


@pytest.fixture
def page(doubtful: int, statement: Statement, web: serving.Web, operation: Operation) -> Iterator[Page]:
    session = serving.session_of(world.admin())
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path="/usr/bin/chromium")
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        context.add_cookies([{"name": web.cookie_name, "value": session, "url": web.url}])
        yield context.new_page()
        browser.close()
        connections.close_all()


@pytest.mark.browser
def test_the_pages_are_for_everybody(
    page: Page, web: serving.Web, operation: Operation, doubtful: int, statement: Statement
) -> None:
    pages = {
        "operation": f"/operations/{operation.pk}/",
        "tools": "/tools/",
        "case": f"/cases/{doubtful}/",
        "cases": "/cases/",
        "statement": f"/statements/{statement.pk}/",
    }
    for name, at in pages.items():
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 900})
            for colours in ("light", "dark"):
                page.context.add_cookies([{"name": "theme", "value": colours, "url": web.url}])
                page.goto(web.url + at)
                found = Axe().run(page)
                assert found.violations_count == 0, found.generate_report()
                assert page.evaluate("document.documentElement.scrollWidth") <= width
                if folder := os.environ.get("SCREENS"):
                    page.screenshot(path=Path(folder) / f"{name}-{width}-{colours}.png", full_page=True)
