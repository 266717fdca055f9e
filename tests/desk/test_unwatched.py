"""A guard that no test watched: it was taken out, and nothing noticed."""

from dataclasses import replace

import pytest

from runs.tools.billing.live import CreateCredit
from tests.desk.conftest import Desk
from tests.engine.conftest import World


def test_where_nobody_could_know_it_is_still_too_early_while_the_call_may_arrive(
    world: World, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    weak = replace(CreateCredit.contract, lookup_is_conclusive=False)
    monkeypatch.setattr(CreateCredit, "contract", replace(weak, call_limit=weak.call_limit * 30))
    case = desk.case(world.unknown("timeout_without_effect"))
    assert desk.settle(case, "did_not") == "too_early"
