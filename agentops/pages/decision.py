"""The decision page: what will happen, exactly; and the click, which never believes the page it came from."""

import uuid
from typing import Any, Literal, cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render, resolve_url
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agentops import hints, policy_now
from agentops.pages import confirmation, walk, ways
from agentops.pages import decision_facts as facts
from approvals import objections, words
from approvals.models import ApprovalRequest
from approvals.models.request import RequestState
from approvals.services import requests, votes
from runs import clock
from runs.access import deactivated, needs, refused, someone_else

# refusals that are about the person are 403, about what was typed 422; the rest says that the request has moved on
_STATUS = {"no_right": 403, "inactive": 403, "own_request": 403, "reason_needed": 422, "comment_too_long": 422}
_STATUS |= dict.fromkeys(confirmation.CODES, 422)
_STATUS |= dict.fromkeys(("why_needed", "text_needed", "amount_unreadable", "amount_same", "amount_not_possible"), 422)
_STATUS |= dict.fromkeys(("not_yours", "may_not_see", "own_question"), 403)
_MOVED_ON = 409
# the state in which a request still is what the sentence of an accepted vote says
_FRESH = {"approved": RequestState.APPROVED, "rejected": RequestState.REJECTED, "voted": RequestState.OPEN}
_FRESH |= {"voted_no": RequestState.OPEN}
COMMENT_KEPT = 20_000
_OF_AMOUNT = ("amount_unreadable", "amount_same", "amount_not_possible", "amount_denied")  # said at that field


def _load(request_id: uuid.UUID) -> ApprovalRequest:
    found = facts.load(request_id=request_id)
    if found is None:
        raise Http404("no such request")
    return found


@require_http_methods(["GET", "HEAD", "POST"])
def decision(request: HttpRequest, request_id: uuid.UUID) -> HttpResponseBase:
    return decide(request, request_id) if request.method == "POST" else show(request, request_id)


@needs("approvals.view_approvalrequest")
def show(request: HttpRequest, request_id: uuid.UUID) -> HttpResponse:
    return _page(request, _load(request_id))


def _page(
    request: HttpRequest,
    ask: ApprovalRequest,
    *,
    status: int = 200,
    notice: str = "",
    confirm: bool = False,
    code: str = "",
    way: dict[str, Any] | None = None,
) -> HttpResponse:
    """The page, with what was typed kept in it."""
    user = cast(User, request.user)
    seen = facts.seated(user=user, request=ask)
    context: dict[str, Any] = facts.context(user=user, request=ask, seen=seen) | walk.context(request, ask)
    typed = request.POST.get("comment", "")[:COMMENT_KEPT]
    context |= {
        "notice": notice,
        "notice_code": code,
        "notice_good": code == "decided" and facts.answered_so(user=user, request=ask, choice=_choice(request)),
        "confirm": confirm and context["can_decide"] and not context["held"],
        "typed": typed,
        **confirmation.context(request, ask=ask, money=context["money"]),
        **ways.context(user=user, ask=ask, seen=seen),
        **(way or _asked_way(request, ask)),
        "unsent": "" if facts.comment_kept(user=user, request=ask, comment=typed) else typed,
        "ticked": request.POST.get("acknowledged") == str(ask.pk),
    }
    return render(request, "approvals/decision.html", context, status=status)


def _asked_way(request: HttpRequest, ask: ApprovalRequest) -> dict[str, Any]:
    """The way that a link without scripts opens."""
    key, asked = request.GET.get("way", ""), request.GET.get("question", "")
    return {"way_open": key, "answering": ways.question(ask=ask, asked=asked) if key == "answer" else None}


def _choice(request: HttpRequest) -> Literal["approve", "reject"]:
    return "reject" if request.POST.get("choice") == "reject" else "approve"


def decide(request: HttpRequest, request_id: uuid.UUID) -> HttpResponseBase:
    """One click. A lost right is refused by the vote itself, so that it is recorded; hence no permission up front."""
    gone = deactivated(request)
    if gone is not None:
        _load(request_id)
        _cast(request, request_id, user=gone, choice=_choice(request))
        return refused(request, reason=_with_comment(request, words.sentence(code="inactive")))
    return _decide_signed_in(request, request_id)


@needs("")
def _decide_signed_in(request: HttpRequest, request_id: uuid.UUID) -> HttpResponse:
    ask, user = _load(request_id), cast(User, request.user)
    may_look = user.has_perm("approvals.view_approvalrequest")
    if someone_else(request):
        sentence = words.sentence(code="someone_else")
        return _page(request, ask, status=_MOVED_ON, notice=sentence) if may_look else refused(request, reason=sentence)
    choice = request.POST.get("choice", "")
    if choice == "approve" and may_look:  # the second deliberate act is asked for, whatever the browser can do
        return _page(request, ask, confirm=True)
    if choice not in ("approve_confirmed", "reject", "approve"):
        return (
            _page(request, ask, status=422, notice="Choose Approve or Reject.")
            if may_look
            else refused(request, reason="")
        )
    result = _cast(request, request_id, user=user, choice=_choice(request))
    if result.accepted:
        hints.lists_moved()
        following = walk.after(request, ask)
        level = messages.INFO if result.code in ("voted", "voted_no") else messages.SUCCESS
        messages.add_message(request, level, _told(result, user=user, following=following))
        return walk.go_on(request, following)
    if not may_look:
        sentence = words.sentence(code="no_right", detail={"group": ask.group})
        return refused(request, reason=_with_comment(request, f"{sentence} Your answer was not recorded."))
    sentence = words.sentence(code=result.code, detail=result.detail)
    shown = _load(result.successor_id or request_id)
    status = _STATUS.get(result.code, _MOVED_ON)
    again = result.code in confirmation.CODES
    return _page(request, shown, status=status, notice=sentence, code=result.code, confirm=again)


def _with_comment(request: HttpRequest, sentence: str) -> str:
    """Where there is no page to keep it in, what was typed is said again."""
    typed = request.POST.get("comment", "").strip()[:COMMENT_KEPT]
    return f"{sentence} Your comment was not sent: “{typed}”" if typed else sentence


def _said(result: votes.VoteResult, *, user: User) -> str:
    """The answer in words; a repeated one whose request has moved on since is told as something past."""
    ask = result.request
    if result.repeated and ask.state != _FRESH[result.code]:
        past = objections.closed(request=ask, run=ask.run, user=user, now=clock.now())
        if past is not None:
            return words.sentence(code=past.code, detail=past.detail)
    return words.sentence(code=result.code, detail=result.detail)


def _told(result: votes.VoteResult, *, user: User, following: uuid.UUID | None) -> SafeString:
    """What the next page says of the one before it, where to see what became of it, and which one is shown now."""
    return format_html(
        '{} {}. <a href="{}">See what became of it</a>.{}',
        _said(result, user=user),
        result.request.ask,
        reverse("decision", args=[result.request.pk]),
        f" Shown now, the next: {_load(following).ask}." if following else "",
    )


def _cast(
    request: HttpRequest, request_id: uuid.UUID, *, user: User, choice: Literal["approve", "reject"]
) -> votes.VoteResult:
    return votes.cast(
        request_id=request_id,
        user=user,
        choice=choice,
        comment=request.POST.get("comment", ""),
        page_digest=request.POST.get("page_digest", ""),
        acknowledged=request.POST.get("acknowledged") == str(request_id),
        authenticated_by=confirmation.authenticated_by(request),
        channel="page",
        reevaluate=policy_now.verdict,
        given=confirmation.given(request),
    )


@require_POST
@needs("approvals.view_approvalrequest")
def opened(request: HttpRequest, request_id: uuid.UUID) -> HttpResponse:
    """The open page says so itself; a GET changes nothing."""
    requests.record_viewing(request_id=_load(request_id).pk, user=cast(User, request.user))
    return HttpResponse(status=204)


@require_POST
@needs("approvals.view_approvalrequest")
def act(request: HttpRequest, request_id: uuid.UUID, key: str) -> HttpResponse:
    """Something beside the answer: a remark, a claim, sending back. What was typed stays until it is taken."""
    ask = _load(request_id)
    if key not in ways.WAYS:
        raise Http404("there is no such way")
    if someone_else(request):
        return _page(request, ask, status=_MOVED_ON, notice=words.sentence(code="someone_else"))
    result = ways.perform(request, ask=ask, key=key)
    if result.ok:
        messages.success(request, ways.WAYS[key].done)
        return redirect(reverse("decision", args=[ask.pk]) + walk.address(walk.listing(request)))
    sentence = words.sentence(code=result.code, detail=result.detail)
    of_amount = key == "amount" and result.code in _OF_AMOUNT
    way = {
        "way_open": key,
        "way_problem": "" if of_amount else sentence,
        "amount_problem": sentence if of_amount else "",
        "way_text": request.POST.get("text", "")[:COMMENT_KEPT],
        "way_amount": request.POST.get("amount", "")[:40],
        "answering": ways.question(ask=ask, asked=request.POST.get("question", "")) if key == "answer" else None,
    }
    status = _STATUS.get(result.code, _MOVED_ON)
    return _page(request, _load(request_id), status=status, notice=sentence, code=result.code, way=way)


@require_GET
@needs("approvals.view_approvalrequest")
def thread(request: HttpRequest, request_id: uuid.UUID) -> HttpResponse:
    """What an open page asks every few seconds: whether anything was written, or somebody looks at it."""
    context = ways.thread(user=cast(User, request.user), ask=_load(request_id))
    context["walk_list"] = walk.listing(request).query()
    if request.GET.get("v") == context["thread_version"]:
        return HttpResponse(status=204)
    return render(request, "approvals/_thread.html", context)


@require_GET
@needs("approvals.view_approvalrequest")
def status(request: HttpRequest, request_id: uuid.UUID) -> HttpResponse:
    """What an open page asks every few seconds: nothing new, a new state, or a successor to move to."""
    ask, user = _load(request_id), cast(User, request.user)
    seen = facts.seated(user=user, request=ask)
    stands = facts.standing(user=user, request=ask, seen=seen)
    context = facts.bar_context(request=ask, stands=stands, seen=seen) | walk.bar(request, ask)
    if context["successor"]:
        response = HttpResponse(status=204)
        response["HX-Redirect"] = resolve_url("decision", context["successor"]) + context["walk"]
        return response
    if request.GET.get("v") == stands.version:
        return HttpResponse(status=204)
    context |= confirmation.context(request, ask=ask, money=context["money"])
    context |= ways.context(user=user, ask=ask, seen=seen)
    return render(request, "approvals/status.html", context)
