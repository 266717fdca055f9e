"""What is used of standing approvals and what is left, for pages and the API. Reads only."""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Q

from approvals import standing
from approvals.models import Allowance, StandingApproval
from approvals.models.standing import StandingState
from reconciliation.models import Reservation

SHOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """One standing approval in the period of `now`: minor units and counts. `look` is what it comes to: waiting,
    ready (not begun), in_force, used_up, over, declined, withdrawn, revoked. Parts are in thousandths of the total."""

    standing: StandingApproval
    look: str
    period: str
    settled: int
    reserved: int
    times: int
    times_reserved: int

    @property
    def left(self) -> int:
        return max(0, self.standing.total_minor - self.settled - self.reserved)

    @property
    def times_left(self) -> int:
        return max(0, self.standing.count - self.times - self.times_reserved)

    @property
    def w_settled(self) -> int:
        return min(1000, round(1000 * self.settled / self.standing.total_minor))

    @property
    def w_reserved(self) -> int:
        return min(1000 - self.w_settled, round(1000 * self.reserved / self.standing.total_minor))


def left(*, found: Iterable[StandingApproval], now: dt.datetime) -> list[Left]:
    """For each, in the same order, in one query."""
    ones = list(found)
    keys = {one.pk: standing.key_of(standing=one, period=standing.period_of(standing=one, at=now)) for one in ones}
    rows = {row.key: row for row in Allowance.objects.filter(key__in=keys.values())}
    return [_left(one, rows.get(keys[one.pk]), now) for one in ones]


def _left(one: StandingApproval, row: Allowance | None, now: dt.datetime) -> Left:
    made = Left(
        standing=one,
        look="",
        period=standing.period_of(standing=one, at=now),
        settled=row.settled_minor if row else 0,
        reserved=row.reserved_minor if row else 0,
        times=row.settled_count if row else 0,
        times_reserved=row.reserved_count if row else 0,
    )
    return Left(**{name: getattr(made, name) for name in made.__slots__} | {"look": _look(made, now)})


def _look(one: Left, now: dt.datetime) -> str:
    state = one.standing.state
    if state != StandingState.IN_FORCE:
        return "waiting" if state == StandingState.ASKED else str(state)
    if now >= one.standing.ends_at:
        return "over"
    if now < one.standing.starts_at:
        return "ready"
    return "used_up" if one.left == 0 or one.times_left == 0 else "in_force"


def uses(*, one: StandingApproval) -> list[Reservation]:
    """What was done under it, the newest first, with operation and run."""
    own = standing.key_of(standing=one, period="")
    found = Reservation.objects.filter(Q(allowance_id=own) | Q(allowance__key__startswith=f"{own}/"))
    return list(found.select_related("operation__run").order_by("-operation__created_at")[:SHOWN])


def listed(*, now: dt.datetime) -> dict[str, list[Left]]:
    """All there are: `waiting`, `live` (in force, used up or still to begin) and `past`, at most `SHOWN` each."""
    people = StandingApproval.objects.select_related("asked_by", "granted_by", "ended_by")
    in_force = Q(state=StandingState.IN_FORCE, ends_at__gt=now)
    asked = Q(state=StandingState.ASKED)
    return {
        "waiting": left(found=people.filter(asked).order_by("-asked_at")[:SHOWN], now=now),
        "live": left(found=people.filter(in_force).order_by("ends_at", "id")[:SHOWN], now=now),
        "past": left(found=people.exclude(in_force | asked).order_by("-asked_at")[:SHOWN], now=now),
    }
