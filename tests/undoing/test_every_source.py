"""For every tool and every fact that its action rests on: changed at its source after the yes, what was approved is not
sent. The facts are really changed, in billing and at the help desk, and the sandbox's log and ledger are the judges."""

from collections.abc import Callable, Iterator

import pytest

from reconciliation.models import Operation
from runs.models import Evidence
from tests.desk.outside import void
from tests.undoing.conftest import Undoing
from tests.undoing.test_every_field import written
from tests.undoing.test_every_tool import EVERY, STARTED, asked


def standing(undo: Undoing, fact: Evidence) -> None:
    undo.world.sandbox.edit("account", fact.locator, standing="suspended")


def schedule(undo: Undoing, fact: Evidence) -> None:
    tiers = [{"below": "99.9", "percent": "50"}]
    undo.world.sandbox.edit("plan", fact.locator, sla={"version": "another", "tiers": tiers})


def reopened(undo: Undoing, fact: Evidence) -> None:
    undo.world.sandbox.edit("incident", fact.locator, ended_at=None)


def corrected(undo: Undoing, fact: Evidence) -> None:
    undo.world.sandbox.correct(fact.locator, total_minor=int(fact.content["total_minor"]) - 100)


def touched(undo: Undoing, fact: Evidence) -> None:
    undo.world.sandbox.touch(fact.locator)


def voided(undo: Undoing, fact: Evidence) -> None:
    void(fact.content["id"])


CHANGES: dict[tuple[str, str], Callable[[Undoing, Evidence], None]] = {
    ("billing.create_credit", "account"): standing,
    ("billing.create_credit", "sla"): schedule,
    ("billing.create_credit", "incident"): reopened,
    ("billing.create_credit", "invoice"): corrected,
    ("billing.void_credit", "credit_note"): voided,
    ("helpdesk.update_ticket", "ticket"): touched,
}


@pytest.mark.parametrize("tool", EVERY)
def test_every_fact_that_an_action_rests_on_is_here(undo: Undoing, tool: str) -> None:
    proposal = asked(undo, STARTED[tool](undo), tool)
    kinds = set(Evidence.objects.filter(pk__in=proposal.rests_on).values_list("kind", flat=True))
    assert kinds == {kind for name, kind in CHANGES if name == tool}


@pytest.fixture(autouse=True)
def plans_stay(undo: Undoing) -> Iterator[None]:
    """All customers of a plan share it, those of other tests included."""
    plans = undo.world.sandbox.world()["plans"]
    yield
    for plan in plans:
        undo.world.sandbox.edit("plan", plan["id"], sla=plan["sla"])


@pytest.mark.parametrize(("tool", "kind"), CHANGES)
def test_a_fact_changed_at_its_source_after_the_yes(undo: Undoing, tool: str, kind: str) -> None:
    run = STARTED[tool](undo)
    proposal = asked(undo, run, tool)
    first = undo.world.request(run)
    assert first.state == "approved"
    CHANGES[tool, kind](undo, Evidence.objects.get(pk__in=proposal.rests_on, kind=kind))
    before = written(undo)

    def closed(_: object) -> bool:
        first.refresh_from_db()
        return first.state != "approved"

    undo.world.work(run, until=closed)
    assert first.state == "stale", first.close_reason
    assert not Operation.objects.filter(proposal=proposal).exists()
    assert written(undo) == before
