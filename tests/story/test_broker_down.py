"""The broker is away while ten requests are approved, and the web process dies after a commit. Nothing is lost."""

import re

import pytest
import requests

from agentops.demo.case_file import CaseFile
from agentops.demo.world import PASSWORD
from approvals.models import ApprovalRequest, Decision
from reconciliation.models import Operation
from runs.models import Run
from tests.story.conftest import Product

pytestmark = pytest.mark.stack
NUMBERS = range(9301, 9311)
PATIENCE = 10  # seconds for an answer; one that waited for the broker would take longer than that


def _case(number: int) -> CaseFile:
    return CaseFile(
        customer=f"Customer {number}",
        ticket=f"CS-{number}",
        account=f"ACC-{number}",
        incident=f"INC-{number}",
        invoice=f"INV-{number}",
        total="12000.00",
        currency="USD",
        outage_began="2026-10-22T13:14:00Z",
        outage_ended="2026-10-22T16:48:00Z",
    )


class Manager:
    """A signed-in session without a browser: forms are fetched and posted as a browser would."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.session = requests.Session()
        page = self._get("/accounts/login/")
        form = {"login": "maya", "password": PASSWORD, "csrfmiddlewaretoken": self._field(page, "csrfmiddlewaretoken")}
        answer = self.session.post(f"{url}/accounts/login/", data=form, headers=self._origin(), timeout=PATIENCE)
        assert answer.ok and "/approvals/" in answer.url

    def _origin(self) -> dict[str, str]:
        return {"Origin": self.url, "Referer": f"{self.url}/"}

    def _get(self, path: str) -> str:
        answer = self.session.get(self.url + path, timeout=PATIENCE)
        answer.raise_for_status()
        return answer.text

    def _field(self, page: str, name: str) -> str:
        tags = [tag for tag in re.findall(r"<input[^>]*>", page) if f'name="{name}"' in tag]
        found = re.search(r'value="([^"]*)"', tags[0])
        assert found is not None
        return found.group(1)

    def approve(self, request: ApprovalRequest) -> str:
        path = f"/approvals/{request.pk}/"
        page = self._get(path)
        hidden = re.findall(r"<input[^>]*type=\"hidden\"[^>]*>", page)
        form: dict[str, str] = {"choice": "approve_confirmed", "comment": ""}
        for tag in hidden:
            name, value = re.search(r'name="([^"]+)"', tag), re.search(r'value="([^"]*)"', tag)
            if name and value:
                form[name.group(1)] = value.group(1)
        answer = self.session.post(self.url + path, data=form, headers=self._origin(), timeout=PATIENCE)
        assert answer.ok, answer.status_code
        return answer.text

    def read(self, path: str) -> str:
        return self._get(path)


def test_ten_approvals_without_a_broker_run_once_each(product: Product) -> None:
    runs: list[Run] = []
    for number in NUMBERS:
        product.sandbox.post("world", _case(number).world())
        runs.append(product.ticket_comes_in(f"CS-{number}"))
    for run in runs:
        product.wait(run, "awaiting_approval")
    asked = [ApprovalRequest.objects.get(run=run) for run in runs]
    manager = Manager(product.stack.url)

    product.stack.kill("valkey")
    try:
        for request in asked:
            manager.approve(request)
        product.stack.kill("web")  # right after the last commit
        assert Decision.objects.filter(request__in=asked, approved=True).count() == len(asked)
        assert not Operation.objects.filter(run__in=runs, state="succeeded").exists()
        product.stack.start("web")
        waiting = manager.read(f"/approvals/{asked[0].pk}/").lower()
        assert "waiting to run" in waiting
        assert "due, not yet picked up" in manager.read("/overview/").lower()
    finally:
        product.stack.start("valkey")
        if not product.stack.pids("web"):
            product.stack.start("web")
    for run in runs:
        product.wait(run, "completed", seconds=120)
    for number in NUMBERS:
        assert [row["amount_minor"] for row in product.credits(f"INV-{number}")] == [120_000]
