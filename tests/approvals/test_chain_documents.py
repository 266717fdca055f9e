"""Stages in a policy's document: what may be published, what it asks of people, and what it is in words."""

from typing import Any

import pytest

from approvals import policy_checks, rule_diff
from approvals.advice import advise
from approvals.evaluation import evaluate
from approvals.models import Remit
from approvals.policy_text import asks
from approvals.requirement import Person, StageNeed
from approvals.rules import PolicyDocument, validate
from tests.approvals import world

FINANCE = {"name": "Finance", "groups": ["finance", "treasury"], "quorum": 2, "reject_at": 2}
LEGAL = {"name": "Legal", "groups": ["legal"], "quorum": 1, "person": {"within_limit": True, "team": "emea"}}
TIMES = {"respond_within_minutes": 240, "valid_for_minutes": 60}


def ask(**fields: Any) -> dict[str, Any]:
    return {"order": "sequential", "stages": [FINANCE, LEGAL], **TIMES, **fields}


def document(*asked: dict[str, Any]) -> dict[str, Any]:
    return {
        "rules": [
            {"id": f"ask-{number}", "effect": "ask", "text": "People decide", "when": "true", "ask": one}
            for number, one in enumerate(asked, start=1)
        ]
    }


def problems(**fields: Any) -> list[str]:
    return [str(one) for one in validate(document=document(ask(**fields)))]


def test_one_group_by_itself_is_one_stage_and_its_document_is_stored_as_ever() -> None:
    old = world.document(quorum=2)
    verdict = evaluate(document=old, variables={})
    assert verdict.need is not None
    assert verdict.need.chain == (StageNeed(name="manager", groups=("manager",), quorum=2),)
    assert PolicyDocument.model_validate(old).stored(policy="p")["rules"] == old["rules"]


def test_what_a_chain_asks() -> None:
    full = ask(clock="working", remind_after_minutes=60, escalate=[{"after_minutes": 90, "group": "heads"}])
    assert validate(document=document(full | {"when_late": "reject"})) == []
    need = evaluate(document=document(full | {"when_late": "reject"}), variables={}).need
    assert need is not None
    assert [stage.name for stage in need.chain] == ["Finance", "Legal"]
    assert need.chain[1].person == Person(within_limit=True, team="emea")
    assert (need.quorum, need.in_order, need.clock, need.when_late) == (3, True, "working", "reject")
    assert [(one.group, one.after.total_seconds()) for one in need.escalations] == [("heads", 5400)]


def test_two_rules_add_up_stage_by_stage_and_all_stages_of_both_are_asked() -> None:
    stricter = ask(stages=[FINANCE | {"quorum": 1, "reject_at": 1}, LEGAL | {"quorum": 2}])
    need = evaluate(document=document(ask(), stricter), variables={}).need
    assert need is not None
    assert [(stage.quorum, stage.reject_at) for stage in need.chain] == [(2, 1), (2, 1)]
    for other in (ask(order="parallel"), ask(stages=[LEGAL, FINANCE]), ask(stages=[FINANCE])):
        need = evaluate(document=document(ask(), other), variables={}).need
        assert need is not None and need.in_order
        assert [stage.name for stage in need.chain] == ["Finance", "Legal"]
    heads = {"name": "Heads", "groups": ["heads"], "quorum": 1}
    more = document(ask(), ask(stages=[LEGAL, heads]))
    need = evaluate(document=more, variables={}).need
    assert need is not None and [stage.name for stage in need.chain] == ["Finance", "Legal", "Heads"]
    (warning,) = advise(document=more).warnings
    assert "finance or treasury, then legal where ask-2 asks legal, then heads" in str(warning)
    assert "then all of them have to approve" in str(warning)
    assert advise(document=document(ask(), ask(stages=[LEGAL, FINANCE]))).warnings == []


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"order": None}, "ask-1, ask.order: is missing; write sequential or parallel"),
        ({"group": "finance"}, "ask-1, ask.group: is said by each stage; remove it"),
        ({"stages": None, "order": None}, "ask-1, ask.group: is missing; add it"),
        ({"stages": [FINANCE, FINANCE]}, "ask-1, ask.stages: have a name twice; give each its own"),
        ({"remind_after_minutes": 240}, "ask-1, ask.remind_after_minutes: is not before"),
        ({"escalate": [{"after_minutes": 300, "group": "heads"}]}, "ask-1, ask.escalate: has times that"),
        ({"when_late": "approve"}, "ask-1, ask.when_late: Input should be 'expire' or 'reject'"),
        ({"stages": [FINANCE | {"groups": []}]}, "ask-1, ask.stages.1.groups: is empty; name at least one"),
        ({"stages": [FINANCE | {"minimum": 1}]}, "ask-1, ask.stages.1.minimum: is not a field of policies; remove it"),
    ],
)
def test_what_may_not_be_published(fields: dict[str, Any], told: str) -> None:
    assert problems(**fields)[0].startswith(told)


def test_a_missing_or_empty_group_means_nobody(db: str) -> None:
    def told(**fields: Any) -> list[str]:
        parsed = PolicyDocument.model_validate(document(ask(**fields)))
        return [str(one) for one in policy_checks.group_problems(document=parsed)]

    stage = {"name": "Finance", "groups": ["finance"], "quorum": 1}
    other = {"name": "Legal", "groups": ["finance"], "quorum": 1}
    assert told(stages=[stage])[0].startswith("ask-1, ask.stages.1: names finance, which is not a group")
    world.voters("finance")
    assert "names finance, in which nobody may vote" in told(stages=[stage])[0]
    anna = world.user("anna", group="finance")
    assert told(stages=[stage]) == []
    (few,) = told(stages=[stage, other])
    assert "ask more different people than there are" in few
    (unmet,) = told(stages=[stage | {"person": {"team": "emea"}}])
    assert "in which nobody who may vote meets its conditions" in unmet
    Remit.objects.create(user=anna, team="emea")
    assert told(stages=[stage | {"person": {"team": "emea"}}]) == []
    (nobody,) = told(stages=[stage], escalate=[{"after_minutes": 60, "group": "heads"}])
    assert nobody.startswith("ask-1, ask.escalate: names heads, in which nobody may vote")


def test_in_words_and_what_differs() -> None:
    said = asks(ask=ask(clock="working", escalate=[{"after_minutes": 90, "group": "heads"}], when_late="reject"))
    assert said == (
        "asks Finance: 2 people of finance or treasury (2 who say no end it), then Legal: one person of legal, each"
        " within their own limit, of the team emea; to be answered within 4 h of working time, usable for 1 h"
        " after that; after 1 h 30 min asks heads as well; rejects when nobody answers in time"
    )
    (change,) = rule_diff.changes(old=document(ask()), new=document(ask(stages=[FINANCE | {"quorum": 1}, LEGAL])))
    labels = {field.label: (field.old, field.new) for field in change.fields}
    assert set(labels) == {"Who is asked", "Stage 1"}
    assert labels["Stage 1"][1].startswith("Finance: one person of finance or treasury")
