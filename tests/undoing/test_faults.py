"""Whatever billing does with the call that voids a credit note, its ledger has one void in the end."""

from typing import Any

import pytest

from reconciliation.models import Attempt, Operation, Reversal
from tests.engine.test_ticket import MODES
from tests.undoing.conftest import VOID, Undoing


@pytest.mark.parametrize(("mode", "parameters"), MODES, ids=[mode for mode, _ in MODES])
def test_a_fault_at_the_void(undo: Undoing, mode: str, parameters: dict[str, Any]) -> None:
    _, credit = undo.credited()
    run = undo.approved(credit)
    undo.world.fault(mode, VOID, **parameters)
    run = undo.world.work(run)
    undo.relay()
    assert undo.world.used() == [(mode, 1)], "it really happened"
    assert run.state == "completed", (run.person_reason, run.waits_for)
    made = Operation.objects.get(run=run)
    assert [one["identity"] for one in undo.voids()] == [made.identity]
    assert (made.state, undo.state(credit), Reversal.objects.get().result) == ("succeeded", "compensated", "done")
    keys = set(Attempt.objects.filter(operation=made).values_list("wire_key", flat=True))
    assert keys == {f"{made.identity}:0"}, "always under the one key"


@pytest.mark.parametrize("mode", ["lookup_not_found", "lookup_stale", "lookup_error"])
def test_a_lookup_that_fails_after_a_lost_answer_voids_nothing_twice(undo: Undoing, mode: str) -> None:
    _, credit = undo.credited()
    run = undo.approved(credit)
    undo.world.fault("execute_and_timeout", VOID)
    run = undo.unconfirmed(run)
    undo.world.fault(mode, "billing.events.list")
    run = undo.world.work(run)
    undo.relay()
    assert dict(undo.world.used()) == {"execute_and_timeout": 1, mode: 1}
    assert (run.state, undo.state(credit), len(undo.voids())) == ("completed", "compensated", 1), run.person_reason
