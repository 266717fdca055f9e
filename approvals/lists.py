"""A list of requests as its address says it: which ones, in which order, and where somebody stands in it. Reads only.

Pages are cut by the sort key of the last row seen, never by number, and every count stops at `MOST_COUNTED`, so that
nearly every list costs about the same with a hundred thousand requests as with a thousand (docs/benchmarks.md).
"""

import contextlib
import datetime as dt
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, cast
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from approvals import queries
from approvals.models import ApprovalRequest
from runs import clock
from runs.money import Money, MoneyError, currency_code, of_places, parse_amount, parse_shown

MOST_COUNTED = queries.MOST_COUNTED
TEXT_LIMIT = 100
TABS: tuple[queries.Tab, ...] = ("mine", "others", "decided", "all")
DUE = {"hour": dt.timedelta(hours=1), "day": dt.timedelta(days=1), "week": dt.timedelta(days=7)}
AGE = {"hour": dt.timedelta(hours=1), "day": dt.timedelta(days=1), "week": dt.timedelta(days=7)}
# what people write around an amount; never what stands within it, since a comma may mean a point
_SIGNS = re.compile(r"^([A-Za-z]{3})? ?[$€£¥]? ?(?=\d)|(?<=\d) ?([A-Za-z]{3}|[$€£¥])$")
FEW = 1000  # matches of a search that are read first
ORDERS = ("soon", "new", "old", "large")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Every field is text as in the address; "" leaves it open. `least` and `most` are plain amounts of `currency`,
    `rule` is `<policy>/<rule>`, `asker` the id of who started the run, `by` is "me" or ""."""

    tab: queries.Tab = "mine"
    q: str = ""
    tool: str = ""
    least: str = ""
    most: str = ""
    currency: str = ""
    group: str = ""
    asker: str = ""
    rule: str = ""
    due: str = ""
    age: str = ""
    by: str = ""
    order: str = ""

    @property
    def filters(self) -> dict[str, str]:
        """What narrows the list, by field."""
        given = {one.name: str(getattr(self, one.name)) for one in fields(self)}
        return {name: value for name, value in given.items() if value and name not in ("tab", "order")}

    def query(self) -> str:
        """The one way to write it in an address: "" for what waits for me, with nothing else said."""
        given = {one.name: str(getattr(self, one.name)) for one in fields(self)}
        return urlencode([(name, value) for name, value in given.items() if value and (name, value) != ("tab", "mine")])

    def without(self, *names: str) -> "Listing":
        cleared: dict[str, Any] = dict.fromkeys(names, "")
        return replace(self, **cleared)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What an address says, and what of it could not be read, each in a sentence that says what to write."""

    listing: Listing
    problems: tuple[str, ...]


def read(data: Mapping[str, str]) -> Read:
    """The list that an address or a form names. Unknown values are left out; amounts that are none are told of."""
    found = {one.name: " ".join(data.get(one.name, "").replace("\x00", "").split()) for one in fields(Listing)}
    found = {name: value[:TEXT_LIMIT] for name, value in found.items()}
    wanted = found.pop("tab")
    tab: queries.Tab = next((one for one in TABS if one == wanted), "mine")
    for name, known in (("due", DUE), ("age", AGE), ("order", ORDERS), ("by", ("me",))):
        found[name] = found[name] if found[name] in known else ""
    try:
        uuid.UUID(found["asker"])
    except ValueError:
        found["asker"] = ""
    problems = _amounts(found)
    if found["order"] == "large" and not found["currency"]:
        problems.append("Currency: choose one to put the largest amount first, since amounts of two do not compare.")
        found["order"] = ""
    return Read(listing=Listing(tab=tab, **found), problems=tuple(problems))


def _amounts(found: dict[str, str]) -> list[str]:
    """Tidy the amounts and their currency in place; what is wrong with them, in sentences."""
    problems = []
    if found["currency"]:
        try:
            found["currency"] = currency_code(found["currency"])
        except MoneyError as problem:
            problems.append(f"Currency: {found['currency'][:20]} {problem}.")
            found["currency"] = ""
    for name, label in (("least", "Amount from"), ("most", "Amount to")):
        if not found[name]:
            continue
        if not found["currency"]:
            problems.append(f"{label}: say in which currency, such as USD.")
            found[name] = ""
        else:
            try:
                found[name] = parse_shown(text=found[name], currency=found["currency"]).plain()
            except MoneyError as problem:
                problems.append(f"{label}: {found[name][:40]} {problem}.")
                found[name] = ""
    return problems


def rows(
    *, user: User, listing: Listing, waiting: QuerySet[ApprovalRequest] | None = None
) -> QuerySet[ApprovalRequest]:
    """All that are in the list, in no order. `waiting` is what waits for the person, where a page has put that together
    already (here and below): it takes some reads and much composing."""
    found = waiting if waiting is not None and listing.tab == "mine" else queries.scope(user=user, tab=listing.tab)
    now = clock.now() if listing.due or listing.age else None
    for name in listing.filters:
        found = found.filter(_CONDITIONS[name](listing, user, now))
    return found


def page(
    *,
    user: User,
    listing: Listing,
    limit: int,
    after: uuid.UUID | None = None,
    around: uuid.UUID | None = None,
    waiting: QuerySet[ApprovalRequest] | None = None,
) -> list[ApprovalRequest]:
    """A page with all that a row shows already read; `after` is the id of the last row seen. With `around`, it begins
    a few rows before that request, which may have left the list."""
    found, order = rows(user=user, listing=listing, waiting=waiting), _order(listing)
    last = _mark(after or around, order)
    if last is not None and around is not None:
        before = list(_sorted(found.filter(_beyond(last, order.turned)), order.turned)[:BEFORE])
        found = found.filter(_beyond(before[-1] if before else last, order, itself=True))
    elif last is not None:
        found = found.filter(_beyond(last, order))
    # first which, then all of them: with both in one the database may join everything there is before it takes a page
    wanted = list(_sorted(found, order).values_list("pk", flat=True)[:limit])
    shown = ApprovalRequest.objects.filter(pk__in=wanted).select_related(*queries.SHOWN).defer(*queries.NOT_SHOWN)
    by_id = {one.pk: one for one in shown.prefetch_related("votes__principal", "votes__instead_of", "stages")}
    return [by_id[pk] for pk in wanted if pk in by_id]


def ids(
    *, user: User, listing: Listing, limit: int, waiting: QuerySet[ApprovalRequest] | None = None
) -> list[uuid.UUID]:
    """The first requests of the list, by id."""
    found = _sorted(rows(user=user, listing=listing, waiting=waiting), _order(listing))
    return list(found.values_list("pk", flat=True)[:limit])


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a request stands in a list: `number` from 1, or 0 where it is not in it (or too far down to count)."""

    number: int
    of: int
    previous: uuid.UUID | None
    next: uuid.UUID | None


def place(
    *, user: User, listing: Listing, request: ApprovalRequest, waiting: QuerySet[ApprovalRequest] | None = None
) -> Place:
    """The request's number in the list as it is now, and what stands beside it."""
    found, order = rows(user=user, listing=listing, waiting=waiting), _order(listing)
    known = order.value(request) is not None
    earlier = found.filter(_beyond(request, order.turned)) if known else found.none()
    before = queries.counted(rows=_sorted(earlier, order.turned))
    inside = known and found.filter(pk=request.pk).exists()
    following = _sorted(found.filter(_beyond(request, order)) if known else found, order).exclude(pk=request.pk)
    return Place(
        number=before + 1 if inside and before <= MOST_COUNTED else 0,
        of=queries.counted(rows=_sorted(found, order)),
        previous=_sorted(earlier, order.turned).values_list("pk", flat=True).first() if before else None,
        next=following.values_list("pk", flat=True).first(),
    )


def to_decide_after(
    *, user: User, listing: Listing, request: ApprovalRequest, waiting: QuerySet[ApprovalRequest] | None = None
) -> uuid.UUID | None:
    """The next request of the list that waits for this person, after that one in the list's order; what was passed over
    comes once the end is reached. None when the list is done."""
    mine = to_decide(listing)
    order = _order(mine)
    others = rows(user=user, listing=mine, waiting=waiting).exclude(pk=request.pk)
    found = _sorted(others, order).values_list("pk", flat=True)
    following = found.filter(_beyond(request, order)).first() if order.value(request) is not None else None
    return following or found.first()


def to_decide(listing: Listing) -> Listing:
    """What of the list waits for the person."""
    return replace(listing, tab="mine", by="", order="" if listing.tab == "decided" else listing.order)


# ---- the order, and what lies beyond a row in it

BEFORE = 10  # rows shown before the one that somebody comes back to


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    column: str
    falling: bool

    @property
    def turned(self) -> "_Order":
        return replace(self, falling=not self.falling)

    def value(self, row: ApprovalRequest) -> Any:
        found: Any = row
        for part in self.column.split("__"):
            found = getattr(found, part)
        return found


def _order(listing: Listing) -> _Order:
    if listing.order == "large":
        return _Order(column="amount_minor", falling=True)
    if listing.tab == "decided":
        return _Order(column="closed_at", falling=listing.order != "old")
    if listing.order in ("new", "old") or (listing.tab == "all" and not listing.order):
        return _Order(column="created_at", falling=listing.order != "old")
    return _Order(column="respond_by", falling=False)


def _sorted(found: QuerySet[ApprovalRequest], order: _Order) -> QuerySet[ApprovalRequest]:
    sign = "-" if order.falling else ""
    return found.order_by(f"{sign}{order.column}", f"{sign}id")


def _beyond(last: ApprovalRequest, order: _Order, *, itself: bool = False) -> Q:
    """Whatever comes after that row, or from it on. The first condition is what an index can use."""
    value, than = order.value(last), "lt" if order.falling else "gt"
    further = Q(**{f"{order.column}__{than}": value}) | Q(**{f"pk__{than}e" if itself else f"pk__{than}": last.pk})
    return Q(**{f"{order.column}__{than}e": value}) & further


def _mark(pk: uuid.UUID | None, order: _Order) -> ApprovalRequest | None:
    if pk is None:
        return None
    found = ApprovalRequest.objects.filter(pk=pk).first()
    return found if found is not None and order.value(found) is not None else None


# ---- what each filter asks for


def _matches(listing: Listing) -> Q:
    """Customer, ticket, title or sentence contain it; or it is a run's number, or an amount in any currency."""
    text = listing.q
    found = Q(words__icontains=text)
    with contextlib.suppress(ValueError):
        found |= Q(run=uuid.UUID(text))
    plain = _SIGNS.sub("", text)
    for codes in of_places().values():
        try:
            minor = parse_shown(text=plain, currency=codes[0]).minor
        except MoneyError:
            continue
        found |= Q(amount_minor=minor, currency__in=codes)
    return found


def _found(listing: Listing) -> Q:
    """The same by id where there are few: else the database may walk a whole list in its order, hoping to meet them."""
    matches = _matches(listing)
    few = list(ApprovalRequest.objects.filter(matches).values_list("pk", flat=True)[: FEW + 1])
    return Q(pk__in=few) if len(few) <= FEW else matches


def _amount(listing: Listing, name: str, than: str) -> Q:
    money: Money = parse_amount(text=getattr(listing, name), currency=listing.currency)
    return Q(**{f"amount_minor__{than}": money.minor}, currency=listing.currency)


def _rule(listing: Listing) -> Q:
    slug, _, rule = listing.rule.partition("/")
    of_policy = Q(policy_version__policy__slug=slug)
    return of_policy & Q(rules__contains=[{"id": rule}]) if rule else of_policy


def _by(user: User) -> Q:
    return Q(pk__in=queries.answered_by(user=user))


_CONDITIONS: dict[str, Any] = {
    "q": lambda listing, user, now: _found(listing),
    "tool": lambda listing, user, now: Q(proposal__tool=listing.tool),
    "least": lambda listing, user, now: _amount(listing, "least", "gte"),
    "most": lambda listing, user, now: _amount(listing, "most", "lte"),
    "currency": lambda listing, user, now: Q(currency=listing.currency),
    "group": lambda listing, user, now: Q(group=listing.group),
    "asker": lambda listing, user, now: Q(run__initiator=cast(Any, listing.asker)),
    "rule": lambda listing, user, now: _rule(listing),
    "due": lambda listing, user, now: Q(respond_by__lte=now + DUE[listing.due]),
    "age": lambda listing, user, now: Q(created_at__lte=now - AGE[listing.age]),
    "by": lambda listing, user, now: _by(user),
}
