"""The facts of a service credit, as figures: what they must be before any amount is worked out of them. Pure."""

import datetime as dt
from collections.abc import Mapping
from typing import Any

from agentops.workflows.base import Facts
from runs.money import Money, MoneyError
from runs.sla import IncidentNotFinal, Period, SlaError, Tier, Workings, work_out

NEEDED = ("account", "sla", "incident", "invoice")
NAMES = {
    "account": "account",
    "sla": "SLA schedule of the plan",
    "incident": "incident report",
    "invoice": "invoice for the incident's month",
}


class FactsUnusable(SlaError):
    code = "facts_unusable"


def missing(facts: Facts) -> list[str]:
    """The kinds that are needed and were not found."""
    return [kind for kind in NEEDED if kind not in facts]


def _moment(text: Any, *, what: str) -> dt.datetime:
    try:
        at = dt.datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise FactsUnusable(f"{what} is not a time.") from None
    if at.tzinfo is None:
        raise FactsUnusable(f"{what} has no time zone.")
    return at


def started(incident: Mapping[str, Any]) -> dt.datetime:
    """When the incident of this content began. Raises FactsUnusable."""
    return _moment(incident["started_at"], what="The incident's start")


def outage(facts: Facts) -> Period:
    """The incident from start to end. Raises FactsUnusable."""
    incident = facts["incident"].content
    start = started(incident)
    end = _moment(incident["ended_at"], what="The incident's end")
    if end < start:
        raise FactsUnusable("The incident ends before it starts.")
    return Period(start=start, end=end)


def total(facts: Facts) -> Money:
    """The invoice's total. Raises FactsUnusable."""
    invoice = facts["invoice"].content
    try:
        return Money(int(invoice["total_minor"]), invoice["currency"])
    except MoneyError as error:
        raise FactsUnusable(f"The invoice's total {error}.") from error


def workings(facts: Facts) -> Workings:
    """The credit that the facts give; all of NEEDED must be there. Raises SlaError with the reason there is none."""
    incident, invoice = facts["incident"].content, facts["invoice"].content
    if incident["final"] is not True:
        raise IncidentNotFinal(f"The report of incident {facts['incident'].locator} is not final.")
    period = Period(
        start=_moment(invoice["period_start"], what="The invoice's first day"),
        end=_moment(invoice["period_end"], what="The invoice's last day"),
    )
    tiers = [Tier(below=tier["below"], percent=tier["percent"]) for tier in facts["sla"].content["tiers"]]
    return work_out(outage=outage(facts), final=True, period=period, tiers=tiers, total=total(facts))
