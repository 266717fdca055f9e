"""For every tool there is: whatever of an approved action is changed in the database, the sender's check finds it. A
tool that is added here has to say how a run of it is approved."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from django.db import transaction

from agentops.starting import start_workflow
from approvals.seed_policies import TICKET_WORK
from approvals.services import requests
from reconciliation.models import Operation
from reconciliation.unaltered import altered
from runs.models import Principal, Proposal, Run
from runs.services import principals
from runs.tools.registry import TOOLS, contract
from tests import published
from tests.undoing.conftest import Undoing

EVERY = tuple(TOOLS)  # as the product has them, before any test adds its own
COLUMNS: tuple[Callable[[Proposal], dict[str, Any]], ...] = (
    lambda one: {"amount_minor": (one.amount_minor or 0) + 1, "currency": one.currency or "USD"},
    lambda one: {"amount_minor": one.amount_minor or 1, "currency": "CHF"},
    lambda one: {"business_key": one.business_key + "/2"},
    lambda one: {"identity": one.identity[:-1] + ("0" if one.identity[-1] != "0" else "1")},
    lambda one: {"contract_version": "99"},
    lambda one: {"tool": next(name for name in EVERY if name != one.tool)},
)


def asks_about_tickets() -> None:
    """Nothing about tickets is automatic any more."""
    ask = {"group": "manager", "quorum": 1, "respond_within_minutes": 240, "valid_for_minutes": 60}
    rule = {"id": "ask", "effect": "ask", "text": "A manager decides", "when": "true", "ask": ask}
    published.publish(
        slug=TICKET_WORK.slug, name=TICKET_WORK.name, tools=list(TICKET_WORK.tools), document={"rules": [rule]}, note=""
    )


def create_credit(undo: Undoing) -> Run:
    return undo.world.start()


def void_credit(undo: Undoing) -> Run:
    return undo.started(undo.credited()[1])


def update_ticket(undo: Undoing) -> Run:
    asks_about_tickets()
    return undo.world.start("CS-8815")


def draft_reply(undo: Undoing) -> Run:
    asks_about_tickets()
    given = {"case": "RC-7", "ticket": undo.world.named("CS-8815"), "subject": "Your credit", "body": "It was 10."}
    desk = principals.find_or_make(kind=Principal.Kind.INTEGRATION, key="integration:helpdesk", label="Help desk")
    return start_workflow(name="correction_notice", data=given, initiator=desk, from_within=True).run


STARTED: dict[str, Callable[[Undoing], Run]] = {
    "billing.create_credit": create_credit,
    "billing.void_credit": void_credit,
    "helpdesk.update_ticket": update_ticket,
    "helpdesk.draft_reply": draft_reply,
}


def test_every_tool_is_here() -> None:
    assert set(STARTED) == set(EVERY)


def asked(undo: Undoing, run: Run, tool: str) -> Proposal:
    """The proposal of the open request, which somebody approves."""
    run = undo.world.work(run)
    assert run.state == "awaiting_approval", (run.state, run.person_reason)
    request = undo.world.request(run)
    assert request.proposal.tool == tool
    assert undo.world.vote(run).code == "approved"
    return Proposal.objects.get(pk=request.proposal_id)


def before_sending(run: Run, proposal: Proposal) -> str:
    """What the sender's check finds, under its locks; nothing is kept."""
    with transaction.atomic():
        locked = Run.objects.select_for_update(of=("self",)).get(pk=run.pk)
        stored = Proposal.objects.get(pk=proposal.pk)
        authority = requests.lock_for_sending(run=locked, proposal=stored)
        assert authority is not None and authority.problem == ""
        found = altered(proposal=stored, contract=contract(proposal.tool), authority=authority, operation=None)
        transaction.set_rollback(True)
    return found


@contextmanager
def tampered(owner: psycopg.Connection, proposal: Proposal, **columns: Any) -> Iterator[None]:
    names = ", ".join(f"{name} = %s" for name in columns)
    before = [getattr(proposal, name) for name in columns]
    before = [json.dumps(one) if isinstance(one, dict | list) else one for one in before]
    owner.execute(f"UPDATE runs_proposal SET {names} WHERE id = %s", [*columns.values(), proposal.pk])
    yield
    owner.execute(f"UPDATE runs_proposal SET {names} WHERE id = %s", [*before, proposal.pk])


def other(value: str) -> str:
    return str(int(value) + 1) if value.isdecimal() else value + "x"


def effects(proposal: Proposal) -> Iterator[tuple[str, dict[str, str]]]:
    for name, value in proposal.effect.items():
        yield name, {**proposal.effect, name: other(value)}
        yield f"without {name}", {key: kept for key, kept in proposal.effect.items() if key != name}
    yield "one more", {**proposal.effect, "extra": "1"}


@pytest.mark.parametrize("tool", EVERY)
def test_whatever_is_changed_in_the_database_after_the_yes(undo: Undoing, owner: psycopg.Connection, tool: str) -> None:
    run = STARTED[tool](undo)
    proposal = asked(undo, run, tool)
    assert set(proposal.effect) == set(contract(tool).effect.model_fields)
    assert before_sending(run, proposal) == ""
    passed: list[tuple[str, dict[str, Any]]] = []
    for name, effect in effects(proposal):
        changed = replace(proposal.action(), effect=effect)
        for given in ({}, {"action_digest": changed.digest()}):  # and done more carefully
            with tampered(owner, proposal, effect=json.dumps(effect), **given):
                passed += [] if before_sending(run, proposal) else [(name, given)]
    for columns in COLUMNS:
        with tampered(owner, proposal, **columns(proposal)):
            passed += [] if before_sending(run, proposal) else [("columns", columns(proposal))]
    if proposal.rests_on:
        with tampered(owner, proposal, rests_on="[]"):
            passed += [] if before_sending(run, proposal) else [("rests_on", {})]
    assert passed == []
    assert before_sending(run, proposal) == ""

    name, effect = next(effects(proposal))
    with tampered(owner, proposal, effect=json.dumps(effect)):
        run = undo.world.work(run, until=lambda one: one.state == "needs_person")
        assert run.person_code == "altered"
    assert not Operation.objects.filter(run=run, tool=tool).exists()
