"""Measuring everything in turn, and the table."""

import os
import statistics
import time
import uuid
from pathlib import Path

from django.contrib.auth.models import User

from agentops import engine
from agentops.bench import measure, parked, raw, statements
from agentops.bench.machine import say, seconds_used
from agentops.local.stack import Stack
from approvals.models import ApprovalRequest, Policy, PolicyVersion
from reconciliation.models import WorkerProcess
from reconciliation.services import processes
from runs.models import Principal, Run

PROCESSES = ("web", "worker", "relay")
CPU = ("worker", "relay", "postgres")
LATENCIES = 40


def measure_statements(*, stack: Stack, lines: list[int]) -> int:
    """Print the table of statements alone; nobody else is at work on the stack."""
    manager = measure.prepare()
    [item] = measure.submit(count=1)
    run = _played(item, manager)
    _print(statements.measure_statements(stack=stack, like=run.operations.get(), sizes=lines))
    return 0


def measure_all(*, stack: Stack, rounds: int, count: int, parked: list[int]) -> int:
    """Print the table; the exit status is 0 when every run ended as it should."""
    manager = measure.prepare()
    writes, item = _taken_down(stack, manager)
    written = sum(len(one) for one in writes.transactions)
    say(f"\nOne plain run writes {written} statements in {len(writes.transactions)} commits.")
    through, floor, cpu = _throughput(stack, manager, writes, item, rounds, count)
    rows = [
        ("runs/s through the workers", f"{through:.1f}"),
        ("runs/s, raw commits of the same writes", f"{floor:.1f}"),
    ]
    rows += [
        ("ratio", f"{through / floor:.2f}"),
        ("durable commits/s through the workers", f"{through * len(writes.transactions):.0f}"),
    ]
    rows.append(("processor time a run, ms", ", ".join(f"{name} {spent:.1f}" for name, spent in cpu.items())))
    rows.append(("worker start to first step, s", f"{_cold(stack, manager):.2f}"))
    rows += _with_parked(stack, manager, parked)
    _print(rows)
    return 0


def _print(rows: list[tuple[str, str]]) -> None:
    width = max(len(name) for name, _ in rows)
    say()
    for name, figure in rows:
        say(f"  {name:{width}}  {figure}")


def _played(item: str, manager: User) -> Run:
    """The run of this item, carried out here."""
    run = Run.objects.get(subject=item)
    engine.advance(run_id=run.pk)
    measure.approve(items=[item], manager=manager)
    engine.advance(run_id=run.pk)
    run.refresh_from_db()
    if run.state != "completed":
        raise measure.BenchFailed(f"the run is {run.state}")
    return run


def _taken_down(stack: Stack, manager: User) -> tuple[raw.Writes, str]:
    """The writes of one run, played here while nobody else is at work, when everything it needs has been made."""
    measure.runs_per_second(count=20, manager=manager)
    for name in ("relay", "worker"):
        stack.kill(name)
    processes.current()
    with raw.taking_down() as writes:
        [item] = measure.submit(count=1)
        _played(item, manager)
    for name in ("worker", "relay"):
        stack.start(name)
    return writes, item


def _throughput(
    stack: Stack, manager: User, writes: raw.Writes, item: str, rounds: int, count: int
) -> tuple[float, float, dict[str, float]]:
    """Medians over the rounds of runs a second: through the workers, and of raw commits in the same minutes. And what a
    run through the workers cost each program, in milliseconds of processor time."""
    keep: set[uuid.UUID] = set()
    for model in (Principal, Policy, PolicyVersion, WorkerProcess):
        keep |= set(model._default_manager.values_list("pk", flat=True))
    ours, floors = [], []
    spent = dict.fromkeys(CPU, 0.0)
    for number in range(1, rounds + 1):
        floor = raw.replay_per_second(writes=writes, item=item, keep=keep, url=stack.env["DATABASE_URL"], count=count)
        before = {name: seconds_used(stack=stack, name=name) for name in CPU}
        through = measure.runs_per_second(count=count, manager=manager)
        spent = {name: spent[name] + seconds_used(stack=stack, name=name) - before[name] for name in CPU}
        say(f"  round {number}: {through:.1f} runs/s, raw {floor:.1f}, load {os.getloadavg()[0]:.1f}")
        ours.append(through)
        floors.append(floor)
    each = {name: 1000 * seconds / (rounds * count) for name, seconds in spent.items()}
    return statistics.median(ours), statistics.median(floors), each


def _cold(stack: Stack, manager: User) -> float:
    """Seconds from starting a worker, with a run due, to its first claim."""
    stack.kill("worker")
    [item] = measure.submit(count=1)
    began = time.time()
    stack.start("worker")
    measure.wait_until(items=[item], state="awaiting_approval")
    first = Run.objects.get(subject=item).state_since.timestamp()
    return first - began


def _with_parked(stack: Stack, manager: User, numbers: list[int]) -> list[tuple[str, str]]:
    rows = []
    [like] = measure.submit(count=1)
    measure.wait_until(items=[like], state="awaiting_approval")
    there = 0
    for number in (0, *numbers):
        if number:
            parked.park(
                url=stack.env["OWNER_DATABASE_URL"], like=Run.objects.get(subject=like).pk, count=number - there
            )
            there = ApprovalRequest.objects.filter(state="open").count()
        time.sleep(3)
        took = measure.latency(count=LATENCIES, manager=manager)
        name = f"{number:,} parked" if number else "none parked"
        rows.append((f"approve to complete, {name}, p50 / p95 ms", f"{took.p50:.1f} / {took.p95:.1f}"))
        rows.append((f"memory of web, worker and relay, {name}, MB", f"{_memory(stack):.0f}"))
    return rows


def _memory(stack: Stack) -> float:
    """Proportional set size of all their processes, in megabytes; see proc(5), smaps_rollup."""
    total = 0
    for name in PROCESSES:
        for pid in stack.pids(name):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return total / 1024
