"""Driving the plain workflow through real workers and reading times off the database's own clock."""

import secrets
import statistics
import time
from dataclasses import dataclass

from django.contrib.auth.models import User

from agentops.bench.plain import NAME, POLICY
from agentops.permissions import ensure_groups
from agentops.starting import start_workflow
from approvals.models import ApprovalRequest, Decision
from approvals.services import policies, votes
from runs.models import Principal, Run
from runs.services import principals

PATIENCE = 600.0  # seconds for one stage


class BenchFailed(Exception):
    """A run did not end as it should have, so there is nothing to measure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Milliseconds from the moment before the vote to the run's end."""

    p50: float
    p95: float


def prepare() -> User:
    """A manager, and the policy that asks managers about notes."""
    user, _ = User.objects.get_or_create(username="bench-manager")
    user.groups.add(ensure_groups()["manager"])
    policies.publish(
        slug=POLICY.slug,
        name=POLICY.name,
        tools=list(POLICY.tools),
        document=POLICY.document,
        note=POLICY.note,
        publisher=principals.system(),
    )
    return user


def submit(*, count: int) -> list[str]:
    """Start that many runs, one durable commit each; returns their items."""
    starter = principals.find_or_make(kind=Principal.Kind.INTEGRATION, key="integration:bench", label="Bench")
    batch = secrets.token_hex(4)
    items = [f"{batch}-{number:06}" for number in range(count)]
    for item in items:
        start_workflow(name=NAME, data={"item": item}, initiator=starter)
    return items


def wait_until(*, items: list[str], state: str) -> float:
    """Wait until all are in `state`; the time.monotonic() when they were seen to be. Raises BenchFailed."""
    # looked for by an index: the search must not cost more, the more runs there are
    first, last = f"{NAME}:{min(items)}", f"{NAME}:{max(items)}"
    mine = Run.objects.filter(start_key__gte=first, start_key__lte=last)
    deadline = time.monotonic() + PATIENCE
    while (there := mine.filter(state=state).count()) < len(items):
        if time.monotonic() > deadline:
            raise BenchFailed(f"{there} of {len(items)} runs came to {state} within {PATIENCE:.0f} s")
        time.sleep(0.02)
    return time.monotonic()


def approve(*, items: list[str], manager: User) -> None:
    """Vote yes on each, through the same service as the page."""
    asked = ApprovalRequest.objects.filter(run__subject__in=items, state="open").values_list("pk", "page_digest")
    for request_id, page_digest in list(asked):
        approve_one(request_id=request_id, page_digest=page_digest, manager=manager)


def approve_one(*, request_id: object, page_digest: str, manager: User) -> None:
    result = votes.cast(
        request_id=request_id,  # type: ignore[arg-type]
        user=manager,
        choice="approve",
        comment="",
        page_digest=page_digest,
        acknowledged=True,
        authenticated_by="bench",
        channel="command",
    )
    if result.code != "approved":
        raise BenchFailed(f"a vote was answered {result.code}")


def runs_per_second(*, count: int, manager: User) -> float:
    """Whole runs a second: starting and parking all, then approving and ending all; the pause between not counted."""
    began = time.monotonic()
    items = submit(count=count)
    parked = wait_until(items=items, state="awaiting_approval") - began
    began = time.monotonic()
    approve(items=items, manager=manager)
    ended = wait_until(items=items, state="completed") - began
    return count / (parked + ended)


def latency(*, count: int, manager: User) -> Latency:
    """From the click to the run's end, one run at a time."""
    items = submit(count=count)
    wait_until(items=items, state="awaiting_approval")
    time.sleep(1.5)
    took = []
    for item in items:
        request = ApprovalRequest.objects.get(run__start_key=f"{NAME}:{item}", state="open")
        approve_one(request_id=request.pk, page_digest=request.page_digest, manager=manager)
        wait_until(items=[item], state="completed")
        run = Run.objects.get(start_key=f"{NAME}:{item}")
        decided = Decision.objects.get(request=request).decided_at
        assert run.finished_at is not None
        took.append((run.finished_at - decided).total_seconds() * 1000)
        time.sleep(0.03)
    cuts = statistics.quantiles(took, n=20)
    return Latency(p50=statistics.median(took), p95=cuts[18])
