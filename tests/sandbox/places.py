"""A customer of its own for every test, so that tests share a process and nothing else."""

import itertools
from dataclasses import dataclass
from typing import Any

import requests
import stripe

from tests.sandbox_process import API_KEY, TOKEN, SandboxProcess

_numbers = itertools.count(1)
_PLAN = {
    "id": "business",
    "name": "Business",
    "sla": {"version": "2026-02", "tiers": [{"below": "99.5", "percent": "25"}, {"below": "99.9", "percent": "10"}]},
}


@dataclass(frozen=True, kw_only=True)
class Place:
    """One account with an open invoice of 12,000.00 and a ticket, in a running sandbox."""

    sandbox: SandboxProcess
    account: str
    customer: str
    number: str
    invoice: str
    ticket: str
    incident: str

    def billing(self, *, timeout: float = 10.0) -> stripe.StripeClient:
        """The official library without retries of its own."""
        return stripe.StripeClient(
            API_KEY,
            base_addresses={"api": self.sandbox.url},
            http_client=stripe.RequestsClient(timeout=(3, timeout)),
            max_network_retries=0,
        )

    def credit(
        self, amount: int, *, identity: str, key: str | None = None, timeout: float = 10.0, **extra: Any
    ) -> stripe.CreditNote:
        """Create a credit note on the invoice; the wire key is the identity with epoch 0 unless given."""
        params: Any = {"invoice": self.invoice, "amount": amount, "metadata": {"operation_identity": identity}, **extra}
        options: Any = {"idempotency_key": key or f"{identity}:0"}
        return self.billing(timeout=timeout).v1.credit_notes.create(params, options)

    def effects(self, identity: str) -> list[dict[str, Any]]:
        """The ledger's rows of one identity."""
        return self.sandbox.ledger(identity=identity)

    def helpdesk(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        identity: str | None = None,
        key: str | None = None,
        version: int | None = None,
    ) -> requests.Response:
        """Call the help desk below ``/helpdesk/v1/``."""
        headers = {"Authorization": f"Bearer {TOKEN}"}
        given = {"Operation-Identity": identity, "Idempotency-Key": key, "If-Match": version}
        headers |= {name: str(value) for name, value in given.items() if value is not None}
        url = f"{self.sandbox.url}/helpdesk/v1/{path}"
        return requests.request(method, url, json=body, headers=headers, timeout=10)


def settle(sandbox: SandboxProcess, *, total_minor: int = 1_200_000, currency: str = "usd") -> Place:
    """Load a new account with invoice and ticket, and inject nothing."""
    sandbox.clear_faults()
    n = next(_numbers)
    place = Place(
        sandbox=sandbox,
        account=f"ACC-{n}",
        customer=f"cus_{n}",
        number=f"INV-{n}",
        invoice=f"in_inv{n}",
        ticket=f"CS-{n}",
        incident=f"INC-{n}",
    )
    loaded = sandbox.world(world_of(place, total_minor=total_minor, currency=currency))
    assert loaded["created"]["invoices"] == 1
    return place


def world_of(place: Place, *, total_minor: int, currency: str) -> dict[str, Any]:
    """The world document of one place."""
    account = {"id": place.account, "name": "Example Co", "billing_customer": place.customer, "plan": "business"}
    incident = {
        "id": place.incident,
        "version": 5,
        "final": True,
        "title": "Checkout was down",
        "started_at": "2026-10-22T13:14:00Z",
        "ended_at": "2026-10-22T16:48:00Z",
        "affected": [place.account],
    }
    invoice = {
        "number": place.number,
        "account": place.account,
        "currency": currency,
        "total_minor": total_minor,
        "period_start": "2026-10-01",
        "period_end": "2026-11-01",
        "due": "2026-11-30",
        "status": "open",
    }
    ticket = {"id": place.ticket, "account": place.account, "incident": place.incident, "subject": "Down", "body": "We"}
    return {
        "plans": [_PLAN],
        "accounts": [account],
        "incidents": [incident],
        "invoices": [invoice],
        "tickets": [ticket],
    }
