"""The default provider: no model, no key, no network. Reads the view as a decent agent would and answers by rule.

Its arithmetic is its own (decimal, from the view alone), so that comparing it with the system's is a comparison.
"""

import datetime as dt
import re
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from runs.money import Strict
from runs.providers.base import Turn
from runs.texts import unmarked

MODEL = "rules-1"
COMPLAINT = re.compile(
    r"\b(outage|down|downtime|offline|unavailable|unreachable|disrupt\w*|interrupt\w*|not work\w*|credit|compensat\w*|"
    r"refund|sla)\b",
    re.IGNORECASE,
)


class RulesProvider:
    """Answers the choices issue_credit, ask_for_document and escalate, whichever of them it is offered."""

    name = "rules"

    def choose(self, *, view: dict[str, Any], choices: Sequence[type[Strict]], instructions: str) -> Turn:
        """See `runs.providers.base.Provider`. Never raises ProviderDown."""
        answer = decide(view)
        offered = {choice.model_fields["kind"].default for choice in choices if "kind" in choice.model_fields}
        if answer["kind"] not in offered:
            failure = f"The rules would answer {answer['kind']}, which is not offered here."
            return Turn(model=MODEL, answer=None, failure=failure)
        return Turn(model=MODEL, answer=answer)


def decide(view: dict[str, Any]) -> dict[str, Any]:
    """The answer to a view, as a dictionary with its `kind`."""
    view = unmarked(view)
    if view.get("refusals"):
        return _escalate(f"My earlier proposal was refused: {str(view['refusals'][-1])[:1000]}")
    if not complains(view.get("ticket", {})):
        return _escalate("The ticket does not ask for compensation of an outage.")
    for kind, document in (("sla", "the SLA schedule of the customer's plan"), ("incident", "the incident report")):
        if kind not in view:
            return _ask(document, "Without it no downtime or percentage can be worked out.")
    incident, account = view["incident"], view["account"]
    if incident["final"] is not True:
        return _ask(f"the final report of incident {incident['id']}", "The report is not final yet.")
    if "invoice" not in view:
        return _ask("the invoice for the incident's month", "The credit is a share of that invoice.")
    if account["id"] not in incident["affected"]:
        return _escalate(f"Incident {incident['id']} does not list {account['id']} as affected.")
    if account["standing"] != "good":
        return _escalate(f"The account's standing is {account['standing']}.")
    for item in view.get("credits", {}).get("credits", []):
        if item["incident"] == incident["id"] and item["status"] != "void":
            return _escalate(f"Credit {item['reference']} was given for this incident already.")
    return _credit(view)


def complains(ticket: dict[str, Any]) -> bool:
    """Whether the ticket is about an outage. Its words are searched, never followed."""
    texts = [ticket.get("subject"), ticket.get("body"), *(item.get("body") for item in ticket.get("messages", []))]
    return any(COMPLAINT.search(text) for text in texts if text)


def _credit(view: dict[str, Any]) -> dict[str, Any]:
    incident, invoice = view["incident"], view["invoice"]
    start, end = _time(invoice["period_start"]), _time(invoice["period_end"])
    began, over = max(start, _time(incident["started_at"])), min(end, _time(incident["ended_at"]))
    downtime = max(0, int((over - began).total_seconds()) // 60)
    minutes = int((end - start).total_seconds()) // 60
    percent = Decimal(0)
    for tier in view["sla"]["tiers"]:
        # uptime < below, without dividing: minutes up × 100 < below × minutes
        if Decimal(100 * (minutes - downtime)) < Decimal(tier["below"]) * minutes:
            percent = max(percent, Decimal(tier["percent"]))
    amount = (Decimal(invoice["total_minor"]) * percent / 100).quantize(Decimal(1), rounding=ROUND_HALF_UP)
    uptime = 100 * Decimal(minutes - downtime) / minutes
    figures = f"{downtime} of {minutes} minutes down, {uptime:.3f} % uptime, {percent} % of invoice {invoice['number']}"
    if amount <= 0:
        return _escalate(f"No credit is due: {figures}.")
    return {
        "kind": "issue_credit",
        "invoice": invoice["number"],
        "incident": incident["id"],
        "amount_minor": str(amount),
        "currency": invoice["currency"],
        "downtime_minutes": downtime,
        "rationale": f"Incident {incident['id']} is final and lists the account. {figures}.",
    }


def _time(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


def _escalate(why: str) -> dict[str, Any]:
    return {"kind": "escalate", "rationale": why}


def _ask(document: str, why: str) -> dict[str, Any]:
    return {"kind": "ask_for_document", "document": document, "rationale": why}
