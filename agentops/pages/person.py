"""Runs that need a person: the list, and the page on which somebody takes one over and says what happens next."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from agentops import reasons
from agentops.pages import live, whereabouts
from agentops.pages.operating import say
from agentops.steps.cancelling import left_by_failing, what_stays
from runs import clock, holding, queries
from runs.access import needs, refused, someone_else, user_of
from runs.forms import Form
from runs.models import ModelCall, Principal, Run
from runs.models.run import RunState
from runs.rights import NO_RIGHT
from runs.services import operate, principals
from runs.services.operate import OperateResult

TRIED_EVENTS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way on: `does` is the consequence, `button` what the button says."""

    key: str
    word: str
    does: str
    button: str


WAYS = (
    Way(
        key="gather",
        word="Read the facts again",
        does="Every source is read anew and the run goes on from there: the agent decides again, policy and approval "
        "apply as always.",
        button="Read again and go on",
    ),
    Way(
        key="decide",
        word="Let the agent decide again",
        does="The agent is asked once more about the facts as they were read last. Whatever it proposes goes through "
        "policy and approval.",
        button="Ask the agent again",
    ),
    Way(
        key="completed",
        word="Close as completed",
        does="Ends the run: what was meant has been done, by you or elsewhere. Nothing is sent.",
        button="Close as completed",
    ),
    Way(
        key="failed",
        word="Close as failed",
        does="Ends the run: what was meant has not been done. Nothing is sent, and what was done stays recorded; where "
        "its workflow goes back on failing, undoing it is proposed and needs its own approval.",
        button="Close as failed",
    ),
)


class WayForm(Form):
    way = forms.ChoiceField(
        choices=[(one.key, one.word) for one in WAYS],
        error_messages={"required": "Choose how it goes on.", "invalid_choice": "Choose one of the ways on."},
    )
    reason = forms.CharField(
        label="Why",
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Kept in the run's record. When you close it, this is what came of it.",
        error_messages={"required": "Say why: it stays in the run's record."},
    )


@require_GET
@needs("runs.view_run")
def needs_person(request: HttpRequest) -> HttpResponse:
    runs = [(run, reasons.words(run.person_code)) for run in queries.needing_person()]
    context = {"section": "needs_person", "runs": runs, "now": clock.now()}
    fragment = request.headers.get("HX-Request") == "true"
    return render(request, "runs/_needs_person.html" if fragment else "runs/needs_person.html", context)


def _page(request: HttpRequest, run: Run, form: WayForm, *, problem: str = "", status: int = 200) -> HttpResponse:
    events = queries.newest_events(run_id=run.pk, up_to=None, limit=TRIED_EVENTS)
    principal = Principal.objects.filter(user=user_of(request)).first()
    mine = principal is not None and run.owner_id == principal.pk
    context: dict[str, Any] = {
        "section": "needs_person",
        "now": clock.now(),
        "run": run,
        "here": run.state == RunState.NEEDS_PERSON,
        "why": reasons.words(run.person_code),
        "where": whereabouts.of(run=run),
        "rows": live.rows(run_id=run.pk, events=events),
        "calls": ModelCall.objects.filter(run=run).order_by("-started_at")[:3],
        "holder": "me" if mine else "other" if holding.holder(run=run) else "nobody",
        "may": request.user.has_perm("runs.operate_run"),
        "form": form,
        "ways": WAYS,
        "problem": problem,
    }
    return render(request, "runs/person.html", context, status=status)


def _found(run_id: uuid.UUID) -> Run:
    return get_object_or_404(Run.objects.select_related("owner", "initiator", "agent"), pk=run_id)


@require_GET
@needs("runs.view_run")
def person_run(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    return _page(request, _found(run_id), WayForm())


def _simple(request: HttpRequest, run_id: uuid.UUID, act: Callable[..., OperateResult], done: str) -> HttpResponse:
    """Claim or give back: no form beyond the button."""
    if someone_else(request):
        return refused(request, reason="This page was opened under another login, so nothing was changed.")
    run = _found(run_id)
    result = act(run_id=run.pk, principal=principals.of_user(user=user_of(request)))
    if result.ok:
        messages.success(request, done)
    elif result.code == NO_RIGHT:
        return refused(request, reason=say(result))
    else:
        messages.error(request, say(result))
    return redirect("person_run", run.pk)


@require_POST
@needs("runs.operate_run")
def person_claim(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    return _simple(
        request, run_id, operate.claim, "This run is yours now. It does nothing until you say how it goes on."
    )


@require_POST
@needs("runs.operate_run")
def person_release(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    return _simple(request, run_id, operate.release, "Given back. It waits for whoever takes it.")


def _carry_out(*, run: Run, principal: Principal, way: str, reason: str) -> OperateResult:
    if way == "gather":
        return operate.gather_again(run_id=run.pk, principal=principal, reason=reason)
    if way == "decide":
        return operate.decide_again(run_id=run.pk, principal=principal, reason=reason)
    stays = partial(left_by_failing, principal=principal, reason=reason) if way == RunState.FAILED else what_stays
    return operate.close(run_id=run.pk, principal=principal, as_state=way, reason=reason, what_stays=stays)


@require_POST
@needs("runs.operate_run")
def person_go_on(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """Carry out the chosen way on. What was typed stays on the page until it has been accepted."""
    if someone_else(request):
        return refused(request, reason="This page was opened under another login, so nothing was changed.")
    run, form = _found(run_id), WayForm(request.POST)
    if not form.is_valid():
        return _page(request, run, form, status=422)
    way, reason = form.cleaned_data["way"], form.cleaned_data["reason"]
    result = _carry_out(run=run, principal=principals.of_user(user=user_of(request)), way=way, reason=reason)
    if result.code == NO_RIGHT:
        return refused(request, reason=say(result))
    if not result.ok:
        return _page(request, _found(run_id), form, problem=say(result), status=409)
    done = {"gather": "The facts are read again.", "decide": "The agent is asked again."}
    messages.success(request, done.get(way, f"Closed as {way}."))
    return redirect("run", run.pk)
