"""The approvals inbox: what waits for the reader, for others, and what was decided and became of it."""

import datetime as dt
import uuid
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from agentops import asked
from agentops.pages import inbox_filters, walk
from agentops.pages.became import Outcome, operations_of, outcome
from agentops.pages.context import counts
from approvals import bulk, heard, lists, queries, talk
from approvals.models import ApprovalRequest, Claim, Remark
from approvals.models.request import RequestState
from approvals.services import saved_views
from runs import clock
from runs.access import needs, user_of
from runs.money import Money

PAGE = 50
# keys of bound rows that are never "the document" a request is about
_NOT_A_DOCUMENT = {"amount", "account", "policy", "identity", "lead"}
_BY_DEADLINE = ("mine", "others")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    request: ApprovalRequest
    document: dict[str, str]
    group: str
    progress: str
    instead_of: str
    outcome: Outcome
    reference: str
    kind: str
    questions: list[Remark]  # that wait for an answer
    holder: Claim | None  # who says that they are looking at it
    stands_for: str  # in whose place alone the reader would answer


def document_row(*, page: list[dict[str, str]]) -> dict[str, str]:
    """The bound row that names what a request is about: its invoice, else the first that is not something else."""
    for row in page:
        if row.get("key") == "invoice":
            return row
    return next((row for row in page if row.get("key") not in _NOT_A_DOCUMENT), {"label": "", "value": ""})


def amount_text(request: ApprovalRequest) -> str:
    """`$1,200.00 USD`, or nothing for an action without an amount."""
    proposal = request.proposal
    return str(Money(proposal.amount_minor, proposal.currency)) if proposal.amount_minor is not None else ""


def rows_of(requests: list[ApprovalRequest], *, user: User | None = None) -> list[Row]:
    """With all that a row shows, in a fixed number of queries; `user` is whom the requests wait for."""
    operations = operations_of(requests=requests)
    proposals = {request.supersedes.proposal_id for request in requests if request.supersedes}
    earlier = {
        request.pk: amount_text(request)
        for request in ApprovalRequest.objects.filter(proposal_id__in=proposals).select_related("proposal")
    }
    questions = talk.questioned(requests=requests)
    held = talk.holders(requests=requests, now=clock.now())
    yes = heard.yes(requests=requests)
    away = {} if user is None else queries.stood_for(user=user, requests=requests)
    rows = []
    for request in requests:
        operation = operations.get(request.proposal_id)
        rows.append(
            Row(
                request=request,
                document=document_row(page=request.page),
                group=asked.asked_words(request),
                progress=asked.progress(request, yes=yes),
                instead_of=earlier.get(request.supersedes_id, "") if request.supersedes_id else "",
                outcome=outcome(request=request, operation=operation),
                reference=(operation.external_reference or "") if operation else "",
                kind=bulk.kind(request=request),
                questions=questions.get(request.pk, []),
                holder=held.get(request.pk),
                stands_for=away.get(request.pk, ""),
            )
        )
    return rows


def _sections(*, rows: list[Row], listing: lists.Listing, now: dt.datetime) -> list[dict[str, Any]]:
    """Open requests by how soon they are due where that is the order; else one list."""
    if listing.tab not in _BY_DEADLINE or listing.order not in ("", "soon"):
        title = dict(inbox_filters.orders(listing)).get(listing.order, "")
        return [{"title": f"{title} first" if "first" not in title else title, "rows": rows}] if rows else []
    hour = now + dt.timedelta(hours=1)
    day = now + dt.timedelta(hours=24)
    parts = (
        ("Within the hour", [row for row in rows if row.request.respond_by < hour]),
        ("Within a day", [row for row in rows if hour <= row.request.respond_by < day]),
        ("Later", [row for row in rows if row.request.respond_by >= day]),
    )
    return [{"title": title, "rows": part} for title, part in parts if part]


def _id(request: HttpRequest, name: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(request.GET.get(name, ""))
    except ValueError:
        return None


@needs("approvals.view_approvalrequest")
def inbox(request: HttpRequest) -> HttpResponse:
    user = user_of(request)
    views = list(saved_views.of(user=user))
    if not request.GET:
        opens_with = next((one for one in views if one.is_default), None)
        if opens_with is not None:
            return redirect(f"{request.path}?{opens_with.query or 'tab=mine'}")
    read = lists.read(request.GET)
    listing, after, around = read.listing, _id(request, "after"), _id(request, "around")
    waiting = queries.scope(user=user, tab="mine")
    found = lists.page(user=user, listing=listing, limit=PAGE + 1, after=after, around=around, waiting=waiting)
    more, rows = len(found) > PAGE, rows_of(found[:PAGE], user=user if listing.tab == "mine" else None)
    now, at_start = clock.now(), after is None and around is None
    mine = queries.waiting_count(user=user, waiting=waiting)
    may_vote = user.has_perm("approvals.vote")
    context = {
        "section": "approvals",
        "now": now,
        "tab": listing.tab,
        "listing": listing,
        "typed": request.GET,
        "problems": read.problems,
        "walk": walk.address(listing),
        "walk_list": listing.query(),
        "list_url": walk.list_url(listing),
        "tabs": _tabs(user, listing, mine),
        "sections": _sections(rows=rows, listing=listing, now=now),
        "pickable": may_vote and listing.tab == "mine",
        "most_at_once": bulk.MOST,
        "ids": " ".join(str(row.request.pk) for row in rows),
        "live": at_start,
        "next": rows[-1].request.pk if more and rows else None,
        "later_page": not at_start,
        "soonest": [row.request for row in rows] if at_start and _soonest_first(listing) else [],
        "groups": sorted(asked.group_words(name) for name in user.groups.values_list("name", flat=True)),
        "may_vote": may_vote,
        "mine": walk.counted(mine),
        "counts": counts(user=user, mine=mine),
        "views": [(one, one.query == listing.query()) for one in views],
        "done": request.GET.get("done") == "1",
        "filter": inbox_filters.form(listing),
        "any_decided": rows or ApprovalRequest.objects.exclude(state=RequestState.OPEN).exists(),
    }
    return render(request, "approvals/inbox.html", context)


def _soonest_first(listing: lists.Listing) -> bool:
    return listing.tab == "mine" and listing.order in ("", "soon") and not listing.filters


def _tabs(user: User, listing: lists.Listing, mine: int) -> list[dict[str, Any]]:
    """The tabs with their counts: of others' only where both can be counted in full."""
    every = queries.counted(rows=ApprovalRequest.objects.filter(state=RequestState.OPEN).order_by("respond_by"))
    others = str(max(every - mine, 0)) if every <= lists.MOST_COUNTED else ""
    words = {"mine": "Waiting", "others": "Waiting", "decided": "Decided", "all": "All"}
    of = {"mine": "for you", "others": "for others"}
    said = {"mine": walk.counted(mine), "others": others}
    return [
        {
            "key": key,
            "word": word,
            "of": of.get(key, ""),
            "url": walk.list_url(lists.Listing(tab=key)),
            "count": said.get(key, ""),
            "here": key == listing.tab,
        }
        for key, word in ((one, words[one]) for one in lists.TABS)
    ]


@needs("approvals.view_approvalrequest")
def arrivals(request: HttpRequest) -> HttpResponse:
    """What the list holds now, for the page to compare with what it shows; nothing else moves under the pointer.

    Twice a page, so that a row which newer ones push down is not taken for one that left."""
    user, listing = user_of(request), walk.listing(request)
    waiting = queries.scope(user=user, tab="mine")
    mine = queries.waiting_count(user=user, waiting=waiting)
    context = {
        "walk": walk.address(listing),
        "ids": " ".join(str(pk) for pk in lists.ids(user=user, listing=listing, limit=2 * PAGE, waiting=waiting)),
        "mine": mine,
        "mine_shown": walk.counted(mine),
    }
    return render(request, "approvals/arrivals.html", context)
