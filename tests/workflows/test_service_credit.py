"""The rest of the service credit: what is read, shown, follows, and is asked of people and policies."""

import datetime as dt
import json
from typing import Any

import pytest
from pydantic import ValidationError

from agentops.workflows.base import AskAgent, Complete, Done, Draft, HandOver
from agentops.workflows.registry import WORKFLOWS, UnknownWorkflow, workflow
from approvals.rules import VARIABLES
from runs.canonical import canonical_bytes
from runs.tools.base import NoSuchThing, Unreachable
from runs.tools.registry import TOOLS, contract, tool
from tests.outside import Outside
from tests.workflows.cases import CREDIT, asked, data_of, gathered, good_answer, judged


def drafted(parts: dict[str, Any]) -> Draft:
    draft = judged(parts, gathered(parts), good_answer(parts))
    assert isinstance(draft, Draft)
    return draft


def carried_out(draft: Draft, identity: str) -> Done:
    action = draft.action
    contract(action.tool).effect.model_validate(action.effect)
    made = tool(action.tool).send(effect=action.effect, identity=identity, wire_key=f"{identity}:0")
    assert made.mismatch == {}
    at = made.at or dt.datetime.now(dt.UTC)
    amount = action.effect.get("amount_minor")
    return Done(
        step=draft.step,
        tool=action.tool,
        effect=action.effect,
        reference=made.reference,
        at=at,
        real_minor=int(amount) if amount else None,
        by_evidence=False,
    )


def test_from_credit_to_completion(outside: Outside) -> None:
    parts = outside.customer()
    data, ticket = data_of(parts), parts["ticket"]["id"]
    assert CREDIT.follow(data=data, facts=gathered(parts), done=[]) == AskAgent()
    done = [carried_out(drafted(parts), f"s/{ticket}/credit")]
    outside.process.touch(ticket)  # somebody else wrote on the ticket meanwhile: its newest version counts
    for step, rests_on in (("update_ticket", ("ticket",)), ("draft_reply", ())):
        follow = CREDIT.follow(data=data, facts=gathered(parts), done=done)
        assert isinstance(follow, Draft)
        assert (follow.step, follow.rests_on) == (step, rests_on)
        assert CREDIT.card(action=follow.action, facts=gathered(parts)).ask
        done.append(carried_out(follow, f"s/{ticket}/{step}"))
    end = CREDIT.follow(data=data, facts=gathered(parts), done=done)
    name, reference = parts["account"]["name"], done[0].reference
    assert end == Complete(
        f"Credit {reference} of $1,200.00 for {name} confirmed by billing; ticket updated; reply drafted"
    )
    world = outside.process.world()
    [updated] = [one for one in world["tickets"] if one["id"] == ticket]
    assert (updated["status"], updated["version"]) == ("pending", 3)
    assert reference in updated["resolution"]
    [reply] = [one for one in world["drafts"] if one["ticket"] == ticket]
    assert "$1,200.00" in reply["body"]
    assert reference in reply["body"]


def test_what_follows_does_not_depend_on_facts_that_moved_after_the_credit(outside: Outside) -> None:
    parts = outside.customer()
    done = [carried_out(drafted(parts), f"s/moved/{parts['ticket']['id']}")]
    outside.process.correct(parts["invoice"]["number"], total_minor=600_000)
    follow = CREDIT.follow(data=data_of(parts), facts=gathered(parts), done=done)
    assert isinstance(follow, Draft)
    assert "$1,200.00" in follow.action.effect["resolution"]
    gone = CREDIT.follow(data=data_of(parts), facts={}, done=done)
    assert isinstance(gone, HandOver)


def test_a_corrected_invoice_is_worked_out_anew(outside: Outside) -> None:
    parts = outside.customer(invoice_total_minor=1_240_000)
    before = judged(parts, gathered(parts), good_answer(parts, amount_minor="124000"))
    assert isinstance(before, Draft)
    outside.process.correct(parts["invoice"]["number"], total_minor=1_200_000, reason="four seats removed")
    facts = gathered(parts)
    turn = asked(parts, facts)
    assert turn.answer is not None
    after = judged(parts, facts, turn.answer)
    assert isinstance(after, Draft)
    assert (before.action.effect["amount_minor"], after.action.effect["amount_minor"]) == ("124000", "120000")
    assert (before.action.effect["invoice_version"], after.action.effect["invoice_version"]) == ("1", "2")
    assert before.action.effect["invoice"] == after.action.effect["invoice"]
    assert before.action.digest() != after.action.digest()


def test_the_card_shows_every_field_of_the_effect(outside: Outside) -> None:
    parts = outside.customer()
    draft, facts = drafted(parts), gathered(parts)
    card = CREDIT.card(action=draft.action, facts=facts)
    shown = " | ".join(row.value for row in card.rows)
    said_otherwise = {
        "amount_minor": "$1,200.00",
        "balance_minor": "invoice",
        "currency": "USD",
        "reason": "SLA breach",
    }
    for name, value in draft.action.effect.items():
        assert said_otherwise.get(name, value) in shown, name
    assert len({row.key for row in card.rows}) == len(card.rows)
    assert {"amount", "account", "invoice", "invoice_total", "reason", "memo"} <= {row.key for row in card.rows}
    assert card.ask == f"Issue $1,200.00 service credit to {parts['account']['name']}"


def test_policy_variables_are_those_of_the_schema(outside: Outside) -> None:
    parts = outside.customer()
    facts = gathered(parts)
    found = CREDIT.variables(action=drafted(parts).action, facts=facts)
    assert set(found) == set(VARIABLES) - {"agent"}  # whose run it is, the engine adds
    kinds = {"string": str, "int": int, "bool": bool}
    assert all(type(value) is kinds[VARIABLES[name]] for name, value in found.items())
    assert (found["amount_minor"], found["month"], found["account_standing"]) == (120_000, "2026-10", "good")
    done = [carried_out(drafted(parts), f"s/vars/{parts['ticket']['id']}")]
    follow = CREDIT.follow(data=data_of(parts), facts=facts, done=done)
    assert isinstance(follow, Draft)
    found = CREDIT.variables(action=follow.action, facts=facts)
    assert (found["tool"], found["step"]) == ("helpdesk.update_ticket", "update_ticket")
    assert not {"amount_minor", "currency"} & set(found)  # what it has not is left out, so that a rule on it denies


def test_the_view_is_bounded_marked_and_canonical(outside: Outside) -> None:
    parts = outside.customer(
        ticket_body="we were down " * 4000,
        ticket_messages=[{"from": "Ann", "at": "", "body": str(number)} for number in range(30)],
        account_name="</td><script>alert(1)</script>",
    )
    view = CREDIT.view(data=data_of(parts), facts=gathered(parts), refusals=["because"])
    canonical_bytes(view)  # raises on floats and the like
    ticket = view["ticket"]
    assert len(ticket["body"]["untrusted_text"]) == 4000
    assert ticket["body"]["note"] == "cut: the first 4000 of 52000 characters"
    assert ticket["note"] == "the last 20 of 30 messages"
    assert view["account"]["name"] == {"untrusted_text": "</td><script>alert(1)</script>"}
    assert view["refusals"] == [{"untrusted_text": "because"}]
    assert view["invoice"]["version"] == {"untrusted_text": "1"}
    assert len(json.dumps(view)) < 120_000


@pytest.mark.parametrize("part", ["plan", "incident", "invoice"])
def test_what_is_missing_is_asked_for(outside: Outside, part: str) -> None:
    if part == "plan":
        parts = outside.customer()
        outside.process.faults({"mode": "lookup_not_found", "operation": "helpdesk.plans.retrieve"})
    else:
        parts = outside.customer(**{part: None})
    facts = gathered(parts)
    view = CREDIT.view(data=data_of(parts), facts=facts, refusals=[])
    assert {"plan": "sla"}.get(part, part) in view["missing"]
    turn = asked(parts, facts)
    assert turn.answer is not None
    assert turn.answer["kind"] == "ask_for_document"
    assert isinstance(judged(parts, facts, turn.answer), HandOver)


def test_a_ticket_that_is_not_there_and_a_source_that_is_down_are_two_things(outside: Outside) -> None:
    with pytest.raises(NoSuchThing, match="Ticket NO-1"):
        CREDIT.gather(data={"ticket": "NO-1"})
    parts = outside.customer()
    for operation in ("helpdesk.plans.retrieve", "helpdesk.incidents.retrieve", "billing.invoices.list"):
        outside.process.faults({"mode": "lookup_error", "operation": operation})
        with pytest.raises(Unreachable):
            gathered(parts)
    assert "invoice" in gathered(parts)


@pytest.mark.parametrize(
    "ticket", ["", "CS", "CS-", "cs-1", "CS-1 ", "CS-1/../x", "CS-1\n", "CS-٣", "../CS-1", 1, None]
)
def test_a_ticket_number_is_checked(ticket: object) -> None:
    with pytest.raises(ValidationError):
        CREDIT.Input.model_validate({"ticket": ticket})


def test_the_start() -> None:
    assert CREDIT.Input.model_validate({"ticket": "CS-8812"}).plain_dict() == {"ticket": "CS-8812"}
    assert CREDIT.start_key(data={"ticket": "CS-8812"}) == "service_credit/CS-8812"
    assert CREDIT.subject(data={"ticket": "CS-8812"}).subject == "CS-8812"


def test_the_registry_names_what_it_holds() -> None:
    for name, versions in WORKFLOWS.items():
        for version, found in versions.items():
            assert (found.name, found.version) == (name, version)
            assert workflow(name, version) is found
            assert set(found.tools) <= set(TOOLS)
    with pytest.raises(UnknownWorkflow, match="service_credit"):
        workflow("nothing")
    with pytest.raises(UnknownWorkflow, match="it has 1"):
        workflow("service_credit", "99")
