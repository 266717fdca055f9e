"""A fact that disappears is a fact that has changed; and a source that is down holds up no deadline."""

from typing import Any

import psycopg
import pytest
from django.db import transaction

from agentops import engine, reasons, relay
from agentops.workflows import service_credit
from runs import clock, transitions
from runs.models import Evidence, Run
from runs.services import external_events
from runs.tools.base import NoSuchThing
from tests.engine.conftest import World


def gone(**_: Any) -> None:
    raise NoSuchThing("the document")


def want_facts(run: Run) -> None:
    with transaction.atomic():
        transitions.want_facts(run=Run.objects.select_for_update(of=("self",)).get(pk=run.pk))


@pytest.mark.parametrize("source", ["read_sla", "read_invoice", "read_incident"])
def test_nothing_is_sent_on_a_fact_that_vanished(world: World, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    run = world.approved()
    monkeypatch.setattr(service_credit, source, gone)
    run = world.work(run)
    assert run.state in ("needs_person", "rejected", "awaiting_approval")
    kinds = set(Evidence.objects.filter(run=run).latest("reading").run.evidence.values_list("kind", flat=True))
    assert "ticket" in kinds
    assert world.credits() == []


def test_no_vote_counts_once_a_fact_has_vanished(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    run = world.work(world.start())
    asked = world.request(run)
    monkeypatch.setattr(service_credit, "read_invoice", gone)
    want_facts(run)
    engine.advance(run_id=run.pk)
    asked.refresh_from_db()
    assert asked.state in ("superseded", "withdrawn")
    assert world.vote(run, request_id=asked.pk).code != "approved"
    assert world.credits() == []


def test_a_request_expires_while_billing_is_down(world: World, owner: psycopg.Connection, settings: Any) -> None:
    run = world.work(world.start())
    settings.BILLING_URL = "http://127.0.0.1:9"
    want_facts(run)
    engine.advance(run_id=run.pk)
    run.refresh_from_db()
    assert run.wake_at is not None and run.wake_at <= world.request(run).respond_by
    owner.execute("UPDATE approvals_approvalrequest SET respond_by = clock_timestamp() - interval '1 second'")
    Run.objects.filter(pk=run.pk).update(wake_at=clock.ClockTimestamp())
    engine.advance(run_id=run.pk)
    run.refresh_from_db()
    assert (world.request(run).state, run.person_code) == ("expired", "approval_expired")


def test_an_event_nobody_foresaw_stops_no_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    run = world.start()
    body = {"data": {"object": {"customer": "c"}}}
    external_events.receive(source="billing", event_id="evt_1", kind="invoice.paid", payload=body)

    def boom(_: Any) -> str:
        raise KeyError("x")

    monkeypatch.setattr("agentops.events._about_invoice", boom)
    hinted: list[str] = []
    monkeypatch.setattr(relay.advance, "apply_async", lambda args, **_: hinted.append(args[0]))
    relay.Relay().run_once()
    assert hinted == [str(run.pk)]
    relay.Relay().run_once()  # and it is not met again


def test_every_reason_has_its_words() -> None:
    assert set(reasons.WORDS) == set(reasons.Reason)
    assert len(set(reasons.WORDS.values())) == len(reasons.WORDS)
