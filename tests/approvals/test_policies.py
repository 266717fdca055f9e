"""Publishing: what the database has to say about a document, versions, and which one governs a tool."""

import threading
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection, connections, transaction

from approvals.models import Policy, PolicyTool, PolicyVersion
from approvals.seed_policies import SEEDS
from approvals.services import policies
from approvals.services.policies import PolicyInvalid
from runs import record
from runs.models import Event
from runs.services import principals
from tests import published
from tests.approvals import world

pytestmark = pytest.mark.usefixtures("db")


def given(**changes: Any) -> dict[str, Any]:
    standard = {
        "slug": "service-credits",
        "name": "Service credits",
        "tools": [world.TOOL],
        "document": world.document(),
        "note": "first",
    }
    return {**standard, **changes}


def publish(**changes: Any) -> PolicyVersion:
    """The first version by the system, every further one by two people."""
    return published.publish(**given(**changes))


def problems(**changes: Any) -> list[tuple[str, str]]:
    """What is wrong; and nothing at all was written."""
    before = (Policy.objects.count(), PolicyVersion.objects.count(), PolicyTool.objects.count(), Event.objects.count())
    with pytest.raises(PolicyInvalid) as caught:
        policies.publish(**given(**changes), publisher=principals.system())
    after = (Policy.objects.count(), PolicyVersion.objects.count(), PolicyTool.objects.count(), Event.objects.count())
    assert before == after
    assert all(str(error) in str(caught.value) for error in caught.value.errors)
    return [(error.where, error.field) for error in caught.value.errors]


def test_a_version_is_written_once_and_recorded() -> None:
    world.user("anna")
    first = publish()
    assert (first.number, first.policy.active_id, first.rules["policy"]) == (1, first.pk, "service-credits")
    assert publish(note="again, in other words") == first
    second = publish(
        document=world.document(quorum=1) | {"totals": [TOTAL]}, tools=[world.TOOL, "helpdesk.draft_reply"]
    )
    assert (second.number, policies.governing(tool="helpdesk.draft_reply")) == (2, second)
    back = publish(tools=[world.TOOL, "helpdesk.draft_reply"])
    assert (back.number, back.digest) == (3, first.digest)
    recorded = Event.objects.filter(stream="system:policies", kind="policy.published").order_by("seq")
    assert [event.data["number"] for event in recorded] == [1, 2, 3]
    assert record.verify(stream="system:policies") is None


TOTAL = {"id": "t", "text": "Total", "key": ["account", "currency"], "amount": "amount_minor", "limits": {"USD": "5"}}


def test_a_group_has_to_exist_and_to_be_able_to_answer() -> None:
    assert problems() == [("ask", "ask.group")]
    group = Group.objects.get_or_create(name="manager")[0]
    group.permissions.clear()  # members of it may not vote
    world.user("anna", group="").groups.add(group)
    assert problems() == [("ask", "ask.group")]
    world.user("bert", group="other").groups.add(group)
    assert problems(document=world.document(quorum=2)) == [("ask", "ask.group")]
    world.user("cleo", group="other", is_active=False).groups.add(group)
    assert problems(document=world.document(quorum=2)) == [("ask", "ask.group")]
    world.user("dora", group="other").groups.add(group)
    assert publish(document=world.document(quorum=2)).number == 1


def test_a_condition_names_only_tools_of_the_policy() -> None:
    world.user("anna")
    rule = {"id": "r", "effect": "allow", "text": "t", "when": "tool in ['billing.create_credit', 'billing.refundd']"}
    assert problems(document={"rules": [rule]}) == [("r", "when")]


def test_a_tool_belongs_to_one_policy_for_good() -> None:
    world.user("anna")
    publish()
    assert problems(slug="other", name="Other") == [("policy", "tools")]
    for slug, tools in (("other", []), ("other", ["x" * 81])):
        assert problems(slug=slug, name="Other", tools=tools) == [("policy", "tools")]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"slug": "Not A Slug"}, ("policy", "slug")),
        ({"slug": "x" * 81}, ("policy", "slug")),
        ({"name": " "}, ("policy", "name")),
        ({"name": "two\nlines"}, ("policy", "name")),
        ({"note": "nul \x00"}, ("policy", "note")),
        ({"document": {**world.document(), "policy": "another"}}, ("policy", "policy")),
        ({"document": {"rules": []}}, ("policy", "rules")),
    ],
)
def test_bad_input_is_named(changes: dict[str, Any], expected: tuple[str, str]) -> None:
    world.user("anna")
    assert problems(**changes) == [expected]


def test_the_policies_we_start_with() -> None:
    world.user("anna")
    for seed in SEEDS:
        version = publish(
            slug=seed.slug, name=seed.name, tools=list(seed.tools), document=seed.document, note=seed.note
        )
        assert version.number == 1
        assert all(policies.governing(tool=tool) == version for tool in seed.tools)


def test_a_tool_without_a_policy_is_governed_by_nothing() -> None:
    assert policies.governing(tool="cloud.destroy") is None
    with transaction.atomic():
        assert policies.governing(tool="cloud.destroy", lock=True) is None


def test_whoever_reads_under_lock_makes_the_publisher_wait_and_never_sees_half() -> None:
    """A sender holds the policy; publishing waits for it, and the next sender sees the new version."""
    world.user("anna")
    first = publish()
    changed = threading.Event()

    def change() -> None:
        publish(document=world.document(quorum=1) | {"totals": [TOTAL]})
        changed.set()
        connections.close_all()

    other = threading.Thread(target=change)
    with transaction.atomic():
        assert policies.governing(tool=world.TOOL, lock=True) == first
        other.start()
        assert world.somebody_waits()
        assert not changed.is_set()
        assert policies.governing(tool=world.TOOL) == first
    other.join(timeout=120)
    assert changed.is_set()
    with transaction.atomic():
        held = policies.governing(tool=world.TOOL, lock=True)
    assert held is not None
    assert held.number == 2
    assert not connection.in_atomic_block


def test_two_first_versions_at_once_and_one_of_them_counts() -> None:
    world.user("anna")
    first = given(publisher=principals.system())
    other = {**first, "document": world.document() | {"totals": [TOTAL]}}
    results = world.at_once(lambda: policies.publish(**first), lambda: policies.publish(**other))
    assert sorted(type(result).__name__ for result in results) == ["PolicyVersion", "SecondPersonNeeded"]
    assert policies.governing(tool=world.TOOL) == next(one for one in results if isinstance(one, PolicyVersion))


def test_two_policies_that_want_one_tool_at_once_get_it_once() -> None:
    world.user("anna")
    results = world.at_once(lambda: publish(), lambda: publish(slug="other", name="Other"))
    assert sorted(type(result).__name__ for result in results) == ["PolicyInvalid", "PolicyVersion"]
    winner = next(result for result in results if isinstance(result, PolicyVersion))
    assert policies.governing(tool=world.TOOL) == winner
    assert Policy.objects.count() == 1
