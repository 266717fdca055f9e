"""The order in which rows are locked, read from the SQL that is really sent."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db import connection, transaction

from agentops import engine
from agentops.events import process_events
from approvals.models import Allowance
from reconciliation import moves
from reconciliation.models import Reservation
from runs.models import Run
from runs.services import external_events
from tests.desk.conftest import Desk
from tests.engine.conftest import World

LOCK = re.compile(r'\bFROM "?(\w+)"?.*\bFOR (?:NO KEY )?(?:UPDATE|SHARE)(?: OF "(\w+)")?', re.DOTALL)
# statements of our own that lock what they write: a lease held, a named resource, a tool's row
WRITTEN = re.compile(r"^\s*(?:INSERT INTO|UPDATE) (runs_run|reconciliation_resourcehold|reconciliation_dependency)\b")
BEGINS = ("BEGIN", "COMMIT", "ROLLBACK")
# what runs share, in the order in which it is locked; a run's own rows are safe under its row
FREEZES = "approvals_freezes_in_force"  # a function that takes the shared half of the lock between freezing and sending
SHARED = [
    "auth_user", "auth_group", "approvals_standingapproval", FREEZES, "approvals_policy", "approvals_allowance",
    "reconciliation_reversal",
    "reconciliation_resourcehold", "reconciliation_dependency", "reconciliation_workerprocess",
]  # fmt: skip
OWN = {
    "approvals_approvalrequest", "approvals_decision", "reconciliation_operation", "reconciliation_attempt",
    "reconciliation_case",
}  # fmt: skip


@dataclass
class Seen:
    """The tables locked by each transaction, with the ids asked for."""

    transactions: list[list[tuple[str, Any]]] = field(default_factory=list)

    def __call__(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        found = LOCK.search(sql) or (WRITTEN.search(sql) if connection.in_atomic_block else None)
        if found is not None and "SKIP LOCKED" not in sql:
            asked = (params["run"],) if isinstance(params, dict) and "run" in params else params
            self.transactions[-1].append((found.group(found.lastindex or 1), asked))
        if FREEZES in sql:
            self.transactions[-1].append((FREEZES, params))
        return execute(sql, params, many, context)


@contextmanager
def watching(monkeypatch: pytest.MonkeyPatch) -> Iterator[Seen]:
    seen = Seen([[]])
    enter = transaction.Atomic.__enter__

    def begins(self: Any) -> None:
        if not connection.in_atomic_block:
            seen.transactions.append([])
        enter(self)

    with monkeypatch.context() as patch, connection.execute_wrapper(seen):
        patch.setattr(transaction.Atomic, "__enter__", begins)
        yield seen


def judge(seen: Seen) -> set[str]:
    """Every transaction: its run first and no second one, then anything of the run's own, shared rows in order."""
    for locked in seen.transactions:
        tables = [table for table, _ in locked if table != "runs_externalevent"]
        if not tables:
            continue
        assert tables[0] == "runs_run", tables
        assert len({str(params) for table, params in locked if table == "runs_run"}) == 1, locked
        shared = [SHARED.index(table) for table in tables if table not in OWN | {"runs_run"}]
        assert shared == sorted(shared), tables
    return {table for locked in seen.transactions for table, _ in locked}


def test_voting_sending_and_settling_lock_in_one_order(
    world: World, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = world.work(world.start())
    world.fault("timeout_without_effect")
    with watching(monkeypatch) as seen:
        assert world.vote(run).code == "approved"
        while world.credit(run).state not in ("unknown", "succeeded"):
            engine.advance(run_id=run.pk)
        assert world.credit(run).state == "unknown"
        case = desk.case(run)
        assert desk.settle(case, "happened", reference="CN-7") == "ok"
    tables = judge(seen)
    assert tables >= {"runs_run", "auth_user", FREEZES, "approvals_policy", "approvals_allowance", *OWN}
    assert tables >= {"reconciliation_resourcehold", "reconciliation_dependency"}


def test_an_event_about_an_invoice_locks_one_run_at_a_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [world.work(world.start("CS-8812")), world.work(world.start("CS-8812", key="second"))]
    customer = world.request(runs[0]).proposal.effect["customer"]
    payload = {"data": {"object": {"customer": customer}}}
    external_events.receive(source="billing", event_id="e1", kind="invoice.updated", payload=payload)
    with watching(monkeypatch) as seen:
        assert process_events(limit=5) == 1
    judge(seen)
    locks = [table for locked in seen.transactions for table, _ in locked]
    assert locks.count("runs_run") == 2
    assert Run.objects.filter(facts_wanted_at__isnull=False).count() == 2


@pytest.mark.parametrize(
    "tables",
    [
        ["approvals_allowance", "runs_run"],
        ["runs_run", "approvals_allowance", "auth_user"],
        ["runs_run", "reconciliation_workerprocess", "approvals_policy"],
        ["runs_run", "reconciliation_dependency", "reconciliation_resourcehold"],
        ["runs_run", "reconciliation_resourcehold", "approvals_allowance"],
    ],
)
def test_another_order_would_be_noticed(tables: list[str]) -> None:
    with pytest.raises(AssertionError):
        judge(Seen([[(table, None) for table in tables]]))
    with pytest.raises(AssertionError):
        judge(Seen([[("runs_run", 1), ("runs_run", 2)]]))


KEYS = ["b/1", "B/2", "a_x", "a-x", "A", "ä"]  # no collation agrees with Python on all of these


@pytest.mark.parametrize("keys", [KEYS, KEYS[::-1]])
def test_totals_are_locked_in_pythons_order_one_statement_each(
    db: str, keys: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = {key: Allowance(key=key, label=key, currency="USD", limit_minor=5) for key in keys}
    for _ in range(2):  # made, then found
        with watching(monkeypatch) as seen, transaction.atomic():
            assert list(moves.lock_allowances(keys=keys, missing=missing)) == sorted(KEYS)
        [locked] = [one for one in seen.transactions if one]
        assert [params for _, params in locked] == [(key,) for key in sorted(KEYS)]


def test_sending_and_settling_lock_totals_in_the_same_way(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[list[str]] = []
    real = moves.lock_allowances

    def noted(**kwargs: Any) -> Any:
        called.append(sorted(kwargs["keys"]))
        return real(**kwargs)

    monkeypatch.setattr(moves, "lock_allowances", noted)
    run = world.work(world.start("CS-8815"))
    assert run.state == "completed"
    reserved = sorted(Reservation.objects.filter(operation=world.credit(run)).values_list("allowance_id", flat=True))
    assert reserved and [keys for keys in called if keys] == [reserved, reserved]
