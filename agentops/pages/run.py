"""The page of one run: where it stands, its trace as it happens, and everything there is to know about it."""

import datetime as dt
import uuid
from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_GET, require_POST

from agentops.acts import perform
from agentops.pages import audit, detail, live, undone
from agentops.pages.operating import ACTS, Act, say
from approvals import capabilities, heard
from approvals.models import ApprovalRequest, Decision
from reconciliation.models import Case, Operation
from reconciliation.models.operation import OperationState
from runs import clock, queries, record
from runs.access import needs, refused, someone_else, user_of
from runs.forms import Form
from runs.models import Event, Evidence, ModelCall, Proposal, Run
from runs.models.run import RunState
from runs.rights import NO_RIGHT
from runs.services import principals

AUDIT_PAGE = 200
# where a run may be waiting for a time that somebody can bring forward
MAY_WAIT = (RunState.WAITING, RunState.EXECUTING, RunState.OUTCOME_UNKNOWN)
TABS = (
    ("trace", "Trace"),
    ("evidence", "Evidence"),
    ("approvals", "Approvals"),
    ("operations", "Operations"),
    ("audit", "Audit"),
    ("file", "Case file"),
)


class ReasonForm(Form):
    reason = forms.CharField(
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 3}),
        label="Why",
        help_text="Kept in the record, and shown to whoever looks at this run later.",
        error_messages={"required": "Say why: it stays in the run's record."},
    )


def whole_number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 16 else None


def moment(text: str) -> dt.datetime | None:
    """A time that a page has posted back, ISO 8601 with its zone; None for anything else."""
    try:
        at = parse_datetime(text)
    except ValueError:
        return None
    return at if at is not None and at.tzinfo is not None else None


def _found(run_id: uuid.UUID) -> Run:
    runs = Run.objects.select_related("initiator", "run_as", "agent", "owner", "cancelled_by")
    return get_object_or_404(runs, pk=run_id)


# ---- what each tab shows
def _trace(request: HttpRequest, run: Run) -> dict[str, Any]:
    before = whole_number(request.GET.get("before"))
    events = queries.newest_events(run_id=run.pk, up_to=before, limit=live.WINDOW)
    newest = before is None or before >= run.event_seq
    chosen = whole_number(request.GET.get("event"))
    event = next((one for one in events if one.seq == chosen), None) or _event(run.pk, chosen)
    return {
        "rows": live.rows(run_id=run.pk, events=events),
        "trace": live.lanes(run=run, events=events, newest=newest),
        "seq": events[-1].seq if events else 0,
        "first": events[0].seq if events else 0,
        "earlier": events[0].seq - 1 if events and events[0].seq > 1 else None,
        "newest": newest,
        "event": event,
        "detail": detail.full(event=event) if event else None,
    }


def _event(run_id: uuid.UUID, seq: int | None) -> Event | None:
    if seq is None:
        return None
    return Event.objects.filter(stream=record.stream_of(run_id=run_id), seq=seq).select_related("actor").first()


def _evidence(request: HttpRequest, run: Run) -> dict[str, Any]:
    pieces = list(Evidence.objects.filter(run=run).order_by("-reading", "kind")[:400])
    readings: dict[int, list[Evidence]] = {}
    for piece in pieces:
        readings.setdefault(piece.reading, []).append(piece)
    calls = ModelCall.objects.filter(run=run).select_related("proposal").order_by("started_at")[:100]
    return {"readings": readings.items(), "calls": calls}


def _approvals(request: HttpRequest, run: Run) -> dict[str, Any]:
    asked = ApprovalRequest.objects.filter(run=run)
    asked = asked.select_related("run", "proposal", "policy_version__policy", "decision").prefetch_related(
        "stages", "votes__principal", "votes__instead_of", "votes__stage", "refusals__principal", "viewings__principal"
    )
    people = ("standing__asked_by", "standing__granted_by")
    alone = Decision.objects.filter(proposal__run=run).exclude(kind=Decision.Kind.PEOPLE)
    alone = alone.select_related("proposal", "policy_version__policy", *people).order_by("proposal__number")
    requests = list(asked.order_by("created_at"))
    return {
        "requests": requests,
        "left_out": {pk for one in requests for pk in heard.left_out(request=one, votes=one.votes.all())},
        "automatic": [one for one in alone if one.kind == Decision.Kind.POLICY],
        "beforehand": [one for one in alone if one.kind == Decision.Kind.STANDING],
    }


def _operations(request: HttpRequest, run: Run) -> dict[str, Any]:
    found = Operation.objects.filter(run=run).select_related("proposal", "decision__policy_version__policy")
    found = found.prefetch_related("attempts__sender", "observations__actor", "cases__claimed_by")
    steps = undone.by_operation(undoing=undone.of_run(run=run))
    shown = [(one, steps.get(one.pk, []), _way(request, one)) for one in found.order_by("created_at")]
    return {"operations": shown}


def _way(request: HttpRequest, operation: Operation) -> undone.Way | None:
    """How it can be undone, where that is a question at all; only who may propose it is offered to."""
    if operation.state != OperationState.SUCCEEDED:
        return None
    way = undone.way(operation=operation)
    return way if request.user.has_perm("runs.operate_run") or not way.open else None


def _audit(request: HttpRequest, run: Run) -> dict[str, Any]:
    after = whole_number(request.GET.get("after")) or 0
    events = queries.events_after(run_id=run.pk, after=after, limit=AUDIT_PAGE)
    return {
        "entries": audit.entries(run=run, events=events),
        "broken_at": record.verify(stream=record.stream_of(run_id=run.pk)),
        "after": after,
        "next_after": events[-1].seq if events and events[-1].seq < run.event_seq else None,
        "earlier_after": max(after - AUDIT_PAGE, 0) if after else None,
    }


def _file(request: HttpRequest, run: Run) -> dict[str, Any]:
    proposals = Proposal.objects.filter(run=run).select_related("proposer").order_by("number")
    parts = _evidence(request, run) | _approvals(request, run) | _operations(request, run)
    cases = Case.objects.filter(operation__run=run).select_related("resolved_by", "operation").order_by("number")
    events = queries.newest_events(run_id=run.pk, up_to=None, limit=2000)
    return parts | {"proposals": proposals, "cases": cases, "rows": live.rows(run_id=run.pk, events=events)}


_SHOWS: dict[str, Callable[[HttpRequest, Run], dict[str, Any]]] = {
    "trace": _trace,
    "evidence": _evidence,
    "approvals": _approvals,
    "operations": _operations,
    "audit": _audit,
    "file": _file,
}


def _acts(request: HttpRequest, run: Run) -> list[Act]:
    """What this person can do to the run as it stands."""
    if run.is_over or run.cancel_requested_at or not request.user.has_perm("runs.operate_run"):
        return []
    keys = ["resume" if run.paused_at else "pause"]
    keys += ["again"] if run.state in MAY_WAIT and not run.paused_at and not run.frozen_by else []
    keys += ["to-person"] if run.state != RunState.NEEDS_PERSON else []
    return [ACTS[key] for key in (*keys, "cancel")]


def _page(
    request: HttpRequest, run: Run, *, tab: str, form: ReasonForm, dialog: str, status: int = 200
) -> HttpResponse:
    tab_counts, acts = live.counts(run=run), _acts(request, run)
    context = {
        **live.head(run=run),
        **_SHOWS[tab](request, run),
        "section": "runs",
        "tab": tab,
        "tab_counts": tab_counts,
        "tabs": [(key, word, tab_counts.get(key)) for key, word in TABS],
        "form": form,
        "dialog": dialog,
        "acts": acts,
        "on_cancel": undone.on_cancel(run=run) if acts else None,
        "granted": capabilities.in_force(run=run, zone=timezone.get_current_timezone()),
    }
    return render(request, "runs/run.html", context, status=status)


@require_GET
@needs("runs.view_run")
def run_page(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    tab = request.GET.get("tab", "trace")
    run = _found(run_id)
    form, dialog = ReasonForm(), request.GET.get("act", "")
    return _page(request, run, tab=tab if tab in _SHOWS else "trace", form=form, dialog=dialog)


@require_GET
@needs("runs.view_run")
def run_live(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """What the web socket would send, for browsers without one; 204 when there is nothing new."""
    part = live.fragment(run_id=run_id, after=whole_number(request.GET.get("after")) or 0)
    if part is None:
        raise Http404
    return HttpResponse(part.html) if part.html else HttpResponse(status=204)


@require_GET
@needs("runs.view_run")
def run_event(request: HttpRequest, run_id: uuid.UUID, seq: int) -> HttpResponse:
    """One event in full, for the panel beside the trace."""
    event = _event(run_id, seq)
    if event is None:
        raise Http404
    run = _found(run_id)
    context = {"event": event, "detail": detail.full(event=event), "run": run, "now": clock.now()}
    return render(request, "runs/_detail.html", context)


@require_GET
@needs("runs.view_run")
def run_record(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """The record as it is stored, one JSON text a line: number, canonical text, hash."""
    run = _found(run_id)
    found = (
        Event.objects.filter(stream=record.stream_of(run_id=run.pk)).order_by("seq").values_list("canonical", "hash")
    )
    lines = "".join(f'{{"event":{canonical},"hash":"{digest}"}}\n' for canonical, digest in found.iterator())
    response = HttpResponse(lines, content_type="application/x-ndjson")
    response["Content-Disposition"] = f'attachment; filename="run-{run.pk}.jsonl"'
    return response


@require_POST
@needs("runs.operate_run")
def run_act(request: HttpRequest, run_id: uuid.UUID, act: str) -> HttpResponse:
    """One of the acts on a run, with a reason."""
    run = _found(run_id)
    if act not in ACTS:
        raise Http404
    if someone_else(request):
        return refused(request, reason="This page was opened under another login, so nothing was changed.")
    form = ReasonForm(request.POST)
    if not form.is_valid():
        return _page(request, run, tab="trace", form=form, dialog=act, status=422)
    principal = principals.of_user(user=user_of(request))
    result = perform(
        act=act,
        run_id=run.pk,
        principal=principal,
        reason=form.cleaned_data["reason"],
        paused_at=moment(request.POST.get("paused_at", "")),
    )
    if result.ok:
        messages.success(request, ACTS[act].done)
    elif result.code == NO_RIGHT:
        return refused(request, reason=say(result))
    else:
        messages.error(request, say(result))
    return redirect("run", run.pk)
