"""Working through a list: a decision page knows the list it was opened from, what stands beside it, and what is next.

The list travels in the address as `list=`, written as the list's own address writes it; without it, it is what waits
for the reader.
"""

import uuid
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from agentops.pages.context import counts
from approvals import lists, queries
from approvals.models import ApprovalRequest
from runs.access import user_of

PARAMETER = "list"
LONGEST = 4000


def listing(request: HttpRequest) -> lists.Listing:
    """The list that this page belongs to, from its address or its form."""
    text = request.POST.get(PARAMETER) or request.GET.get(PARAMETER, "")
    return lists.read(dict(parse_qsl(text[:LONGEST]))).listing


def address(found: lists.Listing) -> str:
    """What to put behind the address of a decision page: `?list=…`, or nothing for the usual list."""
    query = found.query()
    return f"?{urlencode({PARAMETER: query})}" if query else ""


def list_url(found: lists.Listing, **more: str) -> str:
    """The list's own page; it always says its tab, so that it is this list and no saved view."""
    query = found.query()
    parts = [] if query and found.tab != "mine" else ["tab=mine"]
    parts += [query] if query else []
    parts += [urlencode(more)] if more else []
    return f"{reverse('inbox')}?{'&'.join(parts)}"


def context(request: HttpRequest, ask: ApprovalRequest) -> dict[str, Any]:
    """For the page's head and its bar: where the request stands, and how to go on and back; and what waits where, since
    the usual list is what waits for the reader."""
    found, user = listing(request), user_of(request)
    waiting = queries.scope(user=user, tab="mine")
    place = lists.place(user=user, listing=found, request=ask, waiting=waiting)
    usual = found.tab == "mine" and not found.filters
    following = place.next if lists.to_decide(found) == found else None
    if following is None:
        following = lists.to_decide_after(user=user, listing=found, request=ask, waiting=waiting)
    return {
        "place": place,
        "counts": counts(user=user, mine=place.of if usual else queries.waiting_count(user=user, waiting=waiting)),
        "place_of": counted(place.of),
        "walk": address(found),
        "walk_list": found.query(),
        "back_url": list_url(found, around=str(ask.pk)),
        "next_to_decide": following,
    }


def bar(request: HttpRequest, ask: ApprovalRequest) -> dict[str, Any]:
    """The same for the parts that refresh themselves."""
    found = listing(request)
    following = lists.to_decide_after(user=user_of(request), listing=found, request=ask)
    return {"walk": address(found), "walk_list": found.query(), "next_to_decide": following}


def after(request: HttpRequest, ask: ApprovalRequest) -> uuid.UUID | None:
    """The next request of the list that waits for the reader, looked up now: what others decided is skipped."""
    return lists.to_decide_after(user=user_of(request), listing=listing(request), request=ask)


def go_on(request: HttpRequest, following: uuid.UUID | None) -> HttpResponse:
    """To the next request in the list, or to the list, which then says that it is done."""
    found = listing(request)
    if following is None:
        return redirect(list_url(found, done="1"))
    return redirect(reverse("decision", args=[following]) + address(found))


def counted(number: int) -> str:
    """A count as pages write it; what was not counted further is said to be more."""
    return f"{lists.MOST_COUNTED}+" if number > lists.MOST_COUNTED else str(number)
