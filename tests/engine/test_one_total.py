"""Eight approved at once over one total that has room for one, round after round (RACE_ROUNDS, otherwise four)."""

import copy
import os
import threading
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import Sum

from agentops import engine
from agentops.bench import measure, plain
from agentops.workflows.registry import WORKFLOWS
from approvals.evaluation import TotalNeed
from approvals.models import Allowance, ApprovalRequest
from approvals.objections import Objection
from reconciliation import room
from reconciliation.models import Operation, Reservation
from runs.actions import Action
from runs.models import Event, Run
from runs.tools.base import Record
from runs.tools.registry import TOOLS
from tests import published
from tests.approvals.world import at_once

ROUNDS = int(os.environ.get("RACE_ROUNDS", "4"))
AT_ONCE, FIRST, EACH, ROOM = 8, 3_000, 6_000, 10_000


@pytest.fixture
def sent(manager: User, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was really sent. Notes cost 60.00 each, on the account of their round, which has 100.00; the first costs
    30.00, and is there before the others."""
    calls: list[str] = []

    class Priced(plain.Plain):
        def variables(self, *, action: Action, facts: Any) -> dict[str, Any]:
            account, _, number = action.effect["item"].partition("-")
            known = super().variables(action=action, facts=facts)
            return {**known, "account": account, "currency": "USD", "amount_minor": EACH if int(number) else FIRST}

    class Counted(plain.KeepNote):
        def send(self, *, effect: dict[str, str], identity: str, wire_key: str) -> Record:
            calls.append(effect["item"])
            return super().send(effect=effect, identity=identity, wire_key=wire_key)

    monkeypatch.setitem(WORKFLOWS, plain.NAME, {"1": Priced()})
    monkeypatch.setitem(TOOLS, plain.NOTE_CONTRACT.name, Counted)
    document = copy.deepcopy(plain.POLICY.document)
    document["totals"] = [
        {
            "id": "refundable", "text": "No more than 100.00 an account", "key": ["account", "currency"],
            "amount": "amount_minor", "limits": {"USD": str(ROOM)},
        }
    ]  # fmt: skip
    published.publish(slug="plain", name="Plain work", tools=list(plain.POLICY.tools), document=document, note="")
    return calls


def approved(manager: User) -> list[Run]:
    """The first run about an account, and eight more, each approved, none carried out."""
    items = measure.submit(count=1 + AT_ONCE)
    runs = list(Run.objects.filter(subject__in=items).order_by("subject"))
    for run in runs:
        engine.advance(run_id=run.pk)
        asked = ApprovalRequest.objects.get(run=run)
        measure.approve_one(request_id=asked.pk, page_digest=asked.page_digest, manager=manager)
    return runs


def meeting(monkeypatch: pytest.MonkeyPatch) -> threading.Barrier:
    """All eight have come to the total before the first of them looks at it."""
    together = threading.Barrier(AT_ONCE, timeout=120)
    look = room.lacking

    def lacking(*, totals: list[TotalNeed]) -> Objection | None:
        if not together.broken:
            together.wait()
        return look(totals=totals)

    monkeypatch.setattr(room, "lacking", lacking)
    return together


def test_of_eight_at_once_one_is_sent_and_seven_are_over_the_limit(
    manager: User, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    together = meeting(monkeypatch)
    together.abort()
    for number in range(1, ROUNDS + 1):
        first, *runs = approved(manager)
        engine.advance(run_id=first.pk)
        together.reset()
        ended = at_once(*(partial(engine.advance, run_id=run.pk) for run in runs))
        assert not [one for one in ended if isinstance(one, BaseException)] and not together.broken
        together.abort()  # whatever comes now comes by itself
        for run in runs:  # one that met the others at a lock goes on afterwards
            while engine.advance(run_id=run.pk):
                pass
        states = Run.objects.filter(pk__in=[run.pk for run in runs]).values_list("state", "person_code")
        assert sorted(states) == [("completed", "")] + [("needs_person", "over_limit")] * (AT_ONCE - 1)
        assert len(sent) == 2 * number == len(set(sent))
    assert Operation.objects.count() == Reservation.objects.filter(state="settled").count() == 2 * ROUNDS
    totals = Allowance.objects.values_list("reserved_minor", "settled_minor", "limit_minor")
    assert list(totals) == [(0, FIRST + EACH, ROOM)] * ROUNDS
    assert Reservation.objects.aggregate(all=Sum("amount_minor"))["all"] == ROUNDS * (FIRST + EACH)
    assert not Event.objects.filter(kind="run.step_failed").exists()
