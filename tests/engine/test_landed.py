"""A commit landed and its answer was lost: what was in it is not done a second time."""

from typing import Any

import pytest
from django.db import OperationalError

from agentops import engine, patience
from reconciliation.services import answers
from runs.models import Proposal
from tests.engine.conftest import World


def test_what_follows_from_a_success_is_proposed_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    really, broken = answers.record_answer, []

    def record_answer(**given: Any) -> Any:
        made = really(**given)
        if given["attempt_id"] not in broken:
            broken.append(given["attempt_id"])
            raise OperationalError("the connection was closed")
        return made

    monkeypatch.setattr(answers, "record_answer", record_answer)
    monkeypatch.setattr(patience, "PAUSES", (0.01,))
    run = world.approved()
    for _ in range(6):
        engine.advance(run_id=run.pk)
    run.refresh_from_db()
    steps = list(Proposal.objects.filter(run=run).order_by("number").values_list("step", flat=True))
    assert run.state == "completed", (run.state, run.person_reason)
    assert len(steps) == len(set(steps)) == len(broken) == 3
    assert len(world.effects()) == 3
