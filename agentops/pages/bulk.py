"""One answer to several requests: what goes together with its totals, and then what became of each."""

import uuid
from typing import Any

from django.db.models import Case, When
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from agentops.pages import decision_facts, walk
from agentops.pages.confirmation import authenticated_by
from agentops.pages.inbox import rows_of
from approvals import bulk as together
from approvals import queries, words
from approvals.models import ApprovalRequest, BulkItem, BulkVote, Vote
from approvals.services import bulk, requests
from approvals.services.votes import COMMENT_LENGTH
from runs import clock
from runs.access import needs, refused, someone_else, user_of
from runs.ids import new_id

_PROBLEMS = {
    "reason_needed": (422, "Say why you reject them: the reason is empty."),
    "comment_too_long": (422, f"The reason is too long: at most {COMMENT_LENGTH:,} characters."),
    "none_chosen": (422, "No request was chosen, so nothing was done."),
    "too_many": (422, f"These are more than {together.MOST} requests. Choose fewer, and do it in parts."),
}
# what was not counted first, for that is what is still to be done
_ORDER = Case(When(code="", then=1), When(code__in=words.ACCEPTED, then=2), default=0)


def _ids(data: QueryDict) -> list[uuid.UUID]:
    """The requests that were ticked, each once, in their order; one more than may be answered together at most."""
    found: dict[uuid.UUID, None] = {}
    for text in data.getlist("request"):
        try:
            found[uuid.UUID(text)] = None
        except ValueError:
            continue
        if len(found) > together.MOST:
            break
    return list(found)


def _page(request: HttpRequest, data: QueryDict, *, problem: str = "", status: int = 200) -> HttpResponse:
    """The question, asked of the requests as they are now."""
    choice = data.get("choice", "")
    if choice not in Vote.Choice.values:
        raise Http404
    user, ids = user_of(request), _ids(data)
    if len(ids) > together.MOST and not problem:
        status, problem = _PROBLEMS["too_many"]
    found = {
        one.pk: one
        for one in ApprovalRequest.objects.filter(pk__in=ids)
        .select_related(*queries.SHOWN)
        .prefetch_related("votes__principal")
    }
    asked = [found[pk] for pk in ids if pk in found][: together.MOST]
    chosen = together.choose(user=user, requests=asked, choice=choice)
    listing = walk.listing(request)
    context: dict[str, Any] = {
        "section": "approvals",
        "now": clock.now(),
        "choice": choice,
        "verb": "Approve" if choice == Vote.Choice.APPROVE else "Reject",
        "rows": rows_of(chosen.kept),
        "left_out": [(one, _why(one, code, user)) for one, code in chosen.left_out],
        "number": len(chosen.kept),
        "totals": chosen.totals,
        "largest": chosen.largest,
        "key": new_id(),
        "typed": data.get("comment", ""),
        "problem": problem,
        "back_url": walk.list_url(listing),
        "walk": walk.address(listing),
        "walk_list": listing.query(),
    }
    return render(request, "approvals/bulk.html", context, status=status)


def _why(request: ApprovalRequest, code: str, user: Any) -> str:
    if code in together.SENTENCES:
        return together.SENTENCES[code]
    objection = decision_facts.standing(user=user, request=request).objection
    said = decision_facts.why_not(request=request, objection=objection)
    return said or words.sentence(code=code, detail={"freeze": "a freeze"}, answered=False)


@require_GET
@needs("approvals.vote")
def bulk_ask(request: HttpRequest) -> HttpResponse:
    return _page(request, request.GET)


@require_POST
@needs("approvals.vote")
def bulk_opened(request: HttpRequest) -> HttpResponse:
    """The open page says so itself, for each request it shows, as a decision page does."""
    user = user_of(request)
    shown = queries.scope(user=user, tab="mine").filter(pk__in=_ids(request.POST)[: together.MOST])
    for pk in shown.values_list("pk", flat=True):
        requests.record_viewing(request_id=pk, user=user)
    return HttpResponse(status=204)


@require_POST
@needs("")
def bulk_do(request: HttpRequest) -> HttpResponse:
    """Write the answers down; the relay counts them one by one. The same form twice is one word."""
    if someone_else(request):
        return refused(request, reason=words.sentence(code="someone_else"))
    choice, ids = request.POST.get("choice", ""), _ids(request.POST)
    try:
        key = uuid.UUID(request.POST.get("key", ""))
    except ValueError:
        raise Http404 from None
    if choice not in Vote.Choice.values:
        raise Http404
    started = bulk.start(
        key=key,
        user=user_of(request),
        choice=choice,
        comment=request.POST.get("comment", ""),
        digests={pk: request.POST.get(f"digest-{pk}", "") for pk in ids},
        authenticated_by=authenticated_by(request),
    )
    if started.bulk is not None:
        return redirect(reverse("bulk", args=[started.bulk.pk]) + walk.address(walk.listing(request)))
    if started.code in _PROBLEMS and request.user.has_perm("approvals.vote"):
        status, said = _PROBLEMS[started.code]
        return _page(request, request.POST, problem=said, status=status)
    return refused(request, reason="Your rights have changed: this takes an active account with the right to vote.")


@require_GET
@needs("")
def bulk_result(request: HttpRequest, bulk_id: uuid.UUID) -> HttpResponse:
    """How far it is, and what became of each; for the person whose word it is."""
    found = get_object_or_404(BulkVote, pk=bulk_id, principal__user=user_of(request))
    items = list(
        BulkItem.objects.filter(bulk=found)
        .select_related("request__proposal", "request__run", "request__decision")
        .order_by(_ORDER, "done_at", "id")
    )
    rows = [
        (one, together.standing(code=one.code), together.said(code=one.code, detail=one.detail) if one.code else "")
        for one in items
    ]
    counts = {name: sum(standing == name for _, standing, _ in rows) for name in ("voted", "changed", "refused", "")}
    listing = walk.listing(request)
    context = {
        "section": "approvals",
        "now": clock.now(),
        "bulk": found,
        "verb": "Approve" if found.choice == Vote.Choice.APPROVE else "Reject",
        "rows": rows,
        "voted": counts["voted"],
        "changed": counts["changed"],
        "refused": counts["refused"],
        "left": counts[""],
        "done": found.total - counts[""],
        "back_url": walk.list_url(listing),
        "walk": walk.address(listing),
    }
    fragment = request.headers.get("HX-Request") == "true"
    return render(request, "approvals/_bulk.html" if fragment else "approvals/bulk_result.html", context)
