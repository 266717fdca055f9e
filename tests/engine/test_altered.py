"""Whoever can change rows of the database after a yes still makes nothing go out that was not approved."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import psycopg

from approvals.models import ApprovalRequest
from reconciliation.models import Operation
from runs.canonical import digest
from runs.models import Evidence, Proposal, Run
from runs.tools.billing.contract import CreditEffect
from tests.engine.conftest import World

Alter = Callable[[psycopg.Connection, Proposal], None]
FIELDS = tuple(CreditEffect.model_fields)
COLUMNS = ("locator", "version", "bound_digest", "content", "content_digest", "kind")
KINDS = ("account", "sla", "incident", "invoice")


def _set(connection: psycopg.Connection, table: str, column: str, value: Any, key: Any) -> None:
    changed = connection.execute(f"UPDATE {table} SET {column} = %s WHERE id = %s", [value, key])  # a test's own names
    assert changed.rowcount == 1


def _other(value: str) -> str:
    return str(int(value) + 1) if value.isdecimal() else value + "x"


def effect_field(name: str) -> Alter:
    def alter(connection: psycopg.Connection, proposal: Proposal) -> None:
        effect = {**proposal.effect, name: _other(proposal.effect[name])}
        _set(connection, "runs_proposal", "effect", json.dumps(effect), proposal.pk)

    return alter


def effect_field_with_its_digest(name: str) -> Alter:
    """Done more carefully: the action's own digest is made to fit."""

    def alter(connection: psycopg.Connection, proposal: Proposal) -> None:
        effect_field(name)(connection, proposal)
        changed = Proposal.objects.get(pk=proposal.pk)
        _set(connection, "runs_proposal", "action_digest", changed.action().digest(), proposal.pk)

    return alter


def evidence(kind: str, column: str) -> Alter:
    def alter(connection: psycopg.Connection, proposal: Proposal) -> None:
        piece = Evidence.objects.get(pk__in=proposal.rests_on, kind=kind)
        value: Any = "x" + getattr(piece, column)[1:] if column != "content" else json.dumps({**piece.content, "a": 1})
        _set(connection, "runs_evidence", column, value, piece.pk)

    return alter


def column(name: str, value: Callable[[Proposal], Any]) -> Alter:
    def alter(connection: psycopg.Connection, proposal: Proposal) -> None:
        _set(connection, "runs_proposal", name, value(proposal), proposal.pk)

    return alter


def shown_page(connection: psycopg.Connection, proposal: Proposal) -> None:
    """What the page said, and its digest made to fit: but the voter saw another one."""
    request = ApprovalRequest.objects.get(proposal=proposal)
    page = [{**row, "value": row["value"].replace("1,200.00", "12.00")} for row in request.page]
    _set(connection, "approvals_approvalrequest", "page", json.dumps(page), request.pk)
    made_to_fit = digest([[row["key"], row["label"], row["value"]] for row in page])
    _set(connection, "approvals_approvalrequest", "page_digest", made_to_fit, request.pk)


def every_change() -> Iterator[tuple[str, Alter]]:
    for name in FIELDS:
        yield f"effect.{name}", effect_field(name)
    yield "effect.amount_minor and action_digest", effect_field_with_its_digest("amount_minor")
    yield "effect.invoice_id and action_digest", effect_field_with_its_digest("invoice_id")
    for kind in KINDS:
        for name in COLUMNS:
            yield f"{kind}.{name}", evidence(kind, name)
    yield "amount", column("amount_minor", lambda one: one.amount_minor + 1)
    yield "currency", column("currency", lambda one: "EUR")
    yield "business key", column("business_key", lambda one: one.business_key + "/2")
    yield "identity", column("identity", lambda one: one.identity[:-1] + ("0" if one.identity[-1] != "0" else "1"))
    yield "contract version", column("contract_version", lambda one: "2")
    yield "tool", column("tool", lambda one: "helpdesk.draft_reply")
    yield "rests on less", column("rests_on", lambda one: json.dumps(one.rests_on[:-1]))
    yield "rests on nothing", column("rests_on", lambda one: "[]")
    yield "the page", shown_page


def test_every_field_and_every_fact_changed_after_the_yes_is_refused_at_sending(
    world: World, owner: psycopg.Connection
) -> None:
    went_out = []
    tried = 0
    for name, alter in every_change():
        tried += 1
        run = world.start("CS-8812", key=f"altered {name}")
        run = world.work(run)
        assert world.vote(run).code == "approved", name
        proposal = Proposal.objects.get(run=run)
        assert set(KINDS) == {one.kind for one in Evidence.objects.filter(pk__in=proposal.rests_on)}
        alter(owner, proposal)
        first = ApprovalRequest.objects.get(run=run)
        _let_go_on(world, run)
        first.refresh_from_db()
        if Operation.objects.filter(run=run).exists() or first.state not in ("revoked", "stale"):
            went_out.append(f"{name}: {first.state}, {run.state}")
    assert not went_out
    assert tried >= len(FIELDS) + len(KINDS) * len(COLUMNS) and world.effects() == []

    assert world.work(world.approved()).state == "completed"  # left alone, the very same goes out
    assert len(world.credits()) == 1


def _let_go_on(world: World, run: Run) -> None:
    def stopped(one: Run) -> bool:
        closed = not ApprovalRequest.objects.filter(run=one, state="approved").exists()
        return one.is_over or (closed and one.state in ("needs_person", "awaiting_approval"))

    world.work(run, until=stopped)


def test_the_operation_is_changed_before_it_is_sent_again(world: World, owner: psycopg.Connection) -> None:
    """What another attempt sends is what the first one sent, and what was allowed."""
    for number, (table, name, value) in enumerate(
        [
            ("reconciliation_operation", "effect", lambda one: json.dumps({**one.effect, "amount_minor": "999999"})),
            ("reconciliation_operation", "identity", lambda one: one.identity + "x"),
            ("reconciliation_attempt", "request", lambda one: one.attempts.get().request.replace("120000", "999999")),
        ]
    ):
        world.fault("overloaded", retry_after="seconds", seconds=1)
        run = world.work(world.start("CS-8812", key=f"again {number}"))
        assert world.vote(run).code == "approved"
        world.work(run, until=lambda one: one.state == "waiting")
        operation = world.credit(run)
        assert operation.state == "authorised" and operation.attempts_made == 1
        if table == "reconciliation_attempt":  # closed for good, by a trigger that binds the owner too
            owner.execute("ALTER TABLE reconciliation_attempt DISABLE TRIGGER reconciliation_attempt_closed_once")
            _set(owner, table, name, value(operation), operation.attempts.get().pk)
        else:
            _set(owner, table, name, value(operation), operation.pk)
        run = world.work(run, until=lambda one: one.state == "needs_person")
        assert (run.person_code, world.credit(run).state) == ("altered", "abandoned")
    assert world.effects() == [] and world.used() == [("overloaded", 1)] * 3
