"""Running a service credit's pure parts against the stand-in: gather, ask, judge."""

from typing import Any

from pydantic import TypeAdapter

from agentops.workflows.base import Complete, Draft, Facts, HandOver, Refused
from agentops.workflows.registry import workflow
from agentops.workflows.service_credit import ServiceCredit
from runs.providers.base import Turn
from runs.providers.rules import RulesProvider

CREDIT = workflow("service_credit")
assert isinstance(CREDIT, ServiceCredit)


def gathered(parts: dict[str, Any]) -> Facts:
    """What the workflow reads for the ticket, by kind."""
    return {fact.kind: fact for fact in CREDIT.gather(data=data_of(parts))}


def data_of(parts: dict[str, Any]) -> dict[str, Any]:
    return {"ticket": parts["ticket"]["id"]}


def asked(parts: dict[str, Any], facts: Facts) -> Turn:
    """The default provider's answer."""
    view = CREDIT.view(data=data_of(parts), facts=facts, refusals=[])
    return RulesProvider().choose(view=view, choices=CREDIT.choices, instructions="")


def judged(parts: dict[str, Any], facts: Facts, answer: dict[str, Any]) -> Draft | Refused | HandOver | Complete:
    """What becomes of a raw answer whose shape is right. Raises ValidationError for one whose shape is wrong."""
    shapes: dict[str, TypeAdapter[Any]] = {
        choice.model_fields["kind"].default: TypeAdapter(choice) for choice in CREDIT.choices
    }
    choice = shapes[answer["kind"]].validate_python(answer)
    return CREDIT.judge(choice=choice, data=data_of(parts), facts=facts)


def good_answer(parts: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The right proposal for an unchanged customer of `tests.outside`."""
    return {
        "kind": "issue_credit",
        "invoice": parts["invoice"]["number"],
        "incident": parts["incident"]["id"],
        "amount_minor": "120000",
        "currency": "USD",
        "downtime_minutes": 214,
        "rationale": "The SLA says so.",
        **changes,
    }
