"""The form of a rule says what its text says: stages, times, escalations, whatever they hold."""

from typing import Any

import pytest

from approvals.forms import Typed, from_document
from approvals.rules import validate

TIMES = {"respond_within_minutes": 240, "valid_for_minutes": 60}
FINANCE = {"name": "Finance", "groups": ["treasury", "finance"], "quorum": 2, "reject_at": 2}
LEGAL = {"name": "Legal", "groups": ["legal"], "quorum": 1, "person": {"within_limit": True, "team": "emea"}}
FULL = {
    "order": "parallel", "stages": [FINANCE, LEGAL], **TIMES, "clock": "working", "remind_after_minutes": 60,
    "escalate": [{"after_minutes": 90, "group": "heads"}, {"after_minutes": 120, "group": "board"}],
    "when_late": "reject", "confirm": "retype",
}  # fmt: skip
PLAIN = Typed(mode="text", revision=1, note="", tools=[])


def document(ask: dict[str, Any]) -> dict[str, Any]:
    return {"rules": [{"id": "r", "effect": "ask", "text": "People decide", "when": "true", "ask": ask}], "totals": []}


@pytest.mark.parametrize(
    "ask",
    [
        {"group": "manager", "quorum": 1, **TIMES},
        FULL,
        {"stages": [LEGAL], **TIMES},
        # what is usual anyway, said all the same, stays said
        {"group": "manager", "quorum": 1, **TIMES, "clock": "elapsed", "when_late": "expire", "standing": False},
        {"stages": [LEGAL | {"reject_at": 1, "person": {"within_limit": False, "region": "eu"}}], **TIMES},
    ],
)
def test_the_form_and_the_text_agree(ask: dict[str, Any]) -> None:
    assert validate(document=document(ask)) == []
    shown = from_document(document=document(ask), like=PLAIN)
    assert shown is not None and shown.document() == (document(ask), [])


def test_what_the_form_has_no_field_for_stays_text() -> None:
    for odd in ({**FULL, "colour": "red"}, {**FULL, "stages": [LEGAL | {"person": {}}]}, {**FULL, "escalate": [{}]}):
        assert from_document(document=document(odd), like=PLAIN) is None


def test_stages_come_from_a_group_move_and_end_as_a_group() -> None:
    shown = from_document(document=document({"group": "finance", "quorum": 2, **TIMES}), like=PLAIN)
    assert shown is not None

    def stages(typed: Typed) -> Any:
        return typed.document()[0]["rules"][0]["ask"].get("stages")

    two = shown.changed(op="add_stage:0")
    assert stages(two)[0] == {"name": "Finance", "groups": ["finance"], "quorum": 2}
    assert two.document()[0]["rules"][0]["ask"]["order"] == "sequential"
    assert [one["name"] for one in stages(two.changed(op="up_stage:0.1"))] == ["", "Finance"]
    assert [one["name"] for one in stages(two.changed(op="down_stage:0.0"))] == ["", "Finance"]
    one = two.changed(op="remove_stage:0.1")
    assert one.changed(op="remove_stage:0.0").document() == shown.document()
    most = two
    for _ in range(9):
        most = most.changed(op="add_stage:0").changed(op="add_step:0")
    assert len(stages(most)) == 6 and len(most.document()[0]["rules"][0]["ask"]["escalate"]) == 5
    for nonsense in (
        "up_stage:0.0",
        "down_stage:0.9",
        "remove_stage:7.0",
        "remove_step:0.",
        "what_stage:0.0",
        "_stage:",
    ):
        assert two.changed(op=nonsense).document() == two.document()
