"""The engine's world, with somebody at the desk."""

import time
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import transaction

from reconciliation import moves
from reconciliation.attempts import sent_attempts
from reconciliation.case_opening import open_case
from reconciliation.models import Case, Operation
from reconciliation.services import cases, probe
from runs import clock
from runs.models import Principal, Run
from runs.services import principals
from runs.tools.registry import tool
from tests.engine.conftest import World, sandbox, worker_parent, world

__all__ = ["sandbox", "worker_parent", "world"]


@dataclass(frozen=True)
class Desk:
    """What an admin does there, as the pages do it."""

    world: World
    tomas: Principal

    def case(self, run: Run) -> Case:
        """The operation's open case, claimed; opened now if asking has not yet led to one."""
        operation = self.world.credit(run)
        with transaction.atomic():
            locked, operation = moves.lock(operation_id=operation.pk)
            found = Case.objects.filter(operation=operation).exclude(state="resolved").first()
            case = found or open_case(
                run=locked, operation=operation, kind=Case.Kind.NOT_CONFIRMED, why="asked often", actor=self.tomas
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

    def until_proof(self, run: Run) -> None:
        """Time passes until "none" proves something; nothing asks or sends meanwhile."""
        contract = tool(self.world.credit(run).tool).contract
        limits = contract.call_limit + contract.settling
        for operation in Operation.objects.filter(run=run):
            for sent in sent_attempts(operation=operation):
                while clock.now() <= sent.send_before + limits:
                    time.sleep(0.05)


@pytest.fixture
def desk(world: World) -> Desk:
    return Desk(world, principals.of_user(user=world.people["tomas"]))
