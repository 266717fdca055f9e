"""When a sender counts as gone: by its own machine's kernel, by that machine's next start, or by a person's word."""

import os
from io import StringIO
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection

from reconciliation import processes as kernel
from reconciliation.models import Attempt, WorkerProcess
from reconciliation.services import cases, processes
from runs import clock, faultpoints
from runs.models import Event, Run
from tests.desk.conftest import Desk
from tests.engine.conftest import World

OLD = "0b5f0d5c-0000-4000-8000-000000000001 pid:[4026531836]"


def earlier(**fields: Any) -> WorkerProcess:
    here = kernel.this_process()
    return WorkerProcess.objects.create(**{"host": here.host, "boot": OLD, "pid": 7, "start_ticks": 7, **fields})


def hold(process: WorkerProcess, run: Run, owner: psycopg.Connection) -> None:
    owner.execute(
        "UPDATE runs_run SET lease_holder = %s, lease_until = clock_timestamp() + interval '1 hour' WHERE id = %s",
        [str(process.pk), run.pk],
    )


def leased(run: Run) -> bool:
    run.refresh_from_db()
    return run.lease_until is not None and Run.objects.filter(pk=run.pk, lease_until__gt=kernel_clock()).exists()


def kernel_clock() -> Any:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        return cursor.fetchone()[0]


def dead_sender(world: World, owner: psycopg.Connection) -> tuple[Run, WorkerProcess]:
    """A worker that died in the middle of its call, on a machine that has been started anew since."""
    world.fault("timeout_without_effect")
    run = world.approved()
    pid = world.worker(run, die_at="attempt.called")
    assert world.workers.wait(pid) != 0 and world.marker("attempt.called").exists()
    sender = Attempt.objects.get(operation__run=run).sender
    owner.execute("UPDATE reconciliation_workerprocess SET boot = %s, ended_at = NULL WHERE id = %s", [OLD, sender.pk])
    owner.execute("UPDATE runs_run SET lease_until = clock_timestamp(), wake_at = clock_timestamp()")
    return run, sender


def test_a_sender_from_before_the_last_start_is_gone_by_a_persons_word(
    world: World, desk: Desk, owner: psycopg.Connection
) -> None:
    desk.really_waits = True
    run, sender = dead_sender(world, owner)
    run = world.work(run, until=lambda one: world.credit(one).probes_made >= 2)
    case = desk.case(run)
    desk.until_proof()
    assert desk.settle(case, "did_not") == "sender_may_wake"

    def gone(evidence: str) -> str:
        return cases.sender_gone(
            case_number=case.pk, principal=desk.tomas, process_id=sender.pk, evidence=evidence
        ).code  # fmt: skip

    assert gone("  ") == "evidence_needed"
    assert gone("started anew at noon") == "ok" and gone("again") == "not_waited_for"
    assert Event.objects.get(stream=f"run:{run.pk}", kind="process.ended").actor == desk.tomas
    run = world.work(run)
    assert (run.state, len(world.credits())) == ("completed", 1), "sent once more, under its own rule"
    results = Attempt.objects.filter(operation=case.operation).order_by("number").values_list("result", flat=True)
    assert list(results) == ["sender_gone", "done"]


def test_a_process_of_this_machine_that_runs_cannot_be_said_to_be_gone(world: World, desk: Desk) -> None:
    run = world.unknown("timeout_without_effect")
    case = desk.case(run)
    process = processes.current()
    assert kernel.is_running(kernel.ProcessName(process.host, process.boot, process.pid, process.start_ticks))
    assert not kernel.is_running(kernel.ProcessName(process.host, OLD, os.getpid(), process.start_ticks))
    told = cases.sender_gone(case_number=case.pk, principal=desk.tomas, process_id=process.pk, evidence="sure")
    assert told.code == "not_waited_for", "it has reported"


def test_a_process_recorded_as_ended_registers_anew_before_it_opens_an_attempt(world: World) -> None:
    """A person said that it is gone, for its machine slept; it wakes and takes the next run. Its silence as the old
    one counts as proof, so nothing may be sent under that name."""
    old = processes.current()
    run = world.approved()
    WorkerProcess.objects.filter(pk=old.pk).update(ended_at=clock.now())  # as `cases.sender_gone` writes it
    run = world.work(run)
    assert (run.state, len(world.credits())) == ("completed", 1)
    assert not Attempt.objects.filter(sender=old).exists()
    new = processes.current()
    assert set(Attempt.objects.values_list("sender", flat=True)) == {new.pk}
    assert (old.boot, old.pid, old.start_ticks) == (new.boot, new.pid, new.start_ticks) and new.ended_at is None
    assert processes.record_ended() == [], "it is here"


def test_the_end_of_a_process_waits_for_the_attempt_that_it_opens(
    world: World, monkeypatch: pytest.MonkeyPatch, owner: psycopg.Connection
) -> None:
    run, seen = world.approved(), []
    original = faultpoints.reach

    def reach(name: str) -> None:
        original(name)
        if name == "attempt.opened.before":
            taken = "SELECT id FROM reconciliation_workerprocess WHERE id = %s FOR NO KEY UPDATE SKIP LOCKED"
            seen.append(owner.execute(taken, [processes.current().pk]).fetchone())

    monkeypatch.setattr(faultpoints, "reach", reach)
    world.work(run, until=lambda one: world.credit(one).state == "succeeded")
    assert seen and set(seen) == {None}


def test_at_its_next_start_a_machine_ends_what_ran_before(world: World, desk: Desk, owner: psycopg.Connection) -> None:
    desk.really_waits = True
    run, sender = dead_sender(world, owner)
    out = StringIO()
    call_command("processes_ended", stdout=out)
    sender.refresh_from_db()
    assert sender.ended_at is not None and "1 recorded as ended" in out.getvalue()
    assert Event.objects.get(stream="system:processes").data["processes"] == [str(sender.pk)]
    run = world.work(run)
    assert (run.state, len(world.credits())) == ("completed", 1)


def test_only_other_kernels_of_this_very_host_are_ended(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    here = kernel.this_process()
    own = processes.current()
    same_kernel = here.boot.partition(" ")[0] + " pid:[1]"
    gone = earlier()
    kept = [
        earlier(host="another-host", pid=8),
        earlier(boot=same_kernel, pid=9),
        earlier(boot=f"unknown {here.host}", pid=10),
        own,
    ]
    with monkeypatch.context() as patch:
        patch.setattr(processes, "this_process", lambda: kernel.ProcessName(here.host, f"unknown {here.host}", 1, 0))
        assert processes.record_earlier_boots() == [], "no kernel to compare with"
    assert processes.record_earlier_boots() == [gone]
    assert processes.record_earlier_boots() == []
    assert set(WorkerProcess.objects.filter(ended_at__isnull=True)) == set(kept)


@pytest.fixture
def two_runs(world: World) -> list[Run]:
    return [world.start("CS-8812"), world.start("CS-8815")]


def test_leases_are_freed_without_waiting_for_anybody(
    world: World, two_runs: list[Run], owner: psycopg.Connection, postgres: Any, database: str
) -> None:
    """While somebody has one of its runs locked, a process is left for the next time: nothing waits, so nothing can
    wait in a circle, and no lease is forgotten."""
    first, second = earlier(), earlier(pid=8)
    hold(first, two_runs[0], owner)
    hold(second, two_runs[1], owner)
    with psycopg.connect(postgres.url("owner", database)) as busy:
        busy.execute("SELECT id FROM runs_run WHERE id = %s FOR UPDATE", [two_runs[0].pk])
        assert processes.record_earlier_boots() == [second]
        assert leased(two_runs[0]) and not leased(two_runs[1])
        busy.rollback()
        busy.execute("SELECT id FROM reconciliation_workerprocess WHERE id = %s FOR UPDATE", [first.pk])
        assert processes.record_earlier_boots() == []
    assert processes.record_earlier_boots() == [first]
    assert not leased(two_runs[0])
    assert not WorkerProcess.objects.filter(pk__in=[first.pk, second.pk], ended_at__isnull=True).exists()
