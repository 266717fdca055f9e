"""The overview: how much waits, how much is not known, and whether anybody works; each figure leads to its list."""

import datetime as dt
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, Max, Min, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from agentops.pages import dependencies, telling
from agentops.relay import JOBS
from agentops.telling.messenger import NAMES as MESSENGER
from approvals.models import ApprovalRequest
from approvals.models.request import RequestState
from approvals.staffing import NOBODY
from reconciliation.models import Attempt, Case, Operation, Reversal, WorkerProcess
from reconciliation.models.case import UNRESOLVED
from reconciliation.models.operation import UNCONFIRMED
from runs import clock
from runs.access import needs
from runs.models import Run
from runs.models.run import LIVE, RunState
from runs.services import recurring


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number; `oldest` is a time it counts from, `link` the name of the list behind it (with `query`)."""

    label: str
    icon: str
    number: int
    under: str = ""
    oldest: dt.datetime | None = None
    colour: str = ""
    link: str = ""
    query: str = ""


def _people() -> list[Figure]:
    waiting = ApprovalRequest.objects.filter(state=RequestState.OPEN).aggregate(n=Count("pk"), at=Min("created_at"))
    person = Run.objects.filter(state=RunState.NEEDS_PERSON).aggregate(n=Count("pk"), at=Min("state_since"))
    lost = Run.objects.filter(state=RunState.AWAITING_APPROVAL, waits_for__startswith=NOBODY)
    left = lost.aggregate(n=Count("pk"), at=Min("state_since"))
    return [
        Figure(
            label="Waiting for approval", icon="hand", colour="amber", number=waiting["n"], oldest=waiting["at"],
            under="oldest asked", link="inbox",
        ),
        Figure(
            label="Needs a person", icon="hand", colour="amber", number=person["n"], oldest=person["at"],
            under="oldest since", link="needs_person",
        ),
        *([Figure(
            label="Too few left to ask", icon="circle-alert", colour="red", number=left["n"], oldest=left["at"],
            under="oldest asked", link="runs",
        )] if left["n"] else []),
    ]  # fmt: skip


def _truth() -> list[Figure]:
    unknown = Operation.objects.filter(state__in=UNCONFIRMED)
    found = unknown.aggregate(n=Count("pk"), at=Min("unknown_since"))
    cases = Case.objects.filter(UNRESOLVED).aggregate(n=Count("pk"), at=Min("opened_at"))
    return [
        Figure(
            label="Not confirmed", icon="unknown", colour="violet", number=found["n"], oldest=found["at"],
            under="oldest since", link="cases",
        ),
        Figure(
            label="Open cases", icon="scale", number=cases["n"], oldest=cases["at"], under="oldest opened", link="cases"
        ),
    ]  # fmt: skip


def _delayed() -> list[Figure]:
    """Reversals about which something failed and is tried again: only while there are any."""
    found = Reversal.objects.filter(ended_at__isnull=True, tries__gt=0).order_by("created_at")
    ones = list(found.values_list("operation__run_id", "created_at"))
    if not ones:
        return []
    run, since = ones[0]
    return [
        Figure(
            label="Reversals that fail", icon="undo-2", colour="amber", number=len(ones), oldest=since,
            under="tried again; oldest proposed", link="runs", query=f"?q={run}",
        )
    ]  # fmt: skip


def _work(now: dt.datetime) -> list[Figure]:
    live = Run.objects.filter(state__in=LIVE)
    free = Q(lease_until__isnull=True) | Q(lease_until__lte=now)
    due = live.filter(free, wake_at__lte=now, paused_at__isnull=True).aggregate(n=Count("pk"), at=Min("wake_at"))
    claimed = live.filter(lease_until__gt=now).aggregate(n=Count("lease_holder", distinct=True))
    alive = WorkerProcess.objects.filter(ended_at__isnull=True).aggregate(n=Count("pk"))
    called = Attempt.objects.aggregate(at=Max("opened_at"))["at"]
    again = Attempt.objects.filter(number__gt=1, opened_at__gt=now - dt.timedelta(days=1)).count()
    return [
        Figure(
            label="Runs live", icon="activity", colour="blue", number=live.count(), under="not finished", link="runs"
        ),
        Figure(
            label="Due, not yet picked up", icon="hourglass", number=due["n"], oldest=due["at"], under="longest due",
            link="runs",
        ),
        Figure(
            label="Worker processes", icon="settings", number=alive["n"], oldest=called,
            under=f"{claimed['n']} at work now; {'last call out' if called else 'no call out yet'}",
        ),
        Figure(
            label="Repeated attempts, last day", icon="repeat", number=again, under="of all operations", link="cases"
        ),
    ]  # fmt: skip


@needs("runs.view_run")
def overview(request: HttpRequest) -> HttpResponse:
    now = clock.now()
    recent = (
        Run.objects.filter(finished_at__gt=now - dt.timedelta(days=1))
        .values("state")
        .annotate(n=Count("pk"), took=Max(F("finished_at") - F("created_at")))
        .order_by("state")
    )
    context: dict[str, Any] = {
        "section": "overview",
        "now": now,
        "parts": [
            {"title": "Waits for people", "figures": _people() + _truth() + _delayed()},
            {"title": "Work", "figures": _work(now)},
        ],
        "telling": telling.figures(now=now),
        "dependencies": dependencies.lines(now=now),
        "recent": list(recent),
        "recurring": recurring.told(names=(*JOBS, *MESSENGER)),
    }
    return render(request, "agentops/overview.html", context)
