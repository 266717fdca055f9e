"""How long a statement takes for each line, a short one beside a long one, and what memory its reader needs.

One process reads, compares and finishes each statement, as a worker does; no relay and no other worker is there.
"""

import datetime as dt
import json
import os
import statistics
import subprocess
import sys
import time

import psycopg

from agentops.bench import listed, measure, settled
from agentops.bench.machine import say, seconds_used
from agentops.local.stack import Stack
from reconciliation.models import Operation, Statement
from reconciliation.services import statements
from runs.services import principals

SHORT_ROUNDS = 5
READER = "agentops.bench.statement_reader"
PARTS = ("reading", "matching", "comparing")


def measure_statements(*, stack: Stack, like: Operation, sizes: list[int]) -> list[tuple[str, str]]:
    """The rows of the table. The shortest size is taken several times, half of them after the longest, and its median
    counts. `like` is a settled operation of the plain tool, copied for every tenth line."""
    order = [sizes[0]] * (SHORT_ROUNDS // 2 + 1) + sizes[1:] + [sizes[0]] * (SHORT_ROUNDS // 2)
    ends = dt.datetime.now(tz=dt.UTC).replace(microsecond=0) - dt.timedelta(days=1)
    taken: dict[int, list[dict[str, float]]] = {size: [] for size in sizes}
    for size in order:
        since = ends - dt.timedelta(seconds=size)
        _record(stack.env["OWNER_DATABASE_URL"], like, since, size)
        taken[size].append(_one(stack, since, ends, size))
        ends = since - dt.timedelta(days=3)  # what may belong to one period belongs to no other
    each = {
        size: {name: statistics.median(one[name] for one in found) for name in found[0]}
        for size, found in taken.items()
    }
    rows = []
    for size in sizes:
        got, name = each[size], f"statement of {size:,} lines"
        parts = ", ".join(f"{part} {got[part] / size * 1000:.2f}" for part in PARTS)
        rows.append((f"{name}, ms a line", f"{got['took'] / size * 1000:.2f} ({parts})"))
        cpu = f"reader {got['cpu'] / size * 1000:.2f}, postgres {got['postgres'] / size * 1000:.2f}"
        rows.append((f"{name}, processor ms a line", cpu))
        rows.append((f"{name}, peak memory of its reader, MB", f"{got['memory']:.0f}"))
    short, long = each[sizes[0]], each[sizes[-1]]
    for word, names in (("time", ("took",)), ("processor time", ("cpu", "postgres"))):
        ratio = (sum(long[name] for name in names) / sizes[-1]) / (sum(short[name] for name in names) / sizes[0])
        rows.append((f"statement, {word} a line, {sizes[-1]:,} beside {sizes[0]:,}", f"{ratio:.2f}"))
    return rows


def _record(url: str, like: Operation, since: dt.datetime, size: int) -> None:
    """Copy the operation, with its run, proposal, decision and their name for it, for each line that is ours."""
    first = int(since.timestamp())
    seconds = [one for one in range(first, first + size) if one % listed.OURS == 0]
    with psycopg.connect(url, autocommit=True) as session:
        settled.copy_settled(
            session=session,
            like=like.run_id,
            rows=[
                (
                    listed.identity_at(second=one),
                    listed.reference_at(second=one),
                    dt.datetime.fromtimestamp(one, dt.UTC),
                )
                for one in seconds
            ],
            minor=listed.MINOR,
            currency=listed.CURRENCY,
        )


def _one(stack: Stack, since: dt.datetime, until: dt.datetime, size: int) -> dict[str, float]:
    """Have it read; seconds in all and of each part, of processor time, and megabytes."""
    asked = statements.start_reading(system="plain", since=since, until=until, principal=principals.system())
    if asked.statement is None:
        raise measure.BenchFailed(f"a statement was answered {asked.code}")
    before, began = seconds_used(stack=stack, name="postgres"), time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", READER, str(asked.statement.pk)], env={**os.environ, **stack.env}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise measure.BenchFailed(done.stdout + done.stderr)
    got: dict[str, float] = json.loads(done.stdout)
    found = Statement.objects.get(pk=asked.statement.pk)
    lines = found.lines.values_list("result", flat=True)
    confirmed, others = lines.filter(result="confirmed").count(), lines.filter(result="not_ours").count()
    if found.finished_at is None or (confirmed, confirmed + others) != (len(range(0, size, listed.OURS)), size):
        raise measure.BenchFailed(f"{found.label}: {confirmed} confirmed, {others} not ours, {found.problem}")
    got["postgres"] = seconds_used(stack=stack, name="postgres") - before
    say(f"  {size:,} lines: {got['took']:.1f} s of {time.monotonic() - began:.1f}, load {os.getloadavg()[0]:.1f}")
    return got
