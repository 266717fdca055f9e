"""Where a reversal cannot be proposed, or what came of it cannot be booked, that is kept, shown, tried again, and a
person's at last."""

import datetime as dt
from typing import Any

import pytest

from agentops import undoing
from reconciliation import reversing
from reconciliation.models import Case, Operation, Reversal
from reconciliation.queries import disputes
from reconciliation.services import reversals
from runs import record
from runs.models import Event, Run
from runs.one_by_one import NotAll
from runs.services import operate
from tests.undoing.conftest import Undoing
from tests.undoing.test_pages import client
from tests.undoing.test_several import close, several

__all__ = ["several"]


def fails(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("no such thing")


def try_again(undo: Undoing) -> None:
    """What is due is due now."""
    Reversal.objects.filter(due_at__isnull=False, ended_at__isnull=True).update(due_at=record.clock.now())
    undoing.work_off(limit=10)


def kinds(run: Run) -> list[str]:
    found = Event.objects.filter(stream=f"run:{run.pk}", kind__regex="^(reversal|case)").order_by("seq")
    return [one.kind for one in found]


def test_what_cannot_be_started_is_told_tried_again_and_a_persons_at_last(
    undo: Undoing, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, credit = undo.credited()
    assert undo.propose(credit).ok
    monkeypatch.setattr(reversals, "MOST_TRIES", 3)
    with monkeypatch.context() as patch:
        patch.setattr(undoing, "workflow", fails)
        with pytest.raises(NotAll, match="no such thing"):
            undoing.work_off(limit=10)
        assert undoing.work_off(limit=10) == 0, "not at once again"
        reversal = Reversal.objects.get()
        assert (reversal.tries, reversal.problem, reversal.ended_at) == (1, "RuntimeError: no such thing", None)
        priya = client(undo, "priya")
        shown = priya.get(f"/runs/{first.pk}/?tab=operations").content.decode()
        assert "Could not be proposed yet" in shown and "RuntimeError: no such thing" in shown
        assert "Reversals that fail" in priya.get("/overview/").content.decode()
        for _ in range(2):
            with pytest.raises(NotAll):
                try_again(undo)
    reversal.refresh_from_db()
    case = Case.objects.get()
    assert (reversal.result, reversal.run, case.kind, case.state) == ("failed", None, "not_undone", "open")
    assert str(credit.external_reference) in case.why and "no such thing" in case.why
    assert kinds(first) == ["reversal.proposed", "reversal.delayed", "reversal.ended", "case.opened"]
    assert not disputes().exists() and undo.state(credit) == "succeeded"
    page = client(undo, "tomas").get(f"/cases/{case.pk}/").content.decode()
    assert "To be undone in billing, and could not be" in page and f"/operations/{credit.pk}/reverse?case=" in page
    assert page.count('name="verdict"') == 1 and "It stays, or was undone outside" in page
    assert "Reversals that fail" not in client(undo, "priya").get("/overview/").content.decode()

    assert undo.propose(credit).ok, "somebody proposes it anew"
    assert undo.world.vote(undo.world.work(undo.run_of(credit))).code == "approved"
    undo.world.work(undo.run_of(credit))
    undo.relay()
    case.refresh_from_db()
    assert (undo.state(credit), case.state, case.verdict) == ("compensated", "resolved", "by_probe")


def test_one_that_fails_a_while_is_started_once(undo: Undoing, monkeypatch: pytest.MonkeyPatch) -> None:
    _, credit = undo.credited()
    assert undo.propose(credit).ok
    with monkeypatch.context() as patch:
        patch.setattr(reversals, "link", fails)  # the run is started, and nobody can write that down
        with pytest.raises(NotAll):
            undoing.work_off(limit=10)
    try_again(undo)
    reversal = Reversal.objects.get()
    assert (reversal.tries, reversal.problem, reversal.run) == (0, "", Run.objects.get(workflow="reversal"))


def test_what_cannot_be_booked_goes_on_being_tried_and_a_person_knows(
    undo: Undoing, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, credit = undo.credited()
    undo.world.work(undo.approved(credit))
    monkeypatch.setattr(reversals, "MOST_TRIES", 2)
    with monkeypatch.context() as patch:
        patch.setattr(reversing, "book", fails)
        for _ in range(3):
            with pytest.raises(NotAll):
                try_again(undo)
    reversal = Reversal.objects.get()
    assert (reversal.tries, reversal.ended_at, Case.objects.get().state) == (3, None, "open")
    try_again(undo)
    assert (undo.state(credit), Case.objects.get().state) == ("compensated", "resolved")


@pytest.mark.parametrize("way", ["cancel", "close"])
def test_a_declaration_that_fails_holds_up_no_end_of_a_run(
    undo: Undoing, several: Any, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    run = several("backward")
    newest, second, oldest = Operation.objects.filter(run=run).order_by("-created_at")
    real = reversing._shown

    def shown(operation: Operation, reference: str) -> Any:
        return fails() if operation == newest else {} if operation == second else real(operation, reference)

    monkeypatch.setattr(reversing, "_shown", shown)
    if way == "close":
        close(undo, run)
    else:
        assert operate.cancel(run_id=run.pk, principal=undo.priya, reason="wrong customer").ok
        run = undo.world.work(run)
    run.refresh_from_db()
    assert run.is_over
    assert [one.operation for one in Reversal.objects.all()] == [oldest]
    cases = list(Case.objects.order_by("number"))
    assert [(one.operation, one.kind) for one in cases] == [(newest, "not_undone"), (second, "not_undone")]
    assert all(one.label in run.outcome for one in cases) and "no such thing" in cases[0].why


def test_what_was_to_follow_one_that_cannot_be_proposed_is_a_persons_too(
    undo: Undoing, several: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = several("backward")
    close(undo, run)
    monkeypatch.setattr(reversals, "MOST_TRIES", 1)
    monkeypatch.setattr(undoing, "workflow", fails)
    with pytest.raises(NotAll):
        undoing.work_off(limit=10)
    assert [one.result for one in Reversal.objects.order_by("created_at")] == ["failed", "dropped", "dropped"]
    newest_first = [one.operation for one in Reversal.objects.order_by("created_at")]
    assert [one.operation for one in Case.objects.order_by("number")] == newest_first


def test_a_run_that_is_over_before_it_is_linked_is_followed_up_all_the_same(
    undo: Undoing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing makes the reversal due when its run ends, as long as the row does not name the run."""
    _, credit = undo.credited()
    assert undo.propose(credit).ok
    real = reversals.link

    def late(*, reversal_id: Any, run: Run) -> None:
        assert operate.cancel(run_id=run.pk, principal=undo.priya, reason="not any more").ok
        assert undo.world.work(run).state == "cancelled"
        real(reversal_id=reversal_id, run=run)

    monkeypatch.setattr(reversals, "link", late)
    monkeypatch.setattr(reversals, "LOOK_AFTER", dt.timedelta(0))
    undo.relay()
    assert Reversal.objects.get().result == "cancelled" and undo.propose(credit).ok, "its place is free again"
