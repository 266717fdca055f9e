"""The default provider: it answers what it is offered, and escalates rather than repeat itself."""

from typing import Any

import pytest

from agentops.workflows.service_credit import AskForDocument, Escalate, IssueCredit
from runs.providers.pydantic_ai_provider import PydanticAiProvider
from runs.providers.registry import UnknownProvider, provider
from runs.providers.rules import RulesProvider
from runs.providers.scripted import BadScript

CHOICES = (IssueCredit, AskForDocument, Escalate)


def view(**changes: Any) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "refusals": [],
        "ticket": {
            "subject": {"untrusted_text": "Outage"},
            "body": {"untrusted_text": "We want compensation."},
            "messages": [],
        },
        "account": {"id": "ACC-1", "standing": "good"},
        "sla": {"tiers": [{"below": "99.9", "percent": "10"}]},
        "incident": {
            "id": "INC-1",
            "final": True,
            "affected": ["ACC-1"],
            "started_at": "2026-10-05T00:00:00Z",
            "ended_at": "2026-10-05T02:00:00Z",
        },
        "invoice": {
            "number": "INV-1",
            "currency": "USD",
            "total_minor": "1005",
            "period_start": "2026-10-01T00:00:00Z",
            "period_end": "2026-11-01T00:00:00Z",
        },
    }
    return {name: value for name, value in {**shown, **changes}.items() if value is not None}


def kind(**changes: Any) -> str:
    turn = RulesProvider().choose(view=view(**changes), choices=CHOICES, instructions="")
    assert turn.answer is not None
    shapes = {choice.model_fields["kind"].default: choice for choice in CHOICES}
    shapes[turn.answer["kind"]].model_validate(turn.answer)
    return str(turn.answer["kind"])


def test_it_works_the_credit_out_by_itself() -> None:
    turn = RulesProvider().choose(view=view(), choices=CHOICES, instructions="")
    assert turn.answer is not None
    assert (turn.answer["amount_minor"], turn.answer["downtime_minutes"]) == ("101", 120)


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ({}, "issue_credit"),
        ({"sla": None}, "ask_for_document"),
        ({"incident": None}, "ask_for_document"),
        ({"invoice": None}, "ask_for_document"),
        ({"incident": {**view()["incident"], "final": False, "ended_at": ""}}, "ask_for_document"),
        ({"incident": {**view()["incident"], "affected": []}}, "escalate"),
        ({"incident": {**view()["incident"], "ended_at": "2026-10-05T00:10:00Z"}}, "escalate"),
        ({"account": {"id": "ACC-1", "standing": "closed"}}, "escalate"),
        ({"invoice": {**view()["invoice"], "total_minor": "0"}}, "escalate"),
        ({"refusals": ["amount differs"]}, "escalate"),
        ({"ticket": {"subject": {"untrusted_text": "A new logo"}, "messages": []}}, "escalate"),
        ({"credits": {"credits": [{"reference": "CN-1", "incident": "INC-1", "status": "issued"}]}}, "escalate"),
        ({"credits": {"credits": [{"reference": "CN-1", "incident": "INC-1", "status": "void"}]}}, "issue_credit"),
        ({"credits": {"credits": [{"reference": "CN-1", "incident": "INC-2", "status": "issued"}]}}, "issue_credit"),
    ],
)
def test_it_reads_the_view_like_a_decent_agent(changes: dict[str, Any], answer: str) -> None:
    assert kind(**changes) == answer


def test_it_offers_nothing_that_was_not_asked_for() -> None:
    turn = RulesProvider().choose(view=view(), choices=(Escalate,), instructions="")
    assert turn.answer is None
    assert "issue_credit" in turn.failure


def test_the_setting_chooses_the_provider(settings: Any) -> None:
    assert isinstance(provider(), RulesProvider)
    for name in ("openai:gpt-5", "anthropic:claude-sonnet-4-5", 'test:{"kind": "escalate", "rationale": "x"}'):
        settings.AGENT_MODEL = name
        assert isinstance(provider(), PydanticAiProvider)
    for name in ("", "openai", "openai:", ":x", "Rules"):
        settings.AGENT_MODEL = name
        with pytest.raises(UnknownProvider, match="AGENT_MODEL"):
            provider()
    for name in ("test:escalate", "test:{}", "test:[1]", 'test:{"kind": 1}'):
        settings.AGENT_MODEL = name
        with pytest.raises(BadScript, match="write, for example"):
            provider()
