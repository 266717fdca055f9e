"""Switches: what is frozen now and was before; freezing and lifting, each with its consequence and a reason."""

import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from agentops import switching
from agentops.pages.run import ReasonForm
from approvals import freezes
from approvals.models import Freeze
from approvals.services import freezing
from runs import clock
from runs.access import needs, refused, someone_else, user_of
from runs.rights import NO_RIGHT
from runs.services import principals

PAST = 50


class FreezeForm(ReasonForm):
    scope = forms.ChoiceField(
        label="What",
        widget=forms.Select(),
        error_messages={"required": "Choose what to freeze."},
    )
    field_order = ("scope", "reason")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["scope"].choices = list(switching.scopes().items())  # type: ignore[attr-defined]
        self.fields["reason"].help_text = "Shown on every page while it lasts, and kept in the record."


class LiftForm(ReasonForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "auto_id": "lift_%s"})  # beside the other form's fields
        self.fields["reason"].help_text = "Kept in the record."


def _page(
    request: HttpRequest, *, form: FreezeForm, lifting: LiftForm | None = None, dialog: str = "", status: int = 200
) -> HttpResponse:
    past = Freeze.objects.filter(lifted_at__isnull=False).select_related("by", "lifted_by").order_by("-lifted_at")
    context = {
        "section": "switches",
        "now": clock.now(),
        "current": [(one, switching.reach(scope=one.scope)) for one in freezes.current()],
        "past": past[:PAST],
        "could": [(scope, words, switching.reach(scope=scope)) for scope, words in switching.scopes().items()],
        "may": request.user.has_perm(freezing.PERMISSION),
        "form": form,
        "lifting": lifting or LiftForm(),
        "dialog": dialog,
        "consequence": switching.CONSEQUENCE,
        "lift_consequence": switching.LIFT_CONSEQUENCE,
    }
    return render(request, "agentops/switches.html", context, status=status)


@require_GET
@needs("runs.view_run")
def switches(request: HttpRequest) -> HttpResponse:
    return _page(request, form=FreezeForm(), dialog=request.GET.get("act", ""))


def _answer(request: HttpRequest, result: freezing.FreezeResult, done: str) -> HttpResponse:
    if result.ok:
        messages.success(request, done)
    elif result.code == NO_RIGHT:
        return refused(request, reason=switching.say(code=result.code, detail=result.detail))
    else:
        messages.error(request, switching.say(code=result.code, detail=result.detail))
    return redirect("switches")


@require_POST
@needs(freezing.PERMISSION)
def switches_freeze(request: HttpRequest) -> HttpResponse:
    if someone_else(request):
        return refused(request, reason="This page was opened under another login, so nothing was changed.")
    form = FreezeForm(request.POST)
    if not form.is_valid():
        return _page(request, form=form, dialog="freeze", status=422)
    principal = principals.of_user(user=user_of(request))
    result = freezing.freeze(scope=form.cleaned_data["scope"], principal=principal, reason=form.cleaned_data["reason"])
    flying = switching.reach(scope=form.cleaned_data["scope"]).in_flight
    still = f" {flying} operation{'s are' if flying != 1 else ' is'} in flight and will be settled." if flying else ""
    return _answer(request, result, f"Frozen. Nothing new is sent from now on.{still}")


@require_POST
@needs(freezing.PERMISSION)
def switches_lift(request: HttpRequest, freeze_id: uuid.UUID) -> HttpResponse:
    if someone_else(request):
        return refused(request, reason="This page was opened under another login, so nothing was changed.")
    form = LiftForm(request.POST)
    if not form.is_valid():
        return _page(request, form=FreezeForm(), lifting=form, dialog=f"lift-{freeze_id}", status=422)
    principal = principals.of_user(user=user_of(request))
    result = freezing.lift(freeze_id=freeze_id, principal=principal, reason=form.cleaned_data["reason"])
    return _answer(request, result, "Lifted. What it held goes on by and by.")
