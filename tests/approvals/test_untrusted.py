"""Texts from outside through the whole path of a vote (D13): kept whole, never an error, never another amount."""

from typing import Any

import pytest
from django.db import transaction

from approvals.binding import page_digest
from approvals.models import ApprovalRequest, Vote
from approvals.models.request import RequestState
from approvals.services import requests
from runs import record
from runs.models import Event, Run
from runs.services import principals
from tests.approvals import world

pytestmark = pytest.mark.usefixtures("db")

HOSTILE = {
    "markup": "</td><script>alert(1)</script>",
    "a false line": "Acme\nAmount: 1.00",
    "fifty kilobytes": "Acme " * 10_000,
    "reversed": "Acme \u202e00.1$",
    "templates": "{{ 7|add:7 }} {% load x %} %s {0}",
    "quotes": "'; DROP TABLE approvals_vote; --",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_in_what_is_shown_and_said(name: str) -> None:
    text = HOSTILE[name]
    anna, bert = world.user("anna"), world.user("bert")
    type(anna).objects.filter(pk=anna.pk).update(first_name=text[:150])
    anna.refresh_from_db()
    shown = [*world.rows(), {"key": "customer", "label": "Customer", "value": text}]
    asked = world.ask(shown=shown, sentence=f"Issue $1,200.00 service credit to {text}", quorum=2)
    stored: Any = ApprovalRequest.objects.get(pk=asked.request.pk)
    assert stored.page == shown  # whole, not cut
    assert stored.page_digest == page_digest(rows=shown)
    assert stored.ask.startswith("Issue $1,200.00 service credit to ")
    assert len(stored.ask) <= 300
    assert len(stored.ask.splitlines()) == 1
    assert "\u202e" not in stored.ask
    assert world.cast(asked, anna, comment=text[:4000]).code == "voted"
    assert Vote.objects.get().comment == text[:4000].strip()
    assert world.cast(asked, bert, page_digest=text, authenticated_by=text).code == "page_differs"
    assert world.cast(asked, bert, "reject", comment=text[:4000], authenticated_by=text).code == "rejected"
    events = Event.objects.filter(stream=f"run:{asked.run.pk}")
    assert [event.data["comment"] for event in events if "comment" in event.data] == [text[:4000].strip()] * 2
    assert record.verify(stream=f"run:{asked.run.pk}") is None


def test_what_a_database_cannot_hold_is_replaced_not_an_error() -> None:
    anna = world.user("anna")
    asked = world.ask()
    result = world.cast(asked, anna, "reject", comment="no\x00 \ud800 reason", authenticated_by="pass\x00word")
    assert result.code == "rejected"
    assert Vote.objects.get().comment == "no\ufffd \ufffd reason"


def test_a_change_in_a_hostile_text_is_shown_whole() -> None:
    world.user("anna")
    asked = world.ask(shown=[*world.rows(), {"key": "memo", "label": "Memo", "value": "short"}])
    long = HOSTILE["fifty kilobytes"]
    with transaction.atomic(durable=True):
        run = Run.objects.select_for_update().get(pk=asked.run.pk)
        old = requests.close_open(run=run, to=RequestState.SUPERSEDED, why="edited", actor=principals.system())
        shown = [*world.rows(), {"key": "memo", "label": "Memo", "value": long}]
        request = world.open_one(run, asked.proposal, asked.version, shown=shown, supersedes=old)
    assert request.changes == [{"key": "memo", "label": "Memo", "old": "short", "new": long}]
