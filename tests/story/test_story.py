"""The main job in real browsers against real processes, with the outside world misbehaving. The ledger judges."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from approvals.models import ApprovalRequest, Decision, Vote
from reconciliation.models import Attempt, Operation
from runs.models import Proposal, Run
from tests.story.conftest import Person, Product

pytestmark = [pytest.mark.browser, pytest.mark.stack]
SignIn = Callable[..., Person]


def approve(page: Page) -> None:
    page.locator("#approve").click()
    page.locator("#confirm").get_by_role("button", name="Yes, approve").click()


def request_of(run: Run) -> ApprovalRequest:
    return ApprovalRequest.objects.filter(run=run).latest("created_at")


def test_the_answer_is_lost_and_support_watches(product: Product, sign_in: SignIn) -> None:
    product.fault("execute_and_timeout", "INV-2041")
    run = product.wait(product.ticket_comes_in("CS-8812"), "awaiting_approval")

    watching = sign_in("priya").open(f"/runs/{run.pk}/")
    manager = sign_in("maya").open("/approvals/")
    manager.get_by_role("link", name="Issue $1,200.00 service credit to Acme Corp").click()
    expect(manager.locator("h1")).to_contain_text("$1,200.00")
    expect(manager.locator("body")).to_contain_text("INV-2041 (version 1)")
    expect(manager.locator("body")).to_contain_text("Service credits v1")
    approve(manager)
    expect(manager.locator("body")).to_contain_text("Approved")

    expect(watching.locator("body")).to_contain_text("Not confirmed", timeout=120_000)
    expect(watching.locator("#run-head, main").first).to_contain_text("Completed", timeout=120_000)
    product.wait(run, "completed")
    operation = Operation.objects.get(run=run, tool="billing.create_credit")
    assert len(product.faulted("execute_and_timeout", operation.identity)) == 1
    assert [row["amount_minor"] for row in product.credits("INV-2041")] == [120_000]
    assert (operation.state, operation.settled_by) == ("succeeded", "probe")


def test_the_invoice_is_corrected_under_an_open_page(product: Product, sign_in: SignIn) -> None:
    run = product.wait(product.ticket_comes_in("CS-8821"), "awaiting_approval")
    first = request_of(run)
    manager = sign_in("maya").open(f"/approvals/{first.pk}/")
    expect(manager.locator("h1")).to_contain_text("€2,350.00")

    product.sandbox.post("invoices/INV-2061/correct", {"total_minor": 2_000_000, "reason": "two seats removed"})
    expect(manager.locator("#moved")).to_contain_text("€2,000.00", timeout=120_000)
    first.refresh_from_db()
    assert first.state == "superseded"
    second = request_of(run)
    assert second.supersedes_id == first.pk
    expect(manager.locator("h1")).to_contain_text("€2,000.00")
    expect(manager.locator("#approve")).to_be_disabled()
    manager.locator("#seen").check()
    approve(manager)
    product.wait(run, "completed")
    assert [row["amount_minor"] for row in product.credits("INV-2061")] == [200_000]
    assert Vote.objects.filter(request__run=run).count() == 1


def test_two_managers_click_at_once(product: Product, sign_in: SignIn) -> None:
    run = product.wait(product.ticket_comes_in("CS-8826"), "awaiting_approval")
    asked = request_of(run)
    pages = [sign_in(name).open(f"/approvals/{asked.pk}/") for name in ("maya", "jonas")]
    for page in pages:
        page.locator("#approve").click()
    for page in pages:  # neither waits for the other's answer
        page.evaluate("document.querySelector('#confirm button[value=approve_confirmed]').click()")
    for page in pages:
        page.wait_for_load_state()
    product.wait(run, "completed")
    decision = Decision.objects.get(request=asked)
    voter = Vote.objects.get(request=asked).principal
    assert decision.approved
    loser = pages[1] if voter.label.startswith("Maya") else pages[0]
    loser.wait_for_url(re.compile("/approvals/"))
    loser.wait_for_load_state("networkidle")  # the page may be on its way to what became of the request
    loser.goto(f"{product.stack.url}/approvals/{asked.pk}/")
    expect(loser.locator("body")).to_contain_text(voter.label)
    assert [row["amount_minor"] for row in product.credits("INV-2070")] == [190_000]


def test_the_worker_dies_between_the_call_and_the_record(product: Product, sign_in: SignIn) -> None:
    run = product.wait(product.ticket_comes_in("CS-8830"), "awaiting_approval")
    manager = sign_in("jonas").open(f"/approvals/{request_of(run).pk}/")
    product.marker.unlink()
    approve(manager)
    product.until(product.marker.exists, "a worker to die at the crash point")
    product.wait(run, "completed", seconds=120)
    operation = Operation.objects.get(run=run, tool="billing.create_credit")
    attempt = Attempt.objects.get(operation=operation)
    assert attempt.result == "sender_gone"
    assert [row["identity"] for row in product.credits("INV-2078")] == [operation.identity]
    assert Proposal.objects.get(pk=operation.proposal_id).amount_minor == 425_050


def test_a_rejection_needs_a_reason_and_ends_the_run(product: Product, sign_in: SignIn) -> None:
    product.sandbox.post("world", extra_story())
    run = product.wait(product.ticket_comes_in("CS-9100"), "awaiting_approval")
    manager = sign_in("maya").open(f"/approvals/{request_of(run).pk}/")
    manager.get_by_role("button", name="Reject").click()
    expect(manager.locator("#comment-error")).to_contain_text("Say why")
    manager.locator("#comment").fill("The outage was announced maintenance.")
    manager.get_by_role("button", name="Reject").click()
    product.wait(run, "rejected")
    assert "announced maintenance" in run.outcome
    assert not product.credits("INV-9100")


def extra_story() -> dict[str, object]:
    from agentops.demo.case_file import CaseFile

    return CaseFile(
        customer="Larkspur Freight",
        ticket="CS-9100",
        account="ACC-9100",
        incident="INC-9100",
        invoice="INV-9100",
        total="15000.00",
        currency="USD",
        outage_began="2026-10-05T08:00:00Z",
        outage_ended="2026-10-05T10:00:00Z",
    ).world()
