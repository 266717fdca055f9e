"""A correction and a reversal of the same operation: whichever comes first, what stands at billing is what we count."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import transaction

from agentops import undoing
from agentops.pages.became import standing_sentence
from approvals.models import Allowance
from reconciliation import moves
from reconciliation.case_opening import open_case
from reconciliation.models import Case, Operation, Reversal
from reconciliation.services import anew, cases
from runs.services import operate
from runs.tools.base import Record
from runs.tools.registry import tool
from tests.desk.conftest import Desk, at_desk
from tests.desk.outside import again, lookup_brings, note, void
from tests.engine.conftest import CREATE
from tests.undoing.conftest import VOID, Undoing


@pytest.fixture
def desk(undo: Undoing, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return at_desk(undo.world, monkeypatch)


def doubted(desk: Desk, operation: Operation) -> Case:
    result = cases.doubt(operation_id=operation.pk, principal=desk.tomas, reason="the customer says so")
    assert result.ok, result
    return Case.objects.get(pk=result.detail["case"])


def claimed(desk: Desk, operation: Operation) -> Case:
    case = Case.objects.exclude(state="resolved").get(operation=operation)
    assert cases.claim(case_number=case.pk, principal=desk.tomas).ok
    return case


def opened(desk: Desk, operation: Operation) -> Case:
    """A case about what is not confirmed."""
    with transaction.atomic():
        run, locked = moves.lock(operation_id=operation.pk)
        kind = Case.Kind.NOT_CONFIRMED
        open_case(run=run, operation=locked, kind=kind, doubts=["asked"], why="asked often", actor=desk.tomas)
    return claimed(desk, operation)


def spent() -> list[int]:
    return [one.settled_minor for one in Allowance.objects.order_by("key")]


def test_a_second_record_counts_on_when_the_first_is_reversed(undo: Undoing, desk: Desk) -> None:
    """It came to light while the first was being undone: the reversal of one is not that of both."""
    _, credit = undo.credited()
    first, once = credit.external_reference, spent()
    run = undo.approved(credit)
    second = again(credit)
    given = {"reference": first, "other_reference": second}
    assert desk.settle(doubted(desk, credit), "twice", **given) == "ok" and spent() == [2 * one for one in once]
    assert undo.world.work(run).state == "completed"
    undo.relay()
    assert (undo.state(credit), Reversal.objects.get().result, len(undo.voids())) == ("succeeded", "done", 1)
    assert undo.propose(credit).code == "ok", "the second one"
    case = claimed(desk, credit)
    assert f"{first} was reversed, and {second} still stands" in case.why
    assert desk.settle(case, "stands") == "not_right"
    assert desk.settle(case, "happened", reference=second) == "ok"
    undo.relay()
    assert (undo.state(credit), credit.external_reference, spent()) == ("succeeded", second, once)


def test_what_was_only_shown_keeps_the_operation_from_being_called_reversed(undo: Undoing, desk: Desk) -> None:
    _, credit = undo.credited()
    run, once = undo.approved(credit), spent()
    second = again(credit)
    assert desk.ask(credit) == "several"
    undo.world.work(run)
    undo.relay()
    assert (undo.state(credit), spent()) == ("succeeded", once)
    assert any(f"{second} still stands" in one.why for one in Case.objects.filter(operation=credit))
    void(note(1, undo.world))
    desk.until_proof()
    case = Case.objects.filter(operation=credit).exclude(state="resolved").first()
    assert case is not None and cases.claim(case_number=case.pk, principal=desk.tomas).ok
    assert desk.settle(case, "did_not") == "ok"
    assert undo.state(credit) == "failed" and not any(spent())


def test_a_further_second_record_counts_although_an_earlier_one_was_reversed(undo: Undoing, desk: Desk) -> None:
    _, credit = undo.credited()
    first, once = credit.external_reference, spent()
    twice = {"reference": first, "other_reference": again(credit)}
    assert desk.settle(doubted(desk, credit), "twice", **twice) == "ok"
    undo.world.work(undo.approved(credit))
    undo.relay()
    assert (undo.state(credit), spent()) == ("succeeded", once)
    third = again(credit)
    assert desk.settle(doubted(desk, credit), "twice", reference=first, other_reference=third) == "ok"
    credit.refresh_from_db()
    assert (credit.other_reference, spent()) == (third, [2 * one for one in once])
    for left in (once, [0]):
        undo.world.work(undo.approved(credit))
        undo.relay()
        assert spent() == left
    assert undo.state(credit) == "compensated" and len(undo.voids()) == 3
    assert standing_sentence(operation=credit).endswith("It was reversed later.")


def test_a_reversal_that_was_done_after_all_is_booked(undo: Undoing, desk: Desk) -> None:
    """It was settled as not done, its run was given up, and then it turned out otherwise."""
    _, credit = undo.credited()
    undo.world.fault("timeout_without_effect", VOID)
    own = undo.unconfirmed(undo.approved(credit))
    made = Operation.objects.get(run=own)
    desk.until_proof()
    assert desk.settle(opened(desk, made), "did_not") == "ok"
    assert undo.world.work(own).state == "needs_person"
    closed = {"as_state": "failed", "reason": "it is left", "what_stays": lambda _: ""}
    assert operate.close(run_id=own.pk, principal=undo.priya, **closed).ok
    undo.relay()
    assert (Reversal.objects.get().result, undo.state(credit)) == ("failed", "succeeded")
    tool(made.tool).send(effect=made.effect, identity=made.identity, wire_key=f"{made.identity}:late")
    assert desk.ask(made) == "found"
    reference = f"void of {credit.external_reference}"
    assert desk.settle(claimed(desk, made), "happened", reference=reference) == "ok"
    undo.relay()
    assert undo.state(credit) == "compensated" and not any(spent()) and len(undo.voids()) == 1
    desk.until_proof()
    assert desk.settle(doubted(desk, made), "did_not") == "reversal_booked"


def test_what_is_reversed_has_to_be_void_there(undo: Undoing, desk: Desk) -> None:
    _, credit = undo.credited()
    undo.world.work(undo.approved(credit))
    undo.relay()
    case = opened(desk, credit)
    assert (undo.state(credit), desk.settle(case, "stands")) == ("compensated", "ok")
    shown = credit.observations.filter(source="sender").latest("at").raw["records"][0]
    stands = Record(reference=shown["reference"], identity=credit.identity, at=None, mismatch={}, raw={})
    lookup_brings(credit, stands)
    case = claimed(desk, credit)
    assert f"{credit.external_reference} stands, although" in case.why
    lookup_brings(credit, stands)
    assert desk.settle(case, "stands", ask=False) == "not_right"


def test_both_records_are_at_stake_in_what_happened_twice(undo: Undoing, desk: Desk, settings: Any) -> None:
    _, credit = undo.credited()
    given = {"reference": credit.external_reference, "other_reference": again(credit)}
    assert desk.settle(doubted(desk, credit), "twice", **given) == "ok"
    assert credit.amount_minor is not None
    settings.SETTLE_ALONE_UP_TO = {"USD": credit.amount_minor}
    for number in (0, 1):
        void(note(number, undo.world))
    desk.until_proof()
    assert desk.settle(doubted(desk, credit), "did_not") == "proposed"


def test_what_is_corrected_meanwhile_is_not_told_as_it_was(undo: Undoing, desk: Desk) -> None:
    undo.world.fault("overloaded", "helpdesk.tickets.update", times=None, retry_after="none", seconds=1)
    run = undo.world.work(
        undo.world.start("CS-8815"), until=lambda one: one.state == "waiting" and undo.world.used()[0][1] > 0
    )
    credit = undo.world.credit(run)
    void(note(0, undo.world))
    desk.until_proof()
    case = doubted(desk, credit)
    assert desk.settle(case, "did_not") == "ok"
    undo.world.sandbox.clear_faults()
    run = undo.world.work(run)
    assert (run.state, run.person_code) == ("needs_person", "in_dispute")
    assert "was corrected after this was prepared" in run.person_reason
    assert [one["operation"] for one in undo.world.effects()] == [CREATE], "nobody is told of it"
    assert operate.gather_again(run_id=run.pk, principal=undo.priya, reason="go on without it").ok
    run = undo.world.work(run, until=lambda one: one.state not in ("gathering", "deciding", "authorising"))
    assert run.person_code != "in_dispute"


def test_the_earlier_of_two_tries_is_booked_when_it_turns_out_to_have_been_done(
    undo: Undoing, desk: Desk, settings: Any
) -> None:
    """One run tried twice: the first was settled as not done, the second was given up before it was sent."""
    _, credit = undo.credited()
    undo.world.fault("timeout_without_effect", VOID)
    own = undo.unconfirmed(undo.approved(credit))
    made = Operation.objects.get(run=own)
    desk.until_proof()
    assert desk.settle(opened(desk, made), "did_not") == "ok"
    assert undo.world.work(own).state == "needs_person"
    assert operate.gather_again(run_id=own.pk, principal=undo.priya, reason="once more").ok
    assert undo.world.work(own).state == "awaiting_approval" and undo.world.vote(own).code == "approved"
    undo.world.fault("overloaded", VOID, times=None, retry_after="none", seconds=1)
    undo.world.work(
        own, until=lambda one: Operation.objects.filter(run=one, attempts__closed_at__isnull=False).count() > 1
    )
    assert operate.cancel(run_id=own.pk, principal=undo.priya, reason="it is left").ok
    assert undo.world.work(own).state == "cancelled"
    undo.world.sandbox.clear_faults()
    undo.relay()
    assert (Reversal.objects.get().result, undo.state(credit)) == ("cancelled", "succeeded")
    tool(made.tool).send(effect=made.effect, identity=made.identity, wire_key=f"{made.identity}:late")
    assert desk.ask(made) == "found"
    reference = f"void of {credit.external_reference}"
    assert desk.settle(claimed(desk, made), "happened", reference=reference) == "ok"
    undoing.work_off(limit=10)
    assert undo.state(credit) == "compensated" and not any(spent()) and len(undo.voids()) == 1
    settings.SETTLE_ALONE_UP_TO = {"USD": 1}
    undo.world.people["priya"].user_permissions.add(Permission.objects.get(codename="settle_case"))
    again_by = {"operation_id": credit.pk, "reason": "it counts after all"}
    assert anew.allow(principal=undo.priya, **again_by).code == "takes_another", "they had it undone"
    assert anew.allow(principal=desk.tomas, **again_by).ok
