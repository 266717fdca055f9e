"""The outside world for tests of tools and workflows: one sandbox a run, a new customer a test.

Import the fixtures into a conftest; `customer()` makes a world part of its own, so that tests never meet.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from runs.tools.http import Connection
from tests import sandbox_process
from tests.sandbox_process import SandboxProcess

_numbers = itertools.count(1)
TIERS = [
    {"below": "99.5", "percent": "25"},
    {"below": "99.9", "percent": "10"},
    {"below": "99.95", "percent": "5"},
]


@dataclass(frozen=True)
class Outside:
    """The sandbox with two connections to it. `limit` is short enough to sit out a silence, long enough else."""

    process: SandboxProcess
    limit: float = 3.0

    @property
    def billing(self) -> Connection:
        return Connection(system="billing", url=self.process.url, secret=sandbox_process.API_KEY, limit=self.limit)

    @property
    def helpdesk(self) -> Connection:
        url = f"{self.process.url}/helpdesk/v1"
        return Connection(system="helpdesk", url=url, secret=sandbox_process.TOKEN, limit=self.limit)

    def customer(self, **changes: Any) -> dict[str, Any]:
        """Put one new customer with plan, incident, invoice and ticket into the world and return the parts by name.

        `changes` are `account_id`-like names: part, underscore, field (`invoice_total_minor=100`); None for a part
        (`incident=None`) leaves it out.
        """
        number = next(_numbers)
        parts = _parts(number)
        for name, value in changes.items():
            part, _, field = name.partition("_")
            if field:
                parts[part][field] = value
            else:
                assert value is None
                parts.pop(part)
        if "incident" not in parts:
            parts["ticket"].pop("incident")
        self.process.world({f"{part}s": [content] for part, content in parts.items()})
        return parts


def _parts(number: int) -> dict[str, dict[str, Any]]:
    account = f"ACC-{number}"
    return {
        "plan": {"id": f"plan-{number}", "name": "Business", "sla": {"version": "2026-02", "tiers": TIERS}},
        "account": {
            "id": account,
            "name": f"Example {number} Ltd",
            "billing_customer": f"cus_example{number}",
            "plan": f"plan-{number}",
            "standing": "good",
        },
        "incident": {
            "id": f"INC-{number}",
            "version": 5,
            "final": True,
            "title": "Full outage",
            "started_at": "2026-10-22T13:14:00Z",
            "ended_at": "2026-10-22T16:48:00Z",
            "affected": [account],
        },
        "invoice": {
            "number": f"INV-{number}",
            "account": account,
            "currency": "usd",
            "total_minor": 1_200_000,
            "period_start": "2026-10-01",
            "period_end": "2026-11-01",
            "due": "2026-11-30",
            "status": "open",
        },
        "ticket": {
            "id": f"CS-{number}",
            "account": account,
            "incident": f"INC-{number}",
            "subject": "Outage on 22 October",
            "body": "We were down for about four hours and expect compensation.",
            "status": "open",
        },
    }


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    process = sandbox_process.start(Path(tmp_path_factory.mktemp("sandbox")))
    yield process
    process.stop()


@pytest.fixture
def outside(sandbox: SandboxProcess, settings: Any) -> Iterator[Outside]:
    """The sandbox without faults, and the product's settings pointing at it."""
    sandbox.clear_faults()
    made = Outside(sandbox)
    settings.BILLING_URL, settings.BILLING_API_KEY = made.billing.url, made.billing.secret
    settings.HELPDESK_URL, settings.HELPDESK_TOKEN = made.helpdesk.url, made.helpdesk.secret
    settings.CALL_LIMIT_SECONDS = made.limit
    yield made
    sandbox.clear_faults()
