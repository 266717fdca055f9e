"""A reversal is proposed, approved, carried out and reconciled like any other action, and then the first one is
compensated."""

import pytest

from approvals.models import Allowance
from reconciliation.models import Operation, Reversal
from runs import record
from runs.services import tokens
from tests.api.caller import Caller
from tests.undoing.conftest import Undoing


def spent() -> int:
    return sum(Allowance.objects.values_list("settled_minor", flat=True))


def test_a_credit_is_reversed_by_an_action_of_its_own(undo: Undoing) -> None:
    first, credit = undo.credited()
    before = spent()
    run = undo.asked(credit)
    assert (run.workflow, run.initiator, run.capabilities) == ("reversal", undo.priya, ["billing.void_credit"])
    assert (undo.state(credit), spent(), undo.voids()) == ("succeeded", before, [])
    request = undo.world.request(run)
    assert credit.external_reference in request.ask and str(credit.identity) in str(request.page)

    assert undo.world.vote(run).code == "approved"
    run = undo.world.work(run)
    assert run.state == "completed", run.person_reason
    undo.relay()
    [void] = undo.voids()
    made = Operation.objects.get(run=run)
    assert (void["identity"], made.reverses, made.state) == (made.identity, credit, "succeeded")
    assert made.external_reference == f"void of {credit.external_reference}"
    assert (undo.state(credit), spent()) == ("compensated", before - (credit.amount_minor or 0))
    assert [one.state for one in credit.reservations.all()] == ["released"]
    told = Caller(tokens.issue(name="helpdesk", label="Help desk")).read(first.pk).json()["operations"][0]
    assert (told["outcome"], told["reversal"], told["reference"]) == ("compensated", "done", credit.external_reference)
    reversal = Reversal.objects.get()
    assert (reversal.result, reversal.run, reversal.due_at) == ("done", run, None)
    for one in (first, run):
        assert record.verify(stream=f"run:{one.pk}") is None
    assert undo.propose(credit).detail["why"] == "It is reversed already."


@pytest.mark.parametrize("mode", ["execute_and_timeout", "timeout_without_effect"])
def test_while_it_is_not_confirmed_the_credit_still_counts(undo: Undoing, mode: str) -> None:
    _, credit = undo.credited()
    before = spent()
    run = undo.approved(credit)
    undo.world.fault(mode, "billing.credit_notes.void")
    run = undo.unconfirmed(run)
    undo.relay()
    assert (undo.state(credit), spent(), Reversal.objects.get().result) == ("succeeded", before, "")
    run = undo.world.work(run)
    undo.relay()
    assert (run.state, undo.state(credit), len(undo.voids())) == ("completed", "compensated", 1)
    assert spent() < before and undo.world.used() == [(mode, 1)]
