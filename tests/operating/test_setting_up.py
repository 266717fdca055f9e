"""Making a real installation usable: groups after migrating, policies from files, bad files refused by name."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command

from agentops.permissions import GROUPS, ensure_groups
from agentops.workflows.registry import workflow
from approvals.evaluation import evaluate
from approvals.models import PolicyVersion
from approvals.rules import validate
from approvals.services import policies

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "policy.json"


def test_a_migrated_database_has_the_groups_and_their_rights(db: str) -> None:
    assert set(Group.objects.values_list("name", flat=True)) >= set(GROUPS)
    rights = Group.objects.get(name="manager").permissions.values_list("codename", flat=True)
    assert "vote" in rights and "settle_case" not in rights
    before = Group.objects.count()
    ensure_groups()
    assert Group.objects.count() == before


def test_the_example_policy_is_published_once_somebody_can_vote(db: str) -> None:
    with pytest.raises(CommandError, match="manager"):
        call_command("publish_policy", EXAMPLE)
    assert not PolicyVersion.objects.exists()
    User.objects.create_user("anna").groups.add(Group.objects.get(name="manager"))
    call_command("publish_policy", EXAMPLE)
    call_command("publish_policy", EXAMPLE)
    assert PolicyVersion.objects.count() == 1


def test_a_further_version_takes_two_people_and_no_command(db: str, tmp_path: Path) -> None:
    User.objects.create_user("anna").groups.add(Group.objects.get(name="manager"))
    call_command("publish_policy", EXAMPLE)
    other = json.loads(EXAMPLE.read_text())
    other["document"]["rules"][0] = {"id": "all", "effect": "allow", "text": "All of it", "when": "true"}
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(other))
    with pytest.raises(CommandError, match="is 1 already; every further version takes two people"):
        call_command("publish_policy", path)
    assert PolicyVersion.objects.get().rules["rules"][0]["effect"] == "ask"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tools": "helpdesk.add_comment"}, "'tools'"),
        ({"tools": [1]}, "'tools'"),
        ({"extra": 1}, "extra"),
        ({"document": None}, "'document'"),
        ({"document": {"rules": [{"id": "x"}]}}, "x"),
        ({"name": 5}, "'name'"),
    ],
)
def test_a_bad_policy_file_is_refused_by_field(db: str, tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = tmp_path / "policy.json"
    path.write_text(json.dumps({**json.loads(EXAMPLE.read_text()), **change}))
    with pytest.raises(CommandError, match=said):
        call_command("publish_policy", path)
    assert not PolicyVersion.objects.exists()


def test_the_policies_for_service_credits_are_published_as_they_are(db: str) -> None:
    for name in ("anna", "bert"):
        User.objects.create_user(name).groups.add(Group.objects.get(name="manager"))
    for file in ("service-credits.json", "ticket-work.json"):
        call_command("publish_policy", EXAMPLE.parent / file)
    assert PolicyVersion.objects.count() == 2
    assert all(policies.governing(tool=tool) is not None for tool in workflow("service_credit").tools)


@pytest.mark.parametrize(
    ("amount_minor", "changed", "said", "people"),
    [
        (50_000, {}, "allow", 0),
        (50_001, {}, "ask", 1),
        (500_001, {}, "ask", 2),
        (2_000_001, {}, "denied_by_rule", 0),
        (50_000, {"incident_final": False}, "denied_by_rule", 0),
        (50_000, {"account_standing": "overdue"}, "denied_by_rule", 0),
        (50_000, {"currency": "EUR"}, "no_rule", 0),
    ],
)
def test_the_example_for_service_credits_decides_as_its_note_says(
    amount_minor: int, changed: dict[str, Any], said: str, people: int
) -> None:
    found = json.loads((EXAMPLE.parent / "service-credits.json").read_text())["document"]
    assert validate(document=found) == []
    known = {"currency": "USD", "account": "ACC-1", "month": "2026-11", "account_standing": "good"}
    known |= {"incident_final": True, "amount_minor": amount_minor}
    verdict = evaluate(document=found, variables=known | changed)
    assert (verdict.code or verdict.effect, verdict.need.quorum if verdict.need else 0) == (said, people)
