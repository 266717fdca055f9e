"""What is frozen now, and by how much freezes have stopped the clock of a request. Reads only."""

import datetime as dt
from collections.abc import Iterable

from django.db import connection
from django.db.models import Case, Q, QuerySet, When

from approvals import working_time
from approvals.models import ApprovalRequest, Freeze
from approvals.models.freeze import EVERYTHING
from approvals.models.request import RequestState
from approvals.working_calendar import calendar
from runs.models import Run

FROZEN = "frozen"  # the code of whatever is refused or held because of one
_IN_FORCE = "SELECT scope FROM approvals_freeze WHERE lifted_at IS NULL"
_HELD_STILL = "SELECT approvals_freezes_in_force()"


# asked along with whatever else is asked: is anything frozen at all?
ANY = "EXISTS (SELECT FROM approvals_freeze WHERE lifted_at IS NULL)"


def of_tool(name: str) -> str:
    return f"tool:{name}"


def of_workflow(name: str) -> str:
    return f"workflow:{name}"


def in_force(*, lock: bool = False) -> frozenset[str]:
    """The scopes that are frozen. With `lock` no freeze comes or goes until the caller's transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(_HELD_STILL if lock else _IN_FORCE)
        return frozenset(row[0] for row in cursor.fetchall())


def over(*, workflow: str, tool: str = "", lock: bool = False) -> Freeze | None:
    """The freeze that holds an action of this tool in this workflow; the widest one. One statement while there is none.

    `lock` as for `in_force`.
    """
    wanted = [EVERYTHING, of_workflow(workflow), *([of_tool(tool)] if tool else [])]
    if not in_force(lock=lock).intersection(wanted):
        return None
    widest = Case(*(When(scope=scope, then=place) for place, scope in enumerate(wanted)))
    found = Freeze.objects.filter(lifted_at__isnull=True, scope__in=wanted).select_related("by")
    return found.order_by(widest).first()


def current() -> QuerySet[Freeze]:
    """Those in force, the oldest first."""
    return Freeze.objects.filter(lifted_at__isnull=True).select_related("by").order_by("since")


def runs_under(*, scope: str) -> Q:
    """Which live runs a freeze of that scope may hold: those that were granted the tool, or are of the workflow."""
    kind, _, name = scope.partition(":")
    live = Q(finished_at__isnull=True)
    if kind == "tool":
        return live & Q(capabilities__contains=[name])
    return live & Q(workflow=name) if kind == "workflow" else live


def requests_under(*, scope: str) -> Q:
    """Which requests for approval a freeze of that scope stops the clock of."""
    kind, _, name = scope.partition(":")
    if kind == "tool":
        return Q(proposal__tool=name)
    return Q(run__workflow=name) if kind == "workflow" else Q()


def stops(*, request: ApprovalRequest, in_force: Iterable[Freeze]) -> bool:
    """Whether one of these freezes holds the request's clock now: it came in time, and an approval would be good for
    longer than people may answer."""
    scopes = (EVERYTHING, of_workflow(request.run.workflow), of_tool(request.proposal.tool))
    moves = request.state == RequestState.OPEN and request.respond_by < request.valid_until
    return moves and any(one.scope in scopes and one.since < request.respond_by for one in in_force)


def answer_by(*, request: ApprovalRequest, run: Run, now: dt.datetime) -> dt.datetime:
    """Until when people may answer: a freeze stops that clock, but never the time until which an approval is good.

    Asks the database only when the stored time has passed.
    """
    if now < request.respond_by or request.respond_by >= request.valid_until:
        return request.respond_by
    return moved(request=request, run=run, now=now)


def moved(*, request: ApprovalRequest, run: Run, now: dt.datetime) -> dt.datetime:
    """When the answer is due: as asked at first, and later by every freeze that began before it had passed, two at
    once counting once. Never later than an approval would be good."""
    until = later(request=request, run=run, at=request.respond_by - request.stopped_for, now=now)
    return max(request.respond_by, min(until, request.valid_until))


def later(*, request: ApprovalRequest, run: Run, at: dt.datetime, now: dt.datetime) -> dt.datetime:
    """A time of the request's clock as it was set at first, moved on by what freezes have stopped that clock since it
    was asked. Of working time only working time is lost to a freeze."""
    scopes = [EVERYTHING, of_workflow(run.workflow), of_tool(request.proposal.tool)]
    found = Freeze.objects.filter(Q(lifted_at__isnull=True) | Q(lifted_at__gt=request.created_at), scope__in=scopes)
    until, counted_to = at, request.created_at
    for since, lifted_at in found.order_by("since").values_list("since", "lifted_at"):
        begins, ends = max(since, counted_to), min(lifted_at or now, now)
        if begins >= until:
            break
        if ends > begins:
            until, counted_to = _plus(request, until, begins, ends), ends
    return until


def _plus(request: ApprovalRequest, until: dt.datetime, begins: dt.datetime, ends: dt.datetime) -> dt.datetime:
    if request.clock != "working":
        return until + (ends - begins)
    lost = working_time.between(calendar=calendar(), since=begins, until=ends)
    return working_time.later(calendar=calendar(), since=until, by=lost)
