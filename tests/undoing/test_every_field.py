"""For every tool and every field of its effect: changed in the database after the yes, the worker sends nothing. The
sandbox's own log and ledger are the judges; the same way unchanged sends once."""

import json
from dataclasses import replace

import psycopg
import pytest

from reconciliation.models import Operation
from runs.tools.registry import contract
from tests.undoing.conftest import Undoing
from tests.undoing.test_every_tool import EVERY, STARTED, asked, other, tampered

CASES = [(tool, name) for tool in EVERY for name in sorted(contract(tool).effect.model_fields)]


def written(undo: Undoing) -> tuple[int, int]:
    """How many calls that would write have reached the other side, and how much it has really done."""
    calls = [row for row in undo.world.sandbox.requests() if row["method"] != "GET"]
    return len(calls), len(undo.world.sandbox.ledger())


@pytest.mark.parametrize(("tool", "field"), CASES)
def test_a_field_changed_after_the_yes_is_never_sent(
    undo: Undoing, owner: psycopg.Connection, tool: str, field: str
) -> None:
    run = STARTED[tool](undo)
    proposal = asked(undo, run, tool)
    before = written(undo)
    effect = {**proposal.effect, field: other(proposal.effect[field])}
    digest = replace(proposal.action(), effect=effect).digest()  # by somebody who does it carefully
    with tampered(owner, proposal, effect=json.dumps(effect), action_digest=digest):
        run = undo.world.work(run, until=lambda one: one.state == "needs_person")
        assert run.person_code == "altered", run.person_reason
    assert written(undo) == before
    assert not Operation.objects.filter(run=run, tool=tool).exists()


@pytest.mark.parametrize("tool", EVERY)
def test_unchanged_it_is_sent_once(undo: Undoing, tool: str) -> None:
    run = STARTED[tool](undo)
    proposal = asked(undo, run, tool)
    before = written(undo)

    def done() -> Operation | None:
        return Operation.objects.filter(proposal=proposal, state="succeeded").first()

    undo.world.work(run, until=lambda one: done() is not None)
    operation = done()
    assert operation is not None and operation.attempts.count() == 1
    calls = written(undo)[0] - before[0]
    ledger = [row for row in undo.world.sandbox.ledger() if row["identity"] == operation.identity]
    assert (calls >= 1, len(ledger)) == (True, 1)
