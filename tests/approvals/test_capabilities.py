"""What a run was granted: fixed at its start, and absent, over, elsewhere or unknown are a no, each with its words."""

import datetime as dt
from typing import Any

import pytest
from django.db import ProgrammingError, transaction

from agentops.starting import start_workflow
from agentops.workflows.base import Grant
from agentops.workflows.service_credit import ServiceCredit
from approvals import capabilities
from approvals.models import Refusal
from approvals.words import sentence
from runs import clock
from runs.models import Principal, Run
from tests.approvals import world
from tests.approvals.world import TOOL

NOW = dt.datetime(2026, 11, 29, 12, tzinfo=dt.UTC)
FACTS = {"account": "ACC-1", "amount_minor": 500, "currency": "USD"}


def withheld(terms: dict[str, Any], known: dict[str, Any] | None = None, tools: list[str] | None = None) -> Any:
    run = Run(capabilities=[TOOL] if tools is None else tools, terms={TOOL: terms})
    found = capabilities.withheld(run=run, tool=TOOL, variables=FACTS if known is None else known, now=NOW)
    return None if found is None else (found.code, capabilities.sentence(objection=found))


@pytest.mark.parametrize(
    ("terms", "known", "code", "words"),
    [
        ({}, {}, "", ""),
        ({"until": "2026-11-29T12:00:01+00:00"}, {}, "", ""),
        ({"until": "2026-11-29T12:00:00+00:00"}, {}, "grant_over", "until 29 November 2026 at 12:00 UTC"),
        ({"only": {"account": ["ACC-1", "ACC-2"]}}, FACTS, "", ""),
        ({"only": {"account": ["ACC-2"]}}, FACTS, "grant_elsewhere", "only where the account is ACC-2"),
        ({"only": {"account": []}}, FACTS, "grant_elsewhere", "the account"),
        ({"only": {"account": ["ACC-1"]}}, {}, "grant_unknown", "the account is not known"),
        ({"only": {"account": [""]}}, {"account": ""}, "grant_unknown", "the account is not known"),
        ({"only": {"amount_minor": ["500"]}}, FACTS, "grant_unknown", "the amount is not known"),
        ({"when": "currency == 'USD' && amount_minor <= 500"}, FACTS, "", ""),
        ({"when": "currency == 'USD' && amount_minor < 500"}, FACTS, "grant_unmet", "the amount is below $5.00 USD"),
        ({"when": "currency == 'USD' && amount_minor <= 500"}, {}, "grant_unknown", "is not known"),
        ({"when": "no_such == 1"}, FACTS, "grant_unknown", "is not known"),
    ],
)
def test_what_is_withheld(terms: dict[str, Any], known: dict[str, Any], code: str, words: str) -> None:
    found = withheld(terms, known)
    assert (found is None) if not code else (found[0] == code and words in found[1]), found


def test_a_tool_that_was_not_granted_is_withheld_whatever_its_terms() -> None:
    assert withheld({}, tools=[]) == ("not_granted", f"this run was not granted {TOOL}")


def test_fixed_at_the_start_and_told(db: str) -> None:
    desk = world.machine(Principal.Kind.INTEGRATION, "integration:desk")
    run = start_workflow(name="service_credit", data={"ticket": "CS-1"}, initiator=desk).run
    assert set(run.terms) == set(run.capabilities) == set(ServiceCredit.tools)
    assert run.terms[TOOL]["only"] == {"ticket": ["CS-1"]}
    until = dt.datetime.fromisoformat(run.terms[TOOL]["until"])
    assert dt.timedelta(days=29) < until - clock.now() <= dt.timedelta(days=30)
    words = dict(capabilities.in_force(run=run))[TOOL]
    assert words[0] == "only where the ticket is CS-1" and words[1].startswith("until ")
    with pytest.raises(ProgrammingError), transaction.atomic():
        Run.objects.filter(pk=run.pk).update(terms={})


def test_a_condition_that_cannot_be_read_lets_no_run_start(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ServiceCredit, "grants", lambda self, *, data: {TOOL: Grant(when="no_such == 1")})
    desk = world.machine(Principal.Kind.INTEGRATION, "integration:desk")
    with pytest.raises(ValueError, match="no_such"):
        start_workflow(name="service_credit", data={"ticket": "CS-1"}, initiator=desk)
    assert not Run.objects.exists()


def test_nobody_approves_what_the_run_may_not_do_any_more(db: str, owner: Any) -> None:
    maya = world.user("maya")
    asked = world.ask()
    past = (clock.now() - dt.timedelta(seconds=1)).isoformat()
    owner.execute("UPDATE runs_run SET terms = jsonb_build_object(%s::text, jsonb_build_object('until', %s::text))",
                  [TOOL, past])  # fmt: skip
    result = world.cast(asked, maya)
    assert result.code == "grant_over" and "it could not use your approval" in sentence(
        code=result.code, detail=result.detail
    )
    assert Refusal.objects.get().code == "grant_over" and asked.fresh().state == "open"
    owner.execute("UPDATE runs_run SET terms = '{}', capabilities = '[]'")
    assert world.cast(asked, maya).code == "not_granted"
    assert world.cast(asked, maya, choice="reject").code == "rejected"
