"""Standing approvals through the API: to read only. Giving and revoking them is for people in the browser."""

from typing import Any

from django.http import HttpRequest
from ninja import Router
from ninja.responses import Status

from agentops import standing_figures as figures
from agentops.api.operating import no_right
from agentops.api.schemas import Problem, StandingOut
from agentops.standing_figures import Left
from runs import clock

router = Router(tags=["standing approvals"])


@router.get(
    "/standing-approvals",
    response={200: list[StandingOut], 401: Problem, 403: Problem},
    summary="What people have approved beforehand, with what is used and left",
)
def list_standing(request: HttpRequest) -> Status[Any]:
    """Those in force or still to begin, the one that ends first first. For tokens that may operate."""
    if refused := no_right(request):
        return refused
    return Status(200, [_told(one) for one in figures.listed(now=clock.now())["live"]])


def _told(row: Left) -> dict[str, Any]:
    one = row.standing
    return {
        "id": one.pk,
        "state": row.look,
        "tool": one.tool,
        "only": one.only,
        "by": [person.label for person in one.people],
        "reason": one.reason,
        "currency": one.currency,
        "each_minor": str(one.each_minor),
        "total_minor": str(one.total_minor),
        "left_minor": str(row.left),
        "under_way_minor": str(row.reserved),
        "count": one.count,
        "count_left": row.times_left,
        "period": one.period,
        "starts_at": one.starts_at,
        "ends_at": one.ends_at,
    }
