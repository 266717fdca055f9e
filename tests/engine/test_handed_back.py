"""A request that is ended without an answer: sent back, withdrawn, or asked anew at another amount. The run goes on, to
the agent or to a person, and nothing is sent on what was asked before."""

import signal
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import Error, transaction

from agentops import amounts, engine
from agentops.narrowing import Less
from agentops.starting import start_workflow
from agentops.steps import awaiting, deciding
from approvals.models import ApprovalRequest, Decision, Vote
from approvals.services import closing, handing
from approvals.services.acting import Acted
from approvals.words import sentence
from reconciliation.models import Operation
from runs import record, transitions
from runs.models import Principal, Proposal, Run
from runs.services import principals
from tests import published
from tests.approvals.world import at_once, document
from tests.engine.conftest import World

CREDIT = "billing.create_credit"
TICKET_WORK = ["helpdesk.update_ticket", "helpdesk.draft_reply"]


def states(run: Run) -> list[str]:
    return list(ApprovalRequest.objects.filter(run=run).order_by("created_at").values_list("state", flat=True))


def act(world: World, run: Run, what: Any, who: str = "maya", **more: Any) -> Acted:
    me = principals.of_user(user=world.people[who])
    given: dict[str, Any] = {"reason": "the wrong incident", "channel": "page", **more}
    result: Acted = what(request_id=world.request(run).pk, principal=me, **given)
    assert "?" not in sentence(code=result.code, detail=result.detail)
    return result


def asked(world: World) -> Run:
    run = world.work(world.start())
    assert run.state == "awaiting_approval", run.person_reason
    return run


class _Again:
    """An agent that hears a refusal and makes its proposal all the same."""

    def __init__(self, real: Any) -> None:
        self.real, self.name = real, real.name

    def choose(self, *, view: dict[str, Any], **more: Any) -> Any:
        return self.real.choose(view={**view, "refusals": []}, **more)


def test_the_agent_hears_why_it_was_sent_back_and_proposes_anew(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    again_and_again = _Again(deciding.provider())
    monkeypatch.setattr(deciding, "provider", lambda: again_and_again)
    run = asked(world)
    first = world.request(run)
    assert act(world, run, closing.send_back).ok
    run = world.work(run)
    assert (run.state, states(run)) == ("awaiting_approval", ["sent_back", "open"])
    again = world.request(run)
    assert again.supersedes_id == first.pk and again.proposal_id != first.proposal_id
    shown = run.model_calls.latest("started_at").view
    assert "sent it back: the wrong incident" in str(shown)
    assert world.vote(run).code == "approved"
    run = world.work(run)
    assert run.state == "completed" and len(world.credits()) == 1
    assert record.verify(stream=f"run:{run.pk}") is None


def test_an_agent_that_knows_no_better_hands_what_was_sent_back_to_a_person(world: World) -> None:
    run = asked(world)
    assert act(world, run, closing.send_back).ok
    run = world.work(run)
    assert (run.state, run.person_code, states(run)) == ("needs_person", "escalated", ["sent_back"])
    assert "the wrong incident" in run.person_reason


def test_who_may_send_back_and_who_may_withdraw(world: World) -> None:
    run = asked(world)
    assert act(world, run, closing.send_back, who="priya").code == "no_right"
    assert act(world, run, closing.send_back, reason=" \u200b ").code == "why_needed"
    assert act(world, run, closing.withdraw, who="maya").code == "not_yours"
    assert act(world, run, closing.withdraw, who="priya", reason="x" * 4001).code == "comment_too_long"
    assert states(run) == ["open"]
    assert act(world, run, closing.withdraw, who="priya", reason="the customer has withdrawn").ok
    assert world.vote(run).code == "withdrawn"
    assert act(world, run, closing.send_back).code == "withdrawn"
    run = world.work(run)
    assert (run.state, run.person_code, states(run)) == ("needs_person", "withdrawn", ["withdrawn"])
    assert "the customer has withdrawn" in run.person_reason
    assert not Decision.objects.exists() and not Operation.objects.exists() and world.effects() == []


def test_what_is_decided_is_not_withdrawn_any_more(world: World) -> None:
    run = asked(world)
    desk = run.initiator
    request = world.request(run)
    assert world.vote(run).code == "approved"
    late = closing.withdraw(request_id=request.pk, principal=desk, reason="not any more", channel="api")
    assert late.code == "decided" and states(run) == ["approved"]


def test_another_amount_is_a_new_proposal_for_somebody_else_to_decide(world: World) -> None:
    run = asked(world)
    first = world.request(run)
    result = act(world, run, amounts.propose, amount="1,100.00", reason="they were told 1,100")
    assert result.ok and result.detail == {"new": "$1,100.00 USD", "old": "$1,200.00 USD"}
    run.refresh_from_db()
    assert (run.state, states(run)) == ("authorising", ["superseded"])
    assert world.vote(run, "jonas").code == "superseded"
    run = world.work(run)
    assert (run.state, states(run)) == ("awaiting_approval", ["superseded", "open"])
    again = world.request(run)
    assert again.supersedes_id == first.pk and again.proposal.predecessor_id == first.proposal_id
    assert {"key": "amount", "label": "Amount", "old": "$1,200.00 USD", "new": "$1,100.00 USD"} in again.changes
    assert (again.proposal.amount_minor, again.proposal.proposer.label) == (110_000, "Maya Lindgren")
    assert again.proposal.business_key == first.proposal.business_key
    assert again.proposal.identity != first.proposal.identity
    assert world.vote(run, "maya", acknowledged=True).code == "own_request"
    assert act(world, run, amounts.propose, amount="1000.50").code == "own_request"
    assert world.vote(run, "jonas", acknowledged=True).code == "approved"
    run = world.work(run)
    assert run.state == "completed", run.person_reason
    assert [one["amount_minor"] for one in world.credits()] == [110_000]
    assert record.verify(stream=f"run:{run.pk}") is None


def test_whoever_alone_could_decide_it_proposes_no_other_amount(world: World) -> None:
    run = asked(world)
    User.objects.filter(username="jonas").update(is_active=False)
    assert act(world, run, amounts.propose, amount="1100").code == "amount_needs_you"
    assert states(run) == ["open"]
    assert world.vote(run, "maya").code == "approved"


def test_an_amount_that_needs_no_approval_is_the_policys_decision_and_nobodys_vote(world: World) -> None:
    run = asked(world)
    assert act(world, run, amounts.propose, amount="900").ok
    run = world.work(run)
    assert run.state == "completed" and states(run) == ["superseded"]
    assert Decision.objects.get(proposal__step="credit").kind == Decision.Kind.POLICY
    assert [one["amount_minor"] for one in world.credits()] == [90_000] and not Vote.objects.exists()


def test_an_amount_that_policy_facts_or_form_do_not_take_changes_nothing(world: World) -> None:
    run = asked(world)
    for amount, code in (
        ("1200.00", "amount_same"),
        ("-5", "amount_unreadable"),
        ("12.345", "amount_unreadable"),
        ("much", "amount_unreadable"),
        ("11,50", "amount_unreadable"),
        ("€1100", "amount_unreadable"),
        ("0", "amount_unreadable"),
        ("1200.01", "amount_not_possible"),
    ):
        assert act(world, run, amounts.propose, amount=amount).code == code, amount
    assert act(world, run, amounts.propose, amount="1100", reason="").code == "why_needed"
    assert act(world, run, amounts.propose, who="priya", amount="1100").code == "no_right"
    run.refresh_from_db()
    assert (run.state, states(run), Proposal.objects.filter(run=run).count()) == ("awaiting_approval", ["open"], 1)
    assert not Vote.objects.exists()


def test_a_worker_that_was_reading_for_the_old_request_concludes_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, real, proposed = asked(world), awaiting.read_facts, []

    def meanwhile(step: Any, **how: Any) -> Any:
        facts = real(step, **how)
        if not proposed:
            proposed.append(act(world, run, amounts.propose, amount="1100"))
        return facts

    monkeypatch.setattr(awaiting, "read_facts", meanwhile)
    with transaction.atomic():
        transitions.want_facts(run=Run.objects.select_for_update(of=("self",)).get(pk=run.pk))
    engine.advance(run_id=run.pk)
    assert [one.ok for one in proposed] == [True]
    run.refresh_from_db()
    assert (run.state, states(run), run.times_out_of_date) == ("authorising", ["superseded"], 0)
    run = world.work(run)
    assert (run.state, states(run)) == ("awaiting_approval", ["superseded", "open"])
    assert world.request(run).proposal.amount_minor == 110_000


def test_a_vote_and_another_amount_at_once_end_it_once(world: World) -> None:
    for number in range(4):
        run = world.work(world.start(key=f"race-{number}"))
        vote, new = at_once(
            lambda run=run: world.vote(run, "jonas"), lambda run=run: act(world, run, amounts.propose, amount="1100")
        )
        assert (vote.accepted, new.ok) in ((True, False), (False, True)), (vote, new)
        assert {vote.code, new.code} in ({"approved", "decided"}, {"superseded", "ok"})
        assert states(run) == [{True: "approved", False: "superseded"}[vote.accepted]]
        assert Proposal.objects.filter(run=run).count() == 1 + new.ok


@pytest.mark.parametrize("point", ["run.advanced.before", "run.advanced.after"])
def test_a_worker_killed_while_it_draws_the_consequence_loses_nothing(world: World, point: str) -> None:
    run = asked(world)
    assert act(world, run, closing.withdraw, who="priya").ok
    assert world.workers.wait(world.worker(run, die_at=point)) == -signal.SIGKILL
    run = world.work(run)
    assert (run.state, run.person_code, states(run)) == ("needs_person", "withdrawn", ["withdrawn"])
    assert world.effects() == []


def test_the_database_takes_no_request_back_that_was_sent_back(world: World, owner: psycopg.Connection) -> None:
    run = asked(world)
    assert act(world, run, closing.send_back).ok
    closed = world.request(run)
    for state in ("approved", "open", "superseded"):
        with pytest.raises(Error), transaction.atomic():
            ApprovalRequest.objects.filter(pk=closed.pk).update(state=state)
    with pytest.raises(psycopg.Error):
        owner.execute("UPDATE approvals_approvalrequest SET close_reason = ' '")


def test_another_amount_leaves_people_enough_for_whoever_was_added_as_well(world: World) -> None:
    run = asked(world)
    added = handing.add_approver(
        request_id=world.request(run).pk, person=world.people["jonas"], reason="their account", by=world.people["maya"]
    )
    assert added.ok, added
    assert act(world, run, amounts.propose, amount="1100").code == "amount_needs_you"
    assert states(run) == ["open"]


def test_another_amount_that_the_run_was_not_granted_closes_nothing(world: World) -> None:
    less = {CREDIT: Less(when="currency == 'USD' && amount_minor >= 115000")}
    desk = principals.find_or_make(kind=Principal.Kind.INTEGRATION, key="integration:helpdesk", label="Help desk")
    data = {"ticket": world.named("CS-8812")}
    run = world.work(start_workflow(name="service_credit", data=data, initiator=desk, less=less).run)
    refused = act(world, run, amounts.propose, amount="1100")
    assert refused.code == "amount_denied" and "granted" in refused.detail["why"]
    assert states(run) == ["open"]
    assert world.vote(run).code == "approved"
    # what follows was not granted either; the credit is made, so it is a person's to say how it goes on
    run = world.work(run)
    assert (run.state, run.person_code) == ("needs_person", "not_granted")
    assert "helpdesk.update_ticket" in run.person_reason and len(world.credits()) == 1


def test_who_rejects_what_follows_reads_what_was_done_before(world: World) -> None:
    published.publish(slug="ticket-work", name="Ticket work", tools=TICKET_WORK, document=document(), note="n")
    run = world.work(world.start("CS-8815"))
    assert run.state == "awaiting_approval" and len(world.credits()) == 1
    assert world.vote(run, choice="reject").code == "rejected"
    run = world.work(run)
    reference = world.credit(run).external_reference
    assert run.state == "rejected" and f"Done before, and staying: {CREDIT} {reference}" in run.outcome
