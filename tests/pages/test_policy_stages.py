"""Chains of stages and times in the editor of a policy, as its form is posted."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from approvals.models import PolicyDraft
from tests.pages import world
from tests.pages.test_policy_pages import AT, begin, editor, form_of, signed_in

pytestmark = pytest.mark.usefixtures("db")
RULE = "rule-2"  # the one that asks


@pytest.fixture
def tomas(db: str) -> Client:
    for name in ("finance", "legal", "heads"):
        Group.objects.create(name=name)
    world.person("Maya Lindgren", "manager")
    assert world.policy().number == 1
    return signed_in(world.person("Tomas Reyes", "admin"))


def act(browser: Client, fields: dict[str, Any], op: str) -> dict[str, Any]:
    return form_of(browser.post(f"{AT}/draft/", {**fields, "op": op}).text, f"{AT}/draft/")


def test_a_chain_is_written_in_fields_alone(tomas: Client) -> None:
    fields = act(tomas, begin(tomas), "add_stage:2")
    assert fields[f"{RULE}-stage-0-groups"] == ["manager"] and f"{RULE}-group" not in fields
    fields = act(tomas, fields | {f"{RULE}-stage-0-name": "Typed, not saved"}, "add_step:2")
    assert fields[f"{RULE}-stage-0-name"] == "Typed, not saved"
    fields |= {
        f"{RULE}-stage-0-name": "Finance", f"{RULE}-stage-0-groups": ["finance", "heads"],
        f"{RULE}-stage-1-name": "Legal", f"{RULE}-stage-1-groups": ["legal"], f"{RULE}-stage-1-reject_at": "1",
        f"{RULE}-stage-1-within": "yes", f"{RULE}-stage-1-team": "emea", f"{RULE}-clock": "working",
        f"{RULE}-remind": "60", f"{RULE}-late": "reject", f"{RULE}-confirm": "retype",
        f"{RULE}-step-0-after": "120", f"{RULE}-step-0-group": "heads", f"{RULE}-order": "parallel",
    }  # fmt: skip
    assert tomas.post(f"{AT}/draft/", fields).status_code == 302
    assert PolicyDraft.objects.get().revisions.get(number=2).document["rules"][2]["ask"] == {
        "order": "parallel",
        "stages": [
            {"name": "Finance", "groups": ["finance", "heads"], "quorum": 1},
            {
                "name": "Legal", "groups": ["legal"], "quorum": 1, "reject_at": 1,
                "person": {"within_limit": True, "team": "emea"},
            },
        ],
        "respond_within_minutes": 240, "valid_for_minutes": 60, "confirm": "retype", "clock": "working",
        "remind_after_minutes": 60, "escalate": [{"after_minutes": 120, "group": "heads"}], "when_late": "reject",
    }  # fmt: skip
    text = editor(tomas, "text")
    assert act(tomas, text, "as_form") == editor(tomas), "the text says what the fields say"


def test_each_field_says_what_is_wrong_with_it_and_keeps_what_was_typed(tomas: Client) -> None:
    fields = act(tomas, act(tomas, begin(tomas), "add_stage:2"), "add_step:2")
    wrong = {
        "stage-0-name": "", "stage-0-quorum": "many", "stage-1-groups": [], "stage-1-team": "x" * 70,
        "respond": "soon", "remind": "2", "step-0-after": "", "step-0-group": "",
    }  # fmt: skip
    answer = tomas.post(f"{AT}/draft/", fields | {f"{RULE}-{name}": value for name, value in wrong.items()})
    assert answer.status_code == 422 and PolicyDraft.objects.get().revision == 1
    for name in wrong:
        assert f'id="id_{RULE}-{name}_error"' in answer.text, name
        assert f'href="#id_{RULE}-{name}"' in answer.text, name
    kept = form_of(answer.text, f"{AT}/draft/")
    typed = {name: value for name, value in wrong.items() if name != "stage-1-groups"}
    assert {name: kept[f"{RULE}-{name}"] for name in typed} == typed
    said = re.search(rf'id="id_{RULE}-stage-0-quorum_error">(.*?)</div>', answer.text)
    assert said is not None and "is not a whole number; write digits alone" in said[1]
    ids = re.findall(r'\bid="([^"]+)"', answer.text)
    assert len(ids) == len(set(ids))


def test_of_many_rules_only_those_are_open_where_there_is_something_to_do(tomas: Client) -> None:
    fields = begin(tomas)
    for _ in range(2):
        fields = act(tomas, fields, "add")
    fields |= {"rule-3-id": "third", "rule-4-id": "fourth"}

    def are_open(**more: str) -> list[bool]:
        page = tomas.post(f"{AT}/draft/", {**fields, **more})
        assert page.text.count('<details class="fold" open><summary>') == sum(
            one.is_open for one in page.context["rules"]
        )
        return [one.is_open for one in page.context["rules"]]

    assert are_open(op="up:4") == [False, False, False, True, False]
    assert are_open(op="add_stage:2") == [False, False, True, False, False]
    assert are_open() == [False, False, False, True, True], "they say nothing yet, and cannot be saved"


def test_the_cursor_goes_to_what_was_added(tomas: Client) -> None:
    fields = begin(tomas)

    def focused(op: str) -> str:
        found = re.search(
            r"<(?:input|button)[^>]*autofocus[^>]*>", tomas.post(f"{AT}/draft/", {**fields, "op": op}).text
        )
        assert found is not None, op
        return re.search(r'id="([^"]+)"', found[0])[1]  # type: ignore[index]

    assert focused("add") == "id_rule-3-id" and focused("remove:0") == "add-rule"
    assert focused("add_stage:2") == f"id_{RULE}-stage-1-name"
    fields = act(tomas, fields, "add_stage:2")
    assert focused("remove_stage:2.1") == "add-stage-2"
