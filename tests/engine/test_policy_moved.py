"""The policy changes while people are asked: the answer is refused, and the question is put again as it stands now."""

from typing import Any

from agentops import policy_now
from approvals.models import ApprovalRequest, Decision, Policy
from tests import published
from tests.engine.conftest import World


def publish_with_quorum(quorum: int) -> None:
    found = Policy.objects.select_related("active").get(slug="service-credits")
    assert found.active is not None
    document: dict[str, Any] = dict(found.active.rules)
    document["rules"] = [
        {**rule, "ask": {**rule["ask"], "quorum": quorum}} if rule.get("ask") else rule for rule in document["rules"]
    ]
    tools = list(found.tools.values_list("tool", flat=True))
    published.publish(slug=found.slug, name=found.name, tools=tools, document=document, note="")


def test_a_vote_under_a_changed_policy_leads_to_a_new_question(world: World) -> None:
    run = world.work(world.start())
    first = world.request(run)
    publish_with_quorum(first.quorum + 1)
    again = {"reevaluate": policy_now.verdict}
    assert world.vote(run, **again).code == "policy_changed"
    world.work(run, until=lambda one: world.request(one).pk != first.pk and one.state == "awaiting_approval")
    second = world.request(run)
    assert ApprovalRequest.objects.get(pk=first.pk).state == "superseded"
    assert (second.supersedes_id, second.quorum) == (first.pk, first.quorum + 1)
    assert any(one["key"] == "policy" for one in second.changes), second.changes
    assert world.vote(run, **again).code == "voted" and not Decision.objects.exists()
    assert world.credits() == []


def test_a_policy_that_asks_the_same_changes_nothing(world: World) -> None:
    run = world.work(world.start())
    found = Policy.objects.select_related("active").get(slug="service-credits")
    assert found.active is not None
    rules = [{**rule, "text": f"{rule['text']} (worded anew)"} for rule in found.active.rules["rules"]]
    tools = list(found.tools.values_list("tool", flat=True))
    version = published.publish(
        slug=found.slug, name=found.name, tools=tools, document={**found.active.rules, "rules": rules}, note="",
    )  # fmt: skip
    assert version.pk != world.request(run).policy_version_id
    result = world.vote(run, reevaluate=policy_now.verdict)
    assert result.code == "approved"
