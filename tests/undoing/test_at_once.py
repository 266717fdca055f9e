"""A correction and a reversal of the same operation at once: one after the other, in one order of locks, and what
billing holds is what we count."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from agentops import undoing
from reconciliation import moves, reversing
from reconciliation.models import Case, Operation, Reversal
from runs.services import principals
from tests.approvals.world import at_once
from tests.desk.conftest import Desk
from tests.desk.outside import again
from tests.desk.test_lock_order import judge, watching
from tests.undoing.conftest import Undoing
from tests.undoing.test_corrected import desk, doubted, spent
from tests.undoing.test_pages import client

__all__ = ["desk"]


def settling(undo: Undoing, tomas: Client, case: Case, verdict: str, *named: str) -> Callable[[], int]:
    form = {"verdict": verdict, f"evidence_{verdict}": "seen in billing", f"reference_{verdict}": named[0]}
    if len(named) > 1:
        form[f"other_reference_{verdict}"] = named[1]
    form["as_user"] = str(undo.world.people["tomas"].pk)
    return lambda: tomas.post(f"/cases/{case.pk}/settle", form).status_code


def proposing(undo: Undoing, priya: Client, credit: Operation) -> Callable[[], int]:
    form = {"reason": "the outage was another one", "as_user": undo.world.people["priya"].pk}
    return lambda: priya.post(f"/operations/{credit.pk}/reverse", form).status_code


def given_up(credit: Operation) -> None:
    """The living reversal ends, before it had a run."""
    with transaction.atomic():
        run, operation = moves.lock(operation_id=credit.pk)
        reversal = Reversal.objects.select_for_update(of=("self",)).get(operation=operation, ended_at=None)
        reversal.operation = operation
        result = Reversal.Result.CANCELLED
        reversing.end(run=run, reversal=reversal, result=result, what="left", actor=principals.system())


def test_proposing_and_correcting_again_and_again(undo: Undoing, desk: Desk) -> None:
    _, credit = undo.credited()
    once, first = spent(), str(credit.external_reference)
    names = [first, again(credit)]
    tomas, priya = client(undo, "tomas"), client(undo, "priya")
    for _ in range(10):
        case = doubted(desk, credit)
        correct = settling(undo, tomas, case, "twice", *names)
        assert at_once(correct, proposing(undo, priya, credit)) == [302, 302]
        credit.refresh_from_db()
        assert [credit.external_reference, credit.other_reference] == names
        assert Reversal.objects.get(ended_at=None).reference in names
        assert spent() == [2 * one for one in once]
        given_up(credit)
        names.reverse()
    assert credit.corrections.count() == 10


def relaying() -> Any:
    return undoing.work_off(limit=10)


def test_booking_and_correcting_take_it_from_the_totals_once(undo: Undoing, desk: Desk) -> None:
    _, credit = undo.credited()
    once, first = spent(), str(credit.external_reference)
    tomas = client(undo, "tomas")
    for number in (1, 2, 3):
        second = again(credit)
        assert settling(undo, tomas, doubted(desk, credit), "twice", first, second)() == 302
        undo.world.work(undo.approved(credit))  # the second one is void there, and not booked here
        correct = settling(undo, tomas, doubted(desk, credit), "happened", first)
        status, *relays = at_once(correct, relaying, relaying)
        assert status in (302, 409) and all(isinstance(one, int) for one in relays), (status, relays)
        undo.relay()
        assert (undo.state(credit), credit.external_reference, credit.other_reference) == ("succeeded", first, "")
        assert spent() == once and len(undo.voids()) == number
        assert [one.result for one in Reversal.objects.all()] == ["done"] * number
        for case in Case.objects.filter(operation=credit).exclude(state="resolved"):
            assert desk.settle(case, "stands") == "ok"


def test_both_lock_in_one_order(undo: Undoing, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    _, credit = undo.credited()
    first, second = str(credit.external_reference), again(credit)
    case = doubted(desk, credit)
    with watching(monkeypatch) as seen:
        assert desk.settle(case, "twice", reference=first, other_reference=second) == "ok"
        assert undo.propose(credit).ok
        assert undoing.work_off(limit=10) == 1
    run = undo.world.work(undo.run_of(credit))
    assert undo.world.vote(run).code == "approved"
    undo.world.work(run)
    with watching(monkeypatch) as booked:
        assert undoing.work_off(limit=10) == 1
    assert judge(seen) >= {"runs_run", "reconciliation_operation", "approvals_allowance", "reconciliation_case"}
    assert "reconciliation_reversal" in judge(booked)
