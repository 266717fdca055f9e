"""A named set of screenshots of every page, at two widths and in two themes, for a person to leaf through.

They are written to `screenshots/`. Each page is also checked: it answers, its console is silent under the strict
content security policy, it does not scroll sideways, and axe finds nothing.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from agentops.demo.case_file import CaseFile
from approvals.models import ApprovalRequest
from reconciliation.models import Case
from runs.models import Run
from tests.story.conftest import CREDIT, Person, Product

pytestmark = [pytest.mark.browser, pytest.mark.stack]
FOLDER = Path(__file__).resolve().parents[2] / "screenshots"
WIDTHS = {1280: 900, 390: 844}
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


def story(number: int, total: str = "12400.00") -> dict[str, Any]:
    return CaseFile(
        customer="Saltmarsh Foundry",
        ticket=f"CS-{number}",
        account=f"ACC-{number}",
        incident=f"INC-{number}",
        invoice=f"INV-{number}",
        total=total,
        currency="USD",
        outage_began="2026-10-22T13:14:00Z",
        outage_ended="2026-10-22T16:48:00Z",
    ).world()


@pytest.fixture(scope="module")
def scenes(product: Product) -> dict[str, str]:
    """One of everything: a request that changed, a finished run, one that needs a person, an open case. Name → path."""
    for number in (9201, 9202, 9203):
        product.sandbox.post("world", story(number, "3000.00" if number == 9202 else "12400.00"))
    changed = product.wait(product.ticket_comes_in("CS-9201"), "awaiting_approval")
    asked = ApprovalRequest.objects.get(run=changed)
    product.sandbox.post("invoices/INV-9201/correct", {"total_minor": 1_200_000, "reason": "four seats removed"})
    product.until(lambda: ApprovalRequest.objects.filter(supersedes=asked).exists(), "the corrected invoice to be seen")
    product.fault("execute_and_timeout", "INV-9202")
    finished = product.wait(product.ticket_comes_in("CS-9202"), "completed")
    person = product.wait(product.ticket_comes_in("CS-8836"), "needs_person")
    case = _case(product)
    newest = ApprovalRequest.objects.get(supersedes=asked)
    return {
        "inbox": "/approvals/",
        "inbox-decided": "/approvals/?tab=decided",
        "inbox-nothing": "/approvals/?tab=mine&q=no-such-customer",
        "bulk": f"/approvals/bulk/?choice=reject&request={newest.pk}",
        "preferences": "/account/preferences/",
        "decision": f"/approvals/{newest.pk}/",
        "runs": "/runs/",
        "run": f"/runs/{finished.pk}/",
        "run-evidence": f"/runs/{finished.pk}/?tab=evidence",
        "run-operations": f"/runs/{finished.pk}/?tab=operations",
        "run-file": f"/runs/{finished.pk}/?tab=file",
        "needs-a-person": "/needs-a-person/",
        "person": f"/needs-a-person/{person.pk}/",
        "cases": "/cases/",
        "case": f"/cases/{case.pk}/",
        "statements": "/statements/",
        "policies": "/policies/",
        "policy": "/policies/service-credits/",
        "policy-versions": "/policies/service-credits/versions/",
        "switches": "/switches/",
        "switches-freeze": "/switches/?act=freeze",
        "many": "/runs/many/?act=pause&all=1",
        "overview": "/overview/",
        "sandbox": "/sandbox/",
    }


def _case(product: Product) -> Case:
    """Billing books another amount than it was sent: a person has to look."""
    body = {"mode": "wrong_amount", "operation": CREDIT, "times": 1, "match": {"invoice": "INV-9203"}}
    product.sandbox.post("faults", body)
    run = product.wait(product.ticket_comes_in("CS-9203"), "awaiting_approval")
    _approve(run)
    product.until(lambda: Case.objects.filter(operation__run=run).exists(), "a case about the wrong amount")
    return Case.objects.get(operation__run=run)


def _approve(run: Run) -> None:
    from django.contrib.auth.models import User

    from approvals.services import votes

    request = ApprovalRequest.objects.get(run=run, state="open")
    result = votes.cast(
        request_id=request.pk,
        user=User.objects.get(username="maya"),
        choice="approve",
        comment="",
        page_digest=request.page_digest,
        acknowledged=True,
        authenticated_by="password",
        channel="command",
    )
    assert result.code == "approved"


@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_is_photographed(width: int, scenes: dict[str, str], sign_in: Callable[..., Person]) -> None:
    FOLDER.mkdir(exist_ok=True)
    look: dict[str, Any] = {"viewport": {"width": width, "height": WIDTHS[width]}}
    manager, admin = sign_in("maya", **look), sign_in("tomas", **look)
    found: list[str] = []
    for name, path in scenes.items():
        person = manager if path.startswith("/approvals/") else admin
        page = person.open(path)
        _count_anew(page)
        page.wait_for_timeout(400)  # what comes by socket or fragment
        for theme in THEMES:
            page.emulate_media(color_scheme=theme)
            expect(page.locator(f"html[data-bs-theme={theme}]")).to_have_count(1)
            page.wait_for_timeout(400)  # colours take a moment to turn
            page.screenshot(path=FOLDER / f"{name}-top-{width}-{theme}.png")
            _grow(page, width)
            page.screenshot(path=FOLDER / f"{name}-{width}-{theme}.png")
            found += [f"{name}, {theme}: {problem}" for problem in _problems(page)]
            page.set_viewport_size({"width": width, "height": WIDTHS[width]})
    assert not found, "\n".join(found)
    for theme in THEMES:
        assert len(list(FOLDER.glob(f"*-{width}-{theme}.png"))) >= len(scenes)


def _count_anew(page: Page) -> None:
    """Have the frame ask what waits where, as it does by itself after a while: every count must be there to be changed,
    or the console says that one was not found."""
    with page.expect_response(lambda answer: answer.url.endswith("/waiting")) as answered:
        page.evaluate("document.getElementById('waiting').dispatchEvent(new Event('look'))")
    assert answered.value.ok and "count-" in answered.value.text()


def _grow(page: Page, width: int) -> None:
    """Make the window as tall as the page, so that what sticks to its lower edge is shown there."""
    height = page.evaluate("document.documentElement.scrollHeight")
    page.set_viewport_size({"width": width, "height": max(WIDTHS[width], min(height, 8000))})
    page.wait_for_timeout(100)


def _problems(page: Page) -> list[str]:
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    axe = Axe().run(page)
    found = [f"{one['id']}: {one['nodes'][0]['html'][:120]}" for one in axe.response["violations"]]
    return found + ([f"scrolls sideways by {wide} px"] if wide > 0 else [])
