"""Between the yes and the sending, and while people think, the world moves: nothing goes out on an old footing."""

import copy
import dataclasses
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from agentops.events import process_events
from approvals.models import Allowance, ApprovalRequest, Decision, Refusal
from approvals.seed_policies import SERVICE_CREDITS
from approvals.services import policies
from reconciliation import still_allowed
from reconciliation.models import Operation
from reconciliation.services import gates
from runs import clock, record, transitions
from runs.models import Run
from runs.services import external_events
from tests import published
from tests.engine.conftest import World


def states(run: Run) -> list[str]:
    return list(ApprovalRequest.objects.filter(run=run).order_by("created_at").values_list("state", flat=True))


def nothing_was_sent(world: World, run: Run) -> None:
    assert world.effects() == []
    assert not Operation.objects.filter(run=run).exists()
    assert record.verify(stream=f"run:{run.pk}") is None


def asked_again_and_done(world: World, run: Run, *, who: str = "jonas", minor: int = 120_000) -> None:
    """The new request is answered, and one credit is made."""
    assert run.state == "awaiting_approval", run.person_reason
    assert world.vote(run, who).code == "approved"
    run = world.work(run)
    assert run.state == "completed", run.person_reason
    assert [one["amount_minor"] for one in world.credits()] == [minor]
    assert states(run)[-1] == "spent"


def test_d9_the_deadline_falls_between_approval_and_sending(world: World, owner: psycopg.Connection) -> None:
    run = world.approved()
    moved = owner.execute("UPDATE approvals_decision SET valid_until = clock_timestamp() - interval '1 second'")
    assert moved.rowcount == 1
    run = world.work(run)
    assert (run.state, run.person_code, states(run)) == ("needs_person", "approval_expired", ["expired"])
    nothing_was_sent(world, run)


def test_d9_the_deadline_falls_into_the_wait_for_the_policy(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    run, governing, waited = world.approved(), policies.governing, []

    def slow(*, tool: str, lock: bool = False) -> Any:
        waited.append(tool)
        return governing(tool=tool, lock=lock)

    end = Decision.objects.get().valid_until
    monkeypatch.setattr(still_allowed.policies, "governing", slow)
    monkeypatch.setattr(still_allowed, "clock", SimpleNamespace(now=lambda: end if waited else clock.now()))
    run = world.work(run)
    assert (run.state, run.person_code, states(run)) == ("needs_person", "approval_expired", ["expired"])
    nothing_was_sent(world, run)


def test_d9_the_deadline_falls_into_the_wait_for_the_tool(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was spent by then is given back, and no attempt is ever opened."""
    run, may_send, waited = world.approved(), gates.may_send, []

    def slow(**given: Any) -> Any:
        waited.append(given["tool"])
        return dataclasses.replace(may_send(**given), now=end)

    end = Decision.objects.get().valid_until
    monkeypatch.setattr(gates, "may_send", slow)
    monkeypatch.setattr(still_allowed, "clock", SimpleNamespace(now=lambda: end if waited else clock.now()))
    run = world.work(run)
    assert (run.state, run.person_code) == ("needs_person", "approval_expired")
    assert world.effects() == [] and len(waited) == 1
    operation = Operation.objects.get(run=run)
    assert (operation.state, operation.attempts.count()) == ("abandoned", 0)
    assert Allowance.objects.exists() and not any(one.reserved_minor for one in Allowance.objects.all())
    assert record.verify(stream=f"run:{run.pk}") is None


def test_d9_a_yes_one_second_too_late_is_refused_and_that_is_recorded(world: World, owner: psycopg.Connection) -> None:
    run = world.work(world.start())
    owner.execute("UPDATE approvals_approvalrequest SET respond_by = clock_timestamp() - interval '1 second'")
    assert world.vote(run).code == "expired"
    assert [one.code for one in Refusal.objects.all()] == ["expired"]
    run = world.work(run, until=lambda one: one.state != "awaiting_approval")
    assert (run.state, run.person_code, states(run)) == ("needs_person", "approval_expired", ["expired"])
    assert not Decision.objects.exists()
    nothing_was_sent(world, run)


def test_nobody_answers_in_time(world: World, owner: psycopg.Connection) -> None:
    """Without any sweeper: the run's own due time has it looked at."""
    run = world.work(world.start())
    owner.execute("UPDATE approvals_approvalrequest SET respond_by = clock_timestamp() - interval '1 second'")
    owner.execute("UPDATE runs_run SET wake_at = clock_timestamp()")
    run = world.work(run, until=lambda one: one.state != "awaiting_approval")
    assert (run.state, run.person_code, states(run)) == ("needs_person", "approval_expired", ["expired"])


@pytest.mark.parametrize("how", ["group", "inactive", "right"])
def test_g8_the_voter_lost_the_right_before_sending(world: World, how: str) -> None:
    run = world.approved()
    maya = world.people["maya"]
    if how == "group":
        maya.groups.clear()
    elif how == "inactive":
        maya.is_active = False
        maya.save()
    else:
        group = maya.groups.get()
        group.permissions.remove(*group.permissions.filter(codename="vote"))
    run = world.work(run, until=lambda one: one.state in ("awaiting_approval", "needs_person"))
    nothing_was_sent(world, run)
    if how == "right":  # nobody has it any more, so nobody is asked again
        assert (run.person_code, states(run)) == ("nobody_to_ask", ["revoked"])
        return
    assert states(run) == ["revoked", "open"]
    assert world.vote(run, "maya").code in ("no_right", "inactive")
    asked_again_and_done(world, run)


@pytest.mark.parametrize("how", ["event", "page"])
def test_d12_the_invoice_is_corrected_while_it_waits(world: World, how: str) -> None:
    run = world.work(world.start())
    old = world.request(run)
    world.sandbox.correct(world.named("INV-2041"), total_minor=1_100_000, reason="two seats too many")
    if how == "event":
        thing = {"object": "invoice", "customer": old.proposal.effect["customer"]}
        payload = {"id": "evt_1", "data": {"object": thing}}
        assert external_events.receive(source="billing", event_id="evt_1", kind="invoice.finalized", payload=payload)
        assert not external_events.receive(
            source="billing", event_id="evt_1", kind="invoice.finalized", payload=payload
        )
        assert process_events(limit=10) == 1
    else:
        _look(run)
    run = world.work(run, until=lambda one: len(states(one)) == 2)
    assert states(run) == ["superseded", "open"]
    new = world.request(run)
    assert (new.supersedes_id, new.proposal.amount_minor, new.proposal.predecessor_id) == (
        old.pk,
        110_000,
        old.proposal_id,
    )
    changes = {one["key"]: (one["old"], one["new"]) for one in new.changes}
    assert "1,200.00" in changes["amount"][0] and "1,100.00" in changes["amount"][1]
    assert "version 1" in changes["invoice"][0] and "version 2" in changes["invoice"][1]
    assert world.vote(run, page_digest=old.page_digest).code == "page_differs"
    assert world.vote(run, acknowledged=False).code == "unread_changes"
    nothing_was_sent(world, run)
    asked_again_and_done(world, run, minor=110_000)


def _look(run: Run) -> None:
    from django.db import transaction

    with transaction.atomic(durable=True):
        transitions.want_facts(run=Run.objects.select_for_update(of=("self",)).get(pk=run.pk))


def test_d12_corrected_after_the_decision(world: World) -> None:
    run = world.approved()
    world.sandbox.correct(world.named("INV-2041"), total_minor=1_100_000)
    run = world.work(run, until=lambda one: len(states(one)) == 2)
    assert states(run) == ["stale", "open"]
    assert world.request(run).changes
    nothing_was_sent(world, run)
    asked_again_and_done(world, run, who="maya", minor=110_000)


def test_corrected_to_less_than_needs_a_manager_the_policy_allows_it_and_the_old_yes_is_not_used(world: World) -> None:
    run = world.approved()
    world.sandbox.correct(world.named("INV-2041"), total_minor=900_000)
    run = world.work(run)
    assert (run.state, states(run)) == ("completed", ["stale"])
    assert [one["amount_minor"] for one in world.credits()] == [90_000]
    assert world.credit(run).decision.kind == "policy"


def test_an_invoice_that_is_corrected_after_every_yes_ends_at_a_person(world: World) -> None:
    run = world.approved()
    for number in range(4):
        world.sandbox.correct(world.named("INV-2041"), total_minor=1_190_000 - number * 10_000)
        run = world.work(run, until=lambda one, n=number: len(states(one)) == n + 2 or one.state == "needs_person")
        if run.state == "awaiting_approval":
            assert world.vote(run).code == "approved"
    assert (run.state, run.person_code) == ("needs_person", "keeps_changing")
    nothing_was_sent(world, run)


def publish(**changes: Any) -> None:
    """The next version of the credit policy, with the manager's rule changed."""
    document = copy.deepcopy(SERVICE_CREDITS.document)
    for rule in document["rules"]:
        if rule["id"] == "usd-manager":
            rule.update({key: value for key, value in changes.items() if key != "ask"})
            rule.get("ask", {}).update(changes.get("ask", {}))
            if rule["effect"] != "ask":
                del rule["ask"]
    published.publish(
        slug=SERVICE_CREDITS.slug,
        name=SERVICE_CREDITS.name,
        tools=list(SERVICE_CREDITS.tools),
        document=document,
        note="stricter",
    )


def test_the_policy_asks_for_two_people_meanwhile(world: World) -> None:
    run = world.approved()
    publish(ask={"quorum": 2})
    run = world.work(run, until=lambda one: len(states(one)) == 2)
    assert (states(run), world.request(run).quorum) == (["revoked", "open"], 2)
    nothing_was_sent(world, run)
    assert world.vote(run, "maya").code == "voted"
    asked_again_and_done(world, run)


def test_the_policy_forbids_it_meanwhile(world: World) -> None:
    run = world.approved()
    publish(effect="deny")
    run = world.work(run, until=lambda one: one.state == "needs_person")
    assert (run.person_code, states(run)) == (
        "escalated",
        ["revoked"],
    )  # the agent was told why, and gave it to a person
    nothing_was_sent(world, run)


def test_the_policy_needs_nobody_any_more_and_the_yes_in_hand_is_enough(world: World) -> None:
    run = world.approved()
    publish(effect="allow")
    run = world.work(run)
    assert (run.state, states(run), len(world.credits())) == ("completed", ["spent"], 1)
