"""What a run costs the database: statements and commits a stage, and that no look for work reads a whole table.

Counted on the plain workflow of the benchmark, so that nothing outside takes part.
"""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from agentops import engine, health, relay
from agentops.bench import measure, parked, plain
from agentops.local.postgres import EmbeddedPostgres
from approvals.models import ApprovalRequest
from reconciliation.models import Operation
from reconciliation.services import holds, processes
from runs import clock, leases, record
from runs.models import Event, Run
from tests.statements_sent import statements_sent


def counted(work: Callable[[], Any]) -> tuple[int, int]:
    """Statements and commits."""
    with statements_sent() as sent:
        work()
    return len([one for one in sent if one not in ("BEGIN", "COMMIT")]), sent.count("COMMIT")


def one_run(manager: User) -> dict[str, tuple[int, int]]:
    items: list[str] = []
    costs = {"start": counted(lambda: items.extend(measure.submit(count=1)))}
    run = Run.objects.get(subject=items[0])
    costs["to the question"] = counted(lambda: engine.advance(run_id=run.pk))
    asked = ApprovalRequest.objects.get(run=run)
    costs["vote"] = counted(
        lambda: measure.approve_one(request_id=asked.pk, page_digest=asked.page_digest, manager=manager)
    )
    costs["to the end"] = counted(lambda: engine.advance(run_id=run.pk))
    run.refresh_from_db()
    assert run.state == "completed"
    return costs


def test_a_run_costs_no_more_than_it_did(manager: User) -> None:
    one_run(manager)  # people, the policy and this process are known from here
    costs = one_run(manager)
    most = {"start": (5, 1), "to the question": (16, 3), "vote": (21, 1), "to the end": (46, 4)}
    assert {
        name: costs[name] for name in most if costs[name][0] > most[name][0] or costs[name][1] > most[name][1]
    } == {}


PARKED = 20_000


def scans(sql: str, parameters: Any) -> list[str]:
    """The tables that the statement would read from end to end."""
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN " + sql, parameters)
        return [line for (line,) in cursor.fetchall() if "Seq Scan" in line]


def bounds(sql: str, parameters: Any) -> list[str]:
    """What bounds the part of an index that the statement would read."""
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN " + sql, parameters)
        return [line for (line,) in cursor.fetchall() if "Index Cond" in line]


def test_looking_for_work_reads_no_whole_table(manager: User, postgres: EmbeddedPostgres, db: str) -> None:
    [item] = measure.submit(count=1)
    run = Run.objects.get(subject=item)
    engine.advance(run_id=run.pk)
    parked.park(url=postgres.url("owner", db), like=run.pk, count=PARKED)
    assert ApprovalRequest.objects.filter(state="open").count() == PARKED + 1
    looks = {
        "sweep": (relay._DUE, [relay.BATCH]),
        "claim": (leases._CLAIM + "TRUE", {"run": run.pk, "holder": str(processes.current().pk), "seconds": 1}),
        "hold": (leases._HOLD + "TRUE", {"run": run.pk, "token": 1, "seconds": 1.0, "worked": False}),
        "wake": ("UPDATE runs_run SET wake_at = clock_timestamp() WHERE id = %s", [run.pk]),
        "what is late": (health._LATE, []),
        "what is due next": (relay._NEXT, []),
        "numbering": ("UPDATE runs_run SET event_seq = 9 WHERE id = %s", [run.pk]),
    }
    assert {name: found for name, look in looks.items() if (found := scans(*look))} == {}
    assert [line for line in scans(holds._FREE, []) if "runs_run" in line] == []
    for name in ("sweep", "what is due next"):
        assert "wake_at" in " ".join(bounds(*looks[name])), f"{name}: every waiting run is looked at"
    with_a_scan = scans("SELECT count(*) FROM runs_run WHERE outcome = 'nothing like it'", [])
    assert with_a_scan, "a scan would have been seen"


def test_an_answer_is_stored_although_what_follows_in_its_commit_fails(
    manager: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    [item] = measure.submit(count=1)
    run = Run.objects.get(subject=item)
    engine.advance(run_id=run.pk)
    measure.approve(items=[item], manager=manager)
    follow = plain.Plain.follow

    def fails_once_done(self: plain.Plain, *, data: Any, facts: Any, done: Any) -> Any:
        if done:
            raise ZeroDivisionError("what follows cannot be told")
        return follow(self, data=data, facts=facts, done=done)

    with monkeypatch.context() as patch:
        patch.setattr(plain.Plain, "follow", fails_once_done)
        engine.advance(run_id=run.pk)
    run.refresh_from_db()
    operation = Operation.objects.get(run=run)
    assert (operation.state, operation.attempts.get().result, run.state) == ("succeeded", "done", "executing")
    assert Event.objects.filter(stream=f"run:{run.pk}", kind="run.step_failed").count() == 1
    Run.objects.filter(pk=run.pk).update(wake_at=clock.ClockTimestamp())
    engine.advance(run_id=run.pk)
    run.refresh_from_db()
    assert run.state == "completed" and operation.attempts.count() == 1
    assert record.verify(stream=f"run:{run.pk}") is None
