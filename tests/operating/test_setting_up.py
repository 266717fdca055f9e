"""Making a real installation usable: groups after migrating, policies from files, bad files refused by name."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command

from agentops.permissions import GROUPS, ensure_groups
from approvals.models import PolicyVersion

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
