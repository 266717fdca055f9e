"""The demo's outside world: faults are really set there, and the page survives its absence."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests
from django.test import Client

from agentops.pages import sandbox, sandbox_words
from runs.tools.registry import TOOLS, contract
from tests import sandbox_process
from tests.runpages import world

OPERATE = "runs.operate_run"
Maker = Callable[..., Client]
SLA = {"version": "1", "tiers": [{"below": "99.9", "percent": "10"}]}
ACME = {"id": "ACC-1", "name": "Acme Corp", "billing_customer": "cus_acme", "plan": "business", "standing": "good"}
WORLD = {
    "plans": [{"id": "business", "name": "Business", "sla": SLA}],
    "accounts": [ACME],
    "incidents": [],
    "invoices": [
        {
            "number": "INV-1",
            "account": "ACC-1",
            "currency": "usd",
            "total_minor": 1200000,
            "period_start": "2026-10-01",
            "period_end": "2026-11-01",
            "due": "2026-11-30",
            "status": "open",
        }
    ],
    "tickets": [],
}


def html(answer: object) -> str:
    return answer.content.decode()  # type: ignore[attr-defined]


@pytest.fixture
def outside(tmp_path: Path, settings: object) -> Iterator[sandbox_process.SandboxProcess]:
    running = sandbox_process.start(tmp_path / "sandbox")
    settings.DEMO, settings.SANDBOX_URL = True, running.url  # type: ignore[attr-defined]
    try:
        yield running
    finally:
        running.kill()


def me(**more: str) -> dict[str, str]:
    return {"as_user": str(world.person("priya").pk), **more}


def test_faults_are_set_counted_and_cleared(db: str, outside: sandbox_process.SandboxProcess, signed_in: Maker) -> None:
    client = signed_in(OPERATE)
    assert "Nothing has happened out there yet" in html(client.get("/sandbox/"))
    form = {"mode": "execute_and_timeout", "operation": "billing.credit_notes.create", "times": "2", "seconds": "5"}
    page = html(client.post("/sandbox/fault", me(**form), follow=True))
    assert "Set for the next 2 of “Create credit”: The effect happens; no answer ever comes." in page
    assert "<b>The effect happens; no answer ever comes.</b><small>Create credit · 2 more</small>" in page
    fault = outside.listed_faults()[0]
    assert (fault["mode"], fault["remaining"], fault["params"]) == ("execute_and_timeout", 2, {"seconds": 5})
    client.post("/sandbox/clear", me(seq=str(fault["seq"])))
    assert outside.listed_faults() == []


def test_the_form_comes_first_in_words_and_offers_only_what_the_product_calls(
    db: str, outside: sandbox_process.SandboxProcess, signed_in: Maker
) -> None:
    offered = {name for one in sandbox.call("GET", "modes")["data"] for name in one["operations"]}
    used = {name for calls in sandbox_words.CALLS.values() for name in calls}
    assert used < offered, "each is a call that the sandbox knows, and it knows others"
    titles = {contract(name).title for name in TOOLS}
    assert titles <= {title for calls in sandbox_words.CALLS.values() for title in calls.values()}
    page = html(signed_in(OPERATE).get("/sandbox/"))
    assert page.index("Make something go wrong") < page.index("Set now") < page.index('id="h-inv"')
    values = set(re.findall(r'<option value="(billing|helpdesk)(\.[a-z_.]+)"', page))
    assert {"".join(pair) for pair in values} == used
    told = re.sub(r"<[^>]*>", " ", page)
    assert "The effect happens; no answer ever comes." in told and "Look up the changes of a ticket" in told
    for code in ("execute_and_timeout", "execute and timeout", "credit_notes", "invoices.pay"):
        assert code not in told


def test_only_the_newest_calls_are_open(
    db: str, outside: sandbox_process.SandboxProcess, signed_in: Maker, settings: object
) -> None:
    for _ in range(12):
        requests.get(f"{outside.url}/helpdesk/v1/tickets/CS-0", timeout=5)
    page = html(signed_in(OPERATE).get("/sandbox/"))
    shown, _, folded = page.split('id="h-wire"')[1].partition("<details")
    assert (shown.count('<th scope="row">'), folded.count('<th scope="row">')) == (10, 2) and "2 earlier" in folded


def test_wrong_input_is_refused_with_the_field(
    db: str, outside: sandbox_process.SandboxProcess, signed_in: Maker
) -> None:
    client = signed_in(OPERATE)
    for wrong in ({"mode": "odd"}, {"times": "0"}, {"times": "many"}, {"seconds": "-1"}, {"seconds": "nan"}):
        form = {"mode": "ok_slow", "operation": "*", "times": "1", **wrong}
        assert client.post("/sandbox/fault", me(**form)).status_code == 422, wrong
    assert outside.listed_faults() == []


def test_correcting_an_invoice_is_done_there(
    db: str, outside: sandbox_process.SandboxProcess, signed_in: Maker
) -> None:
    outside.world(WORLD)
    client = signed_in(OPERATE)
    assert "INV-1" in html(client.get("/sandbox/")) and "Acme Corp" in html(client.get("/sandbox/"))
    bad = client.post("/sandbox/correct", me(invoice="INV-1", currency="USD", total="-5"), follow=True)
    assert "Nothing was changed" in html(bad)
    missing = client.post("/sandbox/correct", me(invoice="../x", currency="USD", total="5.00"), follow=True)
    assert "The sandbox refused" in html(missing)
    done = client.post("/sandbox/correct", me(invoice="INV-1", currency="USD", total="9000.00"), follow=True)
    assert "INV-1 was corrected to $9,000.00 USD" in html(done) and "$9,000.00" in html(done)
    assert [row["operation"] for row in outside.ledger()][-1] == "billing.invoices.correct"


def test_only_in_the_demo_and_only_for_who_operates(
    db: str, outside: sandbox_process.SandboxProcess, signed_in: Maker, settings: object
) -> None:
    assert Client().get("/sandbox/").status_code == 302
    assert signed_in("runs.view_run", name="olga").get("/sandbox/").status_code == 403
    client = signed_in("reconciliation.settle_case", name="tomas")
    assert client.get("/sandbox/").status_code == 200
    assert client.post("/sandbox/clear", {"as_user": "0"}).status_code == 403
    settings.DEMO = False  # type: ignore[attr-defined]
    assert client.get("/sandbox/").status_code == 404
    assert client.post("/sandbox/clear", {}).status_code == 404


def test_a_sandbox_that_is_down_is_said(db: str, settings: object, signed_in: Maker) -> None:
    settings.DEMO, settings.SANDBOX_URL = True, "http://127.0.0.1:9"  # type: ignore[attr-defined]
    client = signed_in(OPERATE)
    answer = client.get("/sandbox/")
    assert answer.status_code == 503 and "The sandbox does not answer" in html(answer)
    assert client.post("/sandbox/clear", me()).status_code == 302
    assert client.post("/sandbox/fault", me(mode="ok")).status_code == 503
