"""The engine's world, with somebody at the desk."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import transaction

from reconciliation import classification, moves, verdicts
from reconciliation.case_opening import open_case
from reconciliation.classification import Sent, calls_over
from reconciliation.models import Case, Operation
from reconciliation.services import cases, probe
from runs import clock
from runs.models import Principal, Run
from runs.services import principals
from runs.tools.registry import tool
from tests.engine.conftest import World, sandbox, worker_parent, world

__all__ = ["sandbox", "worker_parent", "world"]


@dataclass
class Desk:
    """What an admin does there, as the pages do it."""

    world: World
    tomas: Principal
    waited_until: dt.datetime | None = None
    really_waits: bool = False  # for a test that watches the engine wait

    def case(self, run: Run) -> Case:
        """The operation's open case, claimed; opened now if asking has not yet led to one."""
        operation = self.world.credit(run)
        with transaction.atomic():
            locked, operation = moves.lock(operation_id=operation.pk)
            found = Case.objects.filter(operation=operation).exclude(state="resolved").first()
            case = found or open_case(
                run=locked,
                operation=operation,
                kind=Case.Kind.NOT_CONFIRMED,
                doubts=["asked"],
                why="asked often",
                actor=self.tomas,
            )
        assert cases.claim(case_number=case.pk, principal=self.tomas).ok
        return case

    def ask(self, operation: Operation) -> str:
        return probe.ask(operation=operation, connector=tool(operation.tool), actor=self.tomas).finding

    def settle(self, case: Case, verdict: str, *, ask: bool = True, **more: Any) -> str:
        """The code of what came of it."""
        if ask:
            self.ask(case.operation)
        return cases.settle(
            case_number=case.pk,
            principal=self.tomas,
            contract=tool(case.operation.tool).contract,
            verdict=verdict,
            evidence="looked it up in billing",
            **more,
        ).code

    def until_proof(self) -> None:
        """Time passes until "none" proves something about all that was sent so far."""
        self.waited_until = clock.read()

    def calls_over(self, *, attempts: Sequence[Sent]) -> dt.datetime:
        """For the rule of that name: the wait is over when `until_proof` says so, not when a slow machine has come to
        the next line."""
        if self.waited_until and all(one.opened_at < self.waited_until for one in attempts):
            return self.waited_until - tool("billing.create_credit").contract.settling
        return calls_over(attempts=attempts) + (dt.timedelta(0) if self.really_waits else dt.timedelta(hours=1))


@pytest.fixture
def desk(world: World, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return at_desk(world, monkeypatch)


def at_desk(world: World, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Tomas at the desk, with its rules waiting as `Desk.calls_over` says."""
    made = Desk(world, principals.of_user(user=world.people["tomas"]))
    for module in (classification, verdicts):
        assert module.calls_over is calls_over
        monkeypatch.setattr(module, "calls_over", made.calls_over)
    return made
