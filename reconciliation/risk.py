"""What is at risk: operations that are not confirmed, or in dispute, each counted once, by the month it belongs to."""

import calendar
import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Exists, OuterRef, Q, Subquery

from reconciliation.models import Case, Operation
from reconciliation.models.case import ABOUT_OUR_RECORD, UNRESOLVED
from reconciliation.models.operation import UNCONFIRMED
from runs.money import Money

ASKED = "Asked about, no case yet"
EXPORTED = ("Month end", "Currency", "Kind", "Operations", "Amount at risk", "At risk up to that month end")


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """`until` is the last day of the month in which the operations were made; `kind` what is the matter, in words.
    `minor` is their amount, `so_far` that of all kinds in this currency up to then."""

    until: dt.date
    currency: str
    kind: str
    number: int
    minor: int
    so_far: int


def at_risk() -> list[Risk]:
    """By currency, month end and kind, the oldest first; what has no amount is left out. The amount is what was really
    recorded, of what is recorded twice both."""
    open_cases = Case.objects.filter(ABOUT_OUR_RECORD, UNRESOLVED, operation=OuterRef("pk"))
    unsure = Operation.objects.filter(Q(state__in=UNCONFIRMED) | Exists(open_cases), amount_minor__isnull=False)
    unsure = unsure.annotate(kind=Subquery(open_cases.order_by("number").values("kind")[:1]))
    sums: dict[tuple[str, dt.date, str], tuple[int, int]] = {}
    words = dict(Case.Kind.choices)
    for one in unsure.only("amount_minor", "currency", "actual", "settled_by", "created_at").iterator(chunk_size=2000):
        kind = words.get(str(one.kind), ASKED)
        key = (one.currency, _month_end(one.created_at), kind)
        number, minor = sums.get(key, (0, 0))
        sums[key] = (number + 1, minor + (one.real_minor or 0) + (one.other_minor or 0))
    return list(_added_up(sums))


def in_all(risks: list[Risk]) -> list[Money]:
    """One sum for each currency."""
    sums: dict[str, int] = {}
    for one in risks:
        sums[one.currency] = sums.get(one.currency, 0) + one.minor
    return [Money(minor, currency) for currency, minor in sorted(sums.items())]


def exported(risks: list[Risk]) -> Iterator[list[object]]:
    """The same as rows of a file."""
    for one in risks:
        amounts = [Money(minor, one.currency).plain() for minor in (one.minor, one.so_far)]
        yield [one.until.isoformat(), one.currency, one.kind, one.number, *amounts]


def _month_end(at: dt.datetime) -> dt.date:
    day = at.astimezone(dt.UTC).date()
    return day.replace(day=calendar.monthrange(day.year, day.month)[1])


def _added_up(sums: dict[tuple[str, dt.date, str], tuple[int, int]]) -> Iterator[Risk]:
    """Every kind of a month end shows what is at risk up to it, whichever kind it is."""
    up_to: dict[tuple[str, dt.date], int] = {}
    for currency, until, _ in sums:
        up_to[currency, until] = sum(
            minor for (other, end, _), (_, minor) in sums.items() if other == currency and end <= until
        )
    for (currency, until, kind), (number, minor) in sorted(sums.items()):
        yield Risk(
            until=until, currency=currency, kind=kind, number=number, minor=minor, so_far=up_to[currency, until]
        )  # fmt: skip
