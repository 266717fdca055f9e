"""What was undone, or turned out not to stand, is done anew only where a person lets it; the ledger of the other side
is the judge."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import IntegrityError, transaction

from reconciliation.case_opening import open_case
from reconciliation.models import Case, Operation
from reconciliation.services import anew
from runs import record, transitions
from runs.models import Principal, Run
from runs.models.run import RunState
from runs.services import operate, principals
from tests.desk.conftest import Desk
from tests.desk.outside import note, void
from tests.undoing.conftest import Undoing
from tests.undoing.test_corrected import desk, doubted
from tests.undoing.test_pages import client

__all__ = ["desk"]


def ledger(undo: Undoing) -> list[str]:
    """The credit notes that billing holds for us: whether each stands."""
    ours = {one["objects"]["credit_note"] for one in undo.world.credits()}
    return sorted(one["status"] for one in undo.world.sandbox.world()["credit_notes"] if one["id"] in ours)


def compensated(undo: Undoing) -> Operation:
    _, credit = undo.credited()
    undo.world.work(undo.approved(credit))
    undo.relay()
    assert undo.state(credit) == "compensated"
    return credit


def allow(credit: Operation, principal: Principal, reason: str = "the first incident counts after all") -> str:
    return anew.allow(operation_id=credit.pk, principal=principal, reason=reason).code


def test_no_agent_pays_again_what_was_reversed_until_a_person_allows_it(undo: Undoing) -> None:
    credit = compensated(undo)
    again = undo.world.work(undo.world.start("CS-8815", key="again"))
    assert again.state == "needs_person" and "may allow on its page that it is done anew" in again.person_reason
    assert ledger(undo) == ["void"] and not again.operations.exists()

    tomas = principals.of_user(user=undo.world.people["tomas"])
    assert (allow(credit, undo.priya), allow(credit, tomas, " ")) == ("no_right", "reason_needed")
    to, me = f"/operations/{credit.pk}/", undo.world.people["tomas"].pk
    page = client(undo, "tomas").get(to).content.decode()
    assert "Not by itself" in page and f"{to}anew" in page
    assert f"{to}anew" not in client(undo, "priya").get(to).content.decode()
    form = {"reason": "the first incident counts after all", "as_user": me}
    assert client(undo, "tomas").post(f"{to}anew", {**form, "as_user": 0}).status_code == 403
    assert client(undo, "tomas").post(f"{to}anew", form).status_code == 302
    page = client(undo, "tomas").get(to).content.decode()
    assert "the same may be proposed again" in page and "the first incident counts after all" in page
    assert allow(credit, tomas) == "already"

    run = undo.world.work(undo.world.start("CS-8815", key="once more"))
    assert run.state == "completed", run.outcome
    replies = Operation.objects.filter(tool="helpdesk.draft_reply", state="succeeded")
    assert len({one.proposal.effect["subject"] for one in replies}) == 2, "the customer hears of either credit"
    made = undo.world.credit(run)
    assert ledger(undo) == ["issued", "void"] and made.business_key == credit.business_key
    assert len({one["identity"] for one in undo.world.credits()}) == 2
    third = undo.world.work(undo.world.start("CS-8815", key="a third time"))
    assert third.state == "needs_person" and ledger(undo) == ["issued", "void"]
    assert undo.propose(made).ok, "and it is undone like any other"
    for one in (credit.run, run):
        assert record.verify(stream=f"run:{one.pk}") is None


def test_what_is_not_reversed_or_not_sure_is_not_given_up(undo: Undoing, settings: Any) -> None:
    tomas = principals.of_user(user=undo.world.people["tomas"])
    first, credit = undo.credited()
    assert allow(credit, tomas) == "not_reversed"
    with pytest.raises(IntegrityError), transaction.atomic():
        Operation.objects.filter(pk=credit.pk).update(anew_allowed=True)
    undo.world.work(undo.approved(credit))
    undo.relay()
    settings.SETTLE_ALONE_UP_TO = {"USD": 1}
    undo.world.people["priya"].user_permissions.add(Permission.objects.get(codename="settle_case"))
    case = stands_again(credit)
    assert allow(credit, tomas) == "in_dispute"
    Case.objects.filter(pk=case.pk).update(state="resolved", verdict="stands", resolved_by=tomas, resolved_at=clock())
    assert allow(credit, undo.priya) == "takes_another"
    settings.SETTLE_ALONE_UP_TO = {"USD": credit.amount_minor}  # what was sent is within it; what an admin settled, not
    Operation.objects.filter(pk=credit.pk).update(settled_by="person", actual={"actual_minor": "500000"})
    assert allow(credit, undo.priya) == "takes_another"
    assert allow(credit, tomas) == "ok"
    stands_again(credit)
    credit.refresh_from_db()
    assert credit.key_held, "in doubt again, it holds its key again"
    with pytest.raises(IntegrityError), transaction.atomic():
        Operation.objects.filter(pk=credit.pk).update(anew_allowed=False)
    assert first.state == "completed"


def test_up_to_the_limit_of_one_person_who_had_it_reversed_lets_it_be_done_anew(undo: Undoing, settings: Any) -> None:
    credit = compensated(undo)
    undo.world.people["priya"].user_permissions.add(Permission.objects.get(codename="settle_case"))
    assert credit.reversals.get().proposed_by == undo.priya
    settings.SETTLE_ALONE_UP_TO = {"USD": (credit.amount_minor or 0) - 1}
    assert allow(credit, undo.priya) == "takes_another"
    settings.SETTLE_ALONE_UP_TO = {"USD": credit.amount_minor}
    assert allow(credit, undo.priya) == "ok"
    run = undo.world.work(undo.world.start("CS-8815", key="anew"))
    assert run.state == "completed", run.outcome
    assert ledger(undo) == ["issued", "void"]


def clock() -> Any:
    return record.clock.now()


def stands_again(credit: Operation) -> Case:
    credit.refresh_from_db()
    with transaction.atomic():
        run = Run.objects.select_for_update().get(pk=credit.run_id)
        kind = Case.Kind.DIFFERENT
        return open_case(
            run=run, operation=credit, kind=kind, doubts=["stands"], why="it stands", actor=principals.system()
        )


def test_what_a_correction_took_back_is_not_proposed_anew_by_the_run_itself(undo: Undoing, desk: Desk) -> None:
    """It waited to read again while the credit was corrected to *nothing of it stands*."""
    undo.world.fault("overloaded", "helpdesk.tickets.update", times=None, retry_after="none", seconds=1)
    run = undo.world.work(
        undo.world.start("CS-8815"), until=lambda one: one.state == "waiting" and undo.world.used()[0][1] > 0
    )
    credit = undo.world.credit(run)
    void(note(0, undo.world))
    desk.until_proof()
    assert desk.settle(doubted(desk, credit), "did_not") == "ok"
    undo.world.sandbox.clear_faults()
    with transaction.atomic():
        locked = Run.objects.select_for_update().get(pk=run.pk)
        transitions.move(run=locked, to=RunState.GATHERING, actor=principals.system(), why="facts moved")
    run = undo.world.work(run)
    assert (run.state, run.person_code) == ("needs_person", "in_dispute")
    assert ledger(undo) == ["void"] and run.proposals.filter(tool=credit.tool).count() == 1
    # a person sends it on, and the business key is free: once more, under an identity of its own
    assert operate.gather_again(run_id=run.pk, principal=undo.priya, reason="make it anew").ok
    run = undo.world.work(run)
    assert run.state == "completed", run.person_reason
    assert ledger(undo) == ["issued", "void"]
    assert len({one["identity"] for one in undo.world.credits()}) == 2
