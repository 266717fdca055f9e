"""A vote counts only while the policy in force is content with what was asked."""

import datetime as dt
from typing import Any

import pytest

from approvals.evaluation import Verdict, evaluate
from approvals.models import ApprovalRequest, Decision, PolicyVersion, Refusal, Stage, Vote
from approvals.models.request import RequestState
from approvals.requirement import Escalation, enough
from approvals.words import sentence
from runs.models import Run
from tests import published
from tests.approvals import world

pytestmark = pytest.mark.usefixtures("db")


def publish(document: dict[str, Any]) -> PolicyVersion:
    return published.publish(
        slug="service-credits", name="Service credits", tools=[world.TOOL], document=document, note="",
    )  # fmt: skip


def ask_again(request: ApprovalRequest, version: PolicyVersion) -> Verdict:
    return evaluate(document=version.rules, variables={})


def rule(effect: str) -> dict[str, Any]:
    return {"rules": [{"id": "new", "effect": effect, "text": "A new rule", "when": "true"}]}


@pytest.mark.parametrize("choice", ["approve", "reject"])
@pytest.mark.parametrize("change", ["denied", "two people", "another group", "nobody can tell"])
def test_under_a_policy_that_asks_something_else_the_vote_is_refused(change: str, choice: str) -> None:
    anna = world.user("anna")
    world.user("bert")
    world.user("carl", group="finance")
    asked = world.ask()
    documents = {
        "denied": rule("deny"),
        "two people": world.document(quorum=2),
        "another group": world.document(group="finance"),
        "nobody can tell": rule("allow"),
    }
    version = publish(documents[change])
    assert version.pk != asked.version.pk
    result = world.cast(asked, anna, choice, reevaluate=None if change == "nobody can tell" else ask_again)
    assert result.code == "policy_changed" and Refusal.objects.get().code == "policy_changed"
    assert (Vote.objects.count(), Decision.objects.count(), asked.fresh().state) == (0, 0, RequestState.OPEN)
    run = Run.objects.get(pk=asked.run.pk)
    assert run.facts_wanted_at is not None and run.wake_at is not None, "it is looked at again"
    said = sentence(code=result.code, detail=result.detail)
    assert str(version) in said and said != sentence(code="out_of_date")


@pytest.mark.parametrize(
    "document", [rule("allow"), {"rules": [{**world.document()["rules"][0], "text": "Other words"}]}]
)
def test_a_policy_that_asks_no_more_than_this_lets_it_count(document: dict[str, Any]) -> None:
    anna = world.user("anna")
    asked = world.ask()
    assert publish(document).pk != asked.version.pk
    assert world.cast(asked, anna, reevaluate=ask_again).code == "approved"


def escalating() -> dict[str, Any]:
    (first,) = world.document()["rules"]
    return {"rules": [{**first, "ask": {**first["ask"], "escalate": [{"group": "leads", "after_minutes": 10}]}}]}


@pytest.mark.parametrize(("document", "code"), [(world.document(), "policy_changed"), (escalating(), "approved")])
def test_whom_an_escalation_asked_counts_only_while_the_policy_escalates(document: dict[str, Any], code: str) -> None:
    world.user("anna")
    lea = world.user("lea", group="leads")
    asked = world.ask(escalations=(Escalation(after=dt.timedelta(minutes=10), group="leads"),))
    Stage.objects.filter(request=asked.request).update(also=["leads"])
    document["rules"][0]["text"] = "Other words"
    assert publish(document).pk != asked.version.pk
    assert world.cast(asked, lea, reevaluate=ask_again).code == code


def test_a_yes_of_an_escalation_is_not_enough_for_a_policy_without_it() -> None:
    world.user("anna")
    lea = world.user("lea", group="leads")
    asked = world.ask(escalations=(Escalation(after=dt.timedelta(minutes=10), group="leads"),))
    Stage.objects.filter(request=asked.request).update(also=["leads"])
    assert world.cast(asked, lea).code == "approved"
    with world.transaction.atomic(durable=True):
        run = Run.objects.select_for_update().get(pk=asked.run.pk)
        held = world.requests.lock_for_sending(run=run, proposal=asked.proposal)
    assert held is not None and [one.also for one in held.answered] == [("leads",)]
    need = world.verdict().need
    assert need is not None and not enough(asked=held.answered, in_order=False, wanted=need)
