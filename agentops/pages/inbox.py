"""The approvals inbox: what waits for the reader, for others, and what was decided and became of it."""

import datetime as dt
import uuid
from dataclasses import dataclass
from typing import Any, cast

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from agentops import asked
from agentops.pages.became import Outcome, operations_of, outcome
from agentops.permissions import GROUP_WORDS
from approvals import queries
from approvals.models import ApprovalRequest
from approvals.models.request import RequestState
from runs import clock
from runs.access import needs
from runs.money import Money

PAGE = 50
TABS: tuple[queries.Tab, ...] = ("mine", "others", "decided")
# keys of bound rows that are never "the document" a request is about
_NOT_A_DOCUMENT = {"amount", "account", "policy", "identity", "lead"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    request: ApprovalRequest
    document: dict[str, str]
    group: str
    progress: str
    instead_of: str
    outcome: Outcome
    reference: str


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


def _rows(*, user: User, tab: queries.Tab, after: uuid.UUID | None) -> list[Row]:
    requests = queries.inbox(user=user, tab=tab, limit=PAGE + 1, after=after)
    operations = operations_of(requests=requests)
    proposals = {request.supersedes.proposal_id for request in requests if request.supersedes}
    earlier = {
        request.pk: amount_text(request)
        for request in ApprovalRequest.objects.filter(proposal_id__in=proposals).select_related("proposal")
    }
    rows = []
    for request in requests:
        operation = operations.get(request.proposal_id)
        rows.append(
            Row(
                request=request,
                document=document_row(page=request.page),
                group=asked.asked_words(request),
                progress=asked.progress(request),
                instead_of=earlier.get(request.supersedes_id, "") if request.supersedes_id else "",
                outcome=outcome(request=request, operation=operation),
                reference=(operation.external_reference or "") if operation else "",
            )
        )
    return rows


def _sections(*, rows: list[Row], tab: str, now: dt.datetime) -> list[dict[str, Any]]:
    """Open requests by how soon they are due; decided ones in one list."""
    if tab == "decided":
        return [{"title": "Newest first", "rows": rows}] if rows else []
    hour = now + dt.timedelta(hours=1)
    day = now + dt.timedelta(hours=24)
    parts = (
        ("Within the hour", [row for row in rows if row.request.respond_by < hour]),
        ("Within a day", [row for row in rows if hour <= row.request.respond_by < day]),
        ("Later", [row for row in rows if row.request.respond_by >= day]),
    )
    return [{"title": title, "rows": part} for title, part in parts if part]


def _tab(request: HttpRequest) -> queries.Tab:
    wanted = request.GET.get("tab", "mine")
    return next((tab for tab in TABS if tab == wanted), "mine")


def _after(request: HttpRequest) -> uuid.UUID | None:
    try:
        return uuid.UUID(request.GET.get("after", ""))
    except ValueError:
        return None


@needs("approvals.view_approvalrequest")
def inbox(request: HttpRequest) -> HttpResponse:
    user, tab, after = cast(User, request.user), _tab(request), _after(request)
    rows = _rows(user=user, tab=tab, after=after)
    more = len(rows) > PAGE
    rows = rows[:PAGE]
    now = clock.now()
    groups = sorted(GROUP_WORDS.get(name, name) for name in user.groups.values_list("name", flat=True))
    context = {
        "section": "approvals",
        "now": now,
        "tab": tab,
        "sections": _sections(rows=rows, tab=tab, now=now),
        "ids": " ".join(str(row.request.pk) for row in rows),
        "live": after is None,
        "next": rows[-1].request.pk if more else None,
        "later_page": after is not None,
        "others_count": _others(user),
        "next_due": rows[0].request.respond_by if rows and tab == "mine" and after is None else None,
        "groups": groups,
        "may_vote": user.has_perm("approvals.vote"),
        "any_decided": ApprovalRequest.objects.exclude(state=RequestState.OPEN).exists() if not rows else True,
    }
    return render(request, "approvals/inbox.html", context)


@needs("approvals.view_approvalrequest")
def arrivals(request: HttpRequest) -> HttpResponse:
    """What the list holds now, for the page to compare with what it shows; nothing else moves under the pointer."""
    user, tab = cast(User, request.user), _tab(request)
    requests = queries.inbox(user=user, tab=tab, limit=PAGE)
    context = {
        "tab": tab,
        "ids": " ".join(str(found.pk) for found in requests),
        "mine": queries.waiting_count(user=user),
    }
    return render(request, "approvals/arrivals.html", context)


def _others(user: User) -> int:
    return ApprovalRequest.objects.filter(state=RequestState.OPEN).count() - queries.waiting_count(user=user)
