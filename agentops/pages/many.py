"""One act on many runs: what is chosen, the question with its consequence, and what became of each run."""

import datetime as dt
import uuid
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db.models import Case, Count, Q, QuerySet, When
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from agentops import batches
from agentops.pages.operating import ACTS, sentence
from agentops.pages.run import ReasonForm, moment, whole_number
from agentops.pages.runs import also_matching, page_number
from runs import clock, queries
from runs.access import needs, refused, someone_else, user_of
from runs.models import Batch, BatchItem, Run
from runs.rights import NO_RIGHT
from runs.services import principals

PAGE = 100
SHOWN = 8  # runs named in the question; the others are counted
_REFUSED = {
    "none_chosen": "None of these runs is live any more, so there is nothing to do.",
    "too_many": "These are more than {limit:,} runs. Choose fewer by a filter, and do it in parts.",
    "more_now": "More runs match by now than this page has named, so nothing was done. Here they are as they are now.",
    NO_RIGHT: "Your rights have changed: this takes an active account with the right to operate runs.",
}


# what was refused before what is not done yet, and that before what was done
_ORDER = Case(When(code="", then=1), When(code="ok", then=2), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The live runs that were ticked, or all that match the filter and were there `asked_at`; `words` say which."""

    runs: QuerySet[Run]
    words: str
    all: bool
    ids: tuple[str, ...]
    text: str
    group: queries.Group
    asked_at: dt.datetime


def _chosen(data: QueryDict, *, asked_at: dt.datetime) -> Choice:
    text, group = data.get("q", "")[: queries.TEXT_LIMIT], queries.group(data.get("state", ""))
    every = data.get("all") == "1"
    ids: tuple[str, ...] = ()
    if every:
        runs = queries.search(text=text, also=also_matching(text=text)).filter(created_at__lte=asked_at)
        runs = runs.filter(state__in=group.states) if group.states else runs
        words = f"all that match “{text}”" if text else "all there are"
        words += f" in “{group.word}”" if group.key else ""
    else:
        ids = tuple(one for one in data.getlist("run")[: batches.MOST] if _is_id(one))
        runs = Run.objects.filter(pk__in=ids)
        words = "ticked in the list"
    live = runs.filter(finished_at__isnull=True)
    return Choice(runs=live, words=words, all=every, ids=ids, text=text, group=group, asked_at=asked_at)


def _is_id(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def _question(
    request: HttpRequest, data: QueryDict, form: ReasonForm, *, problem: str = "", status: int = 200
) -> HttpResponse:
    """Asked anew each time, of the runs there are now."""
    act, choice = ACTS.get(data.get("act", "")), _chosen(data, asked_at=clock.read())
    if act is None:
        raise Http404
    number = choice.runs.count()
    context: dict[str, Any] = {
        "section": "runs",
        "now": clock.now(),
        "act": act,
        "choice": choice,
        "number": number,
        "named": choice.runs.order_by("-created_at", "-id")[:SHOWN],
        "more": max(number - SHOWN, 0),
        "form": form,
        "problem": problem,
    }
    return render(request, "runs/many.html", context, status=status)


@require_GET
@needs("runs.operate_run")
def many(request: HttpRequest) -> HttpResponse:
    """The question, for an act and a choice; without them, what was done to many runs so far."""
    if "act" in request.GET:
        return _question(request, request.GET, ReasonForm())
    done = Batch.objects.select_related("principal").order_by("-created_at")[:50]
    context = {"section": "runs", "now": clock.now(), "batches": [(one, ACTS.get(one.act)) for one in done]}
    return render(request, "runs/batches.html", context)


@require_POST
@needs("runs.operate_run")
def many_do(request: HttpRequest) -> HttpResponse:
    """Write down what is to be done; the relay does it. A page that is sent twice makes a second batch, whose runs
    then say that it was done before."""
    if someone_else(request):
        return refused(request, reason="This page was opened under another login, so nothing was changed.")
    form, act = ReasonForm(request.POST), request.POST.get("act", "")
    if act not in ACTS:
        raise Http404
    if not form.is_valid():
        return _question(request, request.POST, form, status=422)
    asked_at = moment(request.POST.get("asked_at", ""))
    choice = _chosen(request.POST, asked_at=asked_at or clock.read())
    started = batches.start(
        act=act,
        runs=choice.runs,
        chosen=choice.words,
        principal=principals.of_user(user=user_of(request)),
        reason=form.cleaned_data["reason"],
        shown=whole_number(request.POST.get("number")) or 0 if choice.all else None,
    )
    if started.batch is None:
        said = _REFUSED[started.code].format_map(started.detail or {})
        if started.code == NO_RIGHT:
            return refused(request, reason=said)
        return _question(request, request.POST, form, problem=said, status=409)
    messages.success(request, "Written down. Each run has its own result below as it is done; you may leave this page.")
    return redirect("batch", started.batch.pk)


@require_GET
@needs("runs.view_run")
def batch(request: HttpRequest, batch_id: uuid.UUID) -> HttpResponse:
    """How far it is, and the result of each run: those refused first."""
    found = get_object_or_404(Batch.objects.select_related("principal"), pk=batch_id)
    items = BatchItem.objects.filter(batch=found)
    counted = items.aggregate(
        done=Count("pk", filter=Q(code="ok")), refused=Count("pk", filter=~Q(code__in=["", "ok"]))
    )
    number = page_number(request)
    rows = items.select_related("run").order_by(_ORDER, "-done_at", "id")[(number - 1) * PAGE : number * PAGE + 1]
    context = {
        "section": "runs",
        "now": clock.now(),
        "batch": found,
        "act": ACTS.get(found.act),
        **counted,
        "left": found.total - counted["done"] - counted["refused"],
        "rows": [(one, sentence(code=one.code, detail=one.detail) if one.code else "") for one in list(rows)[:PAGE]],
        "number": number,
        "more": len(rows) > PAGE,
    }
    fragment = request.headers.get("HX-Request") == "true"
    return render(request, "runs/_batch.html" if fragment else "runs/batch.html", context)
