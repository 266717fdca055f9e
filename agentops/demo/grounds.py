"""Where the demo's connectors are tried out: on customers of their own in the stand-in for the outside world."""

import datetime as dt
import itertools
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agentops.demo.sandbox_client import SandboxClient
from runs.tools.conformance import Effect, Ground
from runs.tools.http import Connection
from runs.tools.registry import TOOLS, Connector, connection

SILENT_SECONDS = 1.0
_TIERS = [{"below": "99.9", "percent": "10"}]


class _Place:
    """Makes a customer with an invoice and a ticket for each effect."""

    def __init__(self, *, sandbox: SandboxClient) -> None:
        self.sandbox = sandbox
        self.name = uuid.uuid4().hex[:8]
        self._numbers = itertools.count(1)

    def customer(self) -> str:
        number = f"{self.name}{next(self._numbers)}"
        account = f"ACC-{number}"
        self.sandbox.post(
            "world",
            {
                "plans": [{"id": f"plan-{number}", "name": "Trial", "sla": {"version": "1", "tiers": _TIERS}}],
                "accounts": [
                    {
                        "id": account,
                        "name": "Connector trial",
                        "billing_customer": f"cus_{number}",
                        "plan": f"plan-{number}",
                        "standing": "good",
                    }
                ],
                "incidents": [
                    {
                        "id": f"INC-{number}",
                        "version": 1,
                        "final": True,
                        "title": "Trial",
                        "started_at": "2026-10-22T13:00:00Z",
                        "ended_at": "2026-10-22T14:00:00Z",
                        "affected": [account],
                    }
                ],
                "invoices": [
                    {
                        "number": f"INV-{number}",
                        "account": account,
                        "currency": "usd",
                        "total_minor": 100_000,
                        "period_start": "2026-10-01",
                        "period_end": "2026-11-01",
                        "due": "2026-11-30",
                        "status": "open",
                    }
                ],
                "tickets": [
                    {
                        "id": f"CS-{number}",
                        "account": account,
                        "incident": f"INC-{number}",
                        "subject": "Trial",
                        "body": "A connector is tried out.",
                        "status": "open",
                    }
                ],
            },
        )
        return number

    def credit(self) -> Effect:
        number = self.customer()
        return {
            "account": f"ACC-{number}",
            "account_name": "Connector trial",
            "customer": f"cus_{number}",
            "invoice": f"INV-{number}",
            "invoice_id": f"in_inv{number}".lower(),
            "invoice_version": "1",
            "amount_minor": "1200",
            "balance_minor": "0",
            "currency": "USD",
            "reason": "sla_breach",
            "memo": "Connector trial",
            "ticket": f"CS-{number}",
            "incident": f"INC-{number}",
        }

    def ticket(self) -> Effect:
        ticket = f"CS-{self.customer()}"
        return {"ticket": ticket, "ticket_version": "1", "status": "pending", "resolution": "Connector trial"}

    def reply(self) -> Effect:
        return {"ticket": f"CS-{self.customer()}", "subject": "Connector trial", "body": "Hello"}

    def rows(self, identity: str) -> list[dict[str, Any]]:
        return list(self.sandbox.get("ledger", identity=identity)["data"])

    def touched(self, identity: str) -> set[str]:
        return {f"account {row['objects']['account']}" for row in self.rows(identity) if "account" in row["objects"]}

    def touch(self, effect: Effect) -> None:
        self.sandbox.post(f"tickets/{effect['ticket']}/touch", {})

    def age(self, by: dt.timedelta) -> None:
        self.sandbox.post("keys/age", {"seconds": int(by.total_seconds())})

    def silence(self, operation: str) -> None:
        fault = {"mode": "timeout_without_effect", "operation": operation, "params": {"seconds": 5 * SILENT_SECONDS}}
        self.sandbox.post("faults", fault)


def _changed(name: str, value: str) -> Callable[[Effect], Effect]:
    return lambda effect: {**effect, name: value}


def grounds(*, sandbox: SandboxClient) -> dict[str, Ground]:
    """One for each of the demo's tools, by name; the settings say where the stand-in's systems are."""
    place = _Place(sandbox=sandbox)

    def ground(name: str, operation: str, **more: Any) -> Ground:
        connector, reach = TOOLS[name], connection(TOOLS[name].contract.system)

        def silent() -> Any:
            place.silence(operation)
            return _limited(connector, replace(reach, limit=SILENT_SECONDS))

        down = connector(replace(reach, url="http://127.0.0.1:9"))
        return Ground(
            tool=connector(reach), age=place.age, effects=lambda identity: len(place.rows(identity)), silent=silent,
            down=down, **more,
        )  # fmt: skip

    return {
        "billing.create_credit": ground(
            "billing.create_credit", "billing.credit_notes.create", effect=place.credit,
            vary=_changed("amount_minor", "1300"), same_purpose=_changed("amount_minor", "1300"), touched=place.touched,
        ),
        "helpdesk.update_ticket": ground(
            "helpdesk.update_ticket", "helpdesk.tickets.update", effect=place.ticket,
            vary=_changed("resolution", "Another"), same_purpose=_changed("resolution", "Another"),
            make_stale=place.touch,
        ),
        "helpdesk.draft_reply": ground(
            "helpdesk.draft_reply", "helpdesk.drafts.create", effect=place.reply, vary=_changed("body", "Another"),
            same_purpose=_changed("body", "Another"),
        ),
    }  # fmt: skip


def _limited(connector: Connector, reach: Connection) -> Any:
    """The same connector with a limit that is short enough to sit out."""
    tool = connector(reach)
    limit = dt.timedelta(seconds=SILENT_SECONDS)
    tool.contract = replace(tool.contract, call_limit=limit)  # type: ignore[misc]  # of this one alone
    return tool
