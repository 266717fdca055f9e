"""The engine's world, with somebody who wants undone what was done."""

from dataclasses import dataclass
from typing import Any

import pytest

from agentops import undoing
from reconciliation.models import Operation, Reversal
from reconciliation.services import reversals
from reconciliation.services.reversals import ReversalResult
from runs.models import Principal, Run
from runs.services import principals
from tests.engine.conftest import World, sandbox, worker_parent, world

__all__ = ["sandbox", "worker_parent", "world"]
VOID = "billing.credit_notes.void"


@dataclass(frozen=True)
class Undoing:
    """What an operator does about a credit, and what the relay does by itself."""

    world: World
    priya: Principal

    def credited(self, ticket: str = "CS-8815") -> tuple[Run, Operation]:
        """A completed run with its credit."""
        run = self.world.work(self.world.start(ticket))
        assert run.state == "completed", (run.state, run.person_reason)
        return run, self.world.credit(run)

    def propose(self, operation: Operation, **more: Any) -> ReversalResult:
        return reversals.propose(
            operation_id=operation.pk, **{"principal": self.priya, "reason": "the outage was another one", **more}
        )

    def started(self, operation: Operation, **more: Any) -> Run:
        """The run of a reversal that was proposed now, not yet advanced."""
        assert self.propose(operation, **more).ok
        return self.run_of(operation)

    def run_of(self, operation: Operation) -> Run:
        self.relay()
        found = Reversal.objects.filter(operation=operation).latest("created_at").run
        assert found is not None
        return found

    def asked(self, operation: Operation) -> Run:
        run = self.world.work(self.started(operation))
        assert run.state == "awaiting_approval", (run.state, run.person_reason)
        return run

    def approved(self, operation: Operation) -> Run:
        run = self.asked(operation)
        assert self.world.vote(run).code == "approved"
        return run

    def unconfirmed(self, run: Run) -> Run:
        """Its operation's outcome is not known, the other side not asked yet."""
        with self.world.first_question_later():
            run = self.world.work(run, until=lambda one: Operation.objects.get(run=one).state == "unknown")
        self.world.ask_now(run)
        return run

    def relay(self) -> None:
        """As the relay does, until nothing is due."""
        while undoing.work_off(limit=10):
            pass

    def voids(self) -> list[dict[str, Any]]:
        """The judge: what billing really voided for us."""
        return [row for row in self.world.effects() if row["operation"] == VOID]

    def state(self, operation: Operation) -> str:
        operation.refresh_from_db()
        return str(operation.state)


@pytest.fixture
def undo(world: World) -> Undoing:
    return Undoing(world, principals.of_user(user=world.people["priya"]))
