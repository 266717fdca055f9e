"""Proposing that an operation is undone: what that would do, and why. Nothing is sent from here."""

import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse as address
from django.views.decorators.http import require_http_methods, require_POST

from agentops.pages import undone
from agentops.pages.reversal_words import anew_refusal, refusal
from agentops.pages.run import whole_number
from reconciliation import reversing
from reconciliation.models import Case, Operation
from reconciliation.models.case import SETTLE
from reconciliation.reversing import Undo
from reconciliation.services import anew, reversals
from runs import clock, holding
from runs.access import needs, refused, someone_else, user_of
from runs.forms import Form
from runs.rights import NO_RIGHT
from runs.services import principals
from runs.tools.registry import contract, reverser


class ReversalForm(Form):
    reason = forms.CharField(
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 3}),
        label="Why",
        help_text="Whoever approves it reads this, and it stays in the record.",
        error_messages={"required": "Say why: whoever approves it reads this."},
    )


def _case(request: HttpRequest, operation: Operation) -> Case | None:
    number = whole_number(request.POST.get("case") or request.GET.get("case"))
    return None if number is None else get_object_or_404(Case, pk=number, operation=operation)


def _back(operation: Operation, case: Case | None) -> str:
    return address("case", args=[case.pk]) if case else address("run", args=[operation.run_id]) + "?tab=operations"


def _page(
    request: HttpRequest,
    operation: Operation,
    case: Case | None,
    form: ReversalForm,
    *,
    problem: str = "",
    status: int = 200,
) -> HttpResponse:
    undo = reversing.undo_of(operation=operation)
    context: dict[str, Any] = {
        "section": "cases" if case else "runs",
        "now": clock.now(),
        "operation": operation,
        "run": operation.run,
        "case": case,
        "back": _back(operation, case),
        "form": form,
        "problem": problem,
        "already": reversing.living(operation=operation),
        "before": undone.by_operation(undoing=undone.of_run(run=operation.run)).get(operation.pk, []),
    }
    if isinstance(undo, Undo):
        promised = contract(undo.tool)
        context |= {"told": reverser(undo.tool).told(effect=undo.effect), "promised": promised}
    else:
        context["why_not"] = undo
    return render(request, "runs/reverse.html", context, status=status)


@require_http_methods(["GET", "POST"])
@needs("runs.view_run")
def reverse(request: HttpRequest, operation_id: uuid.UUID) -> HttpResponse:
    """The page that proposes a reversal, from a run or a case, and the proposal itself."""
    operation = get_object_or_404(Operation.objects.select_related("run"), pk=operation_id)
    case = _case(request, operation)
    right = holding.OPERATE if case is None else SETTLE
    if not request.user.has_perm(right):
        raise Http404
    if request.method == "GET":
        return _page(request, operation, case, ReversalForm())
    if someone_else(request):
        return refused(request, reason="This page was opened under another login, so nothing was proposed.")
    form = ReversalForm(request.POST)
    if not form.is_valid():
        return _page(request, operation, case, form, status=422)
    result = reversals.propose(
        operation_id=operation.pk,
        principal=principals.of_user(user=user_of(request)),
        reason=form.cleaned_data["reason"],
        case_number=case.pk if case else None,
    )
    problem = "" if result.ok else refusal(code=result.code, detail=result.detail)
    if result.code == NO_RIGHT:
        return refused(request, reason=problem)
    if problem:
        return _page(request, operation, case, form, problem=problem, status=409)
    messages.success(request, "Proposed. Nothing is undone until somebody else has approved it and it was carried out.")
    return redirect(_back(operation, case))


@require_POST
@needs(SETTLE)
def done_anew(request: HttpRequest, operation_id: uuid.UUID) -> HttpResponse:
    """Allow that what was undone is done anew: it gives its business key up."""
    if someone_else(request):
        return refused(request, reason="This page was opened under another login, so nothing was changed.")
    operation = get_object_or_404(Operation, pk=operation_id)
    reason, me = request.POST.get("reason", "")[:2000], principals.of_user(user=user_of(request))
    result = anew.allow(operation_id=operation.pk, principal=me, reason=reason)
    if result.ok:
        messages.success(request, "The same may be proposed again. Whether people are asked then, the policy says.")
        return redirect("operation", operation.pk)
    said = anew_refusal(code=result.code, detail=result.detail)
    if result.code == NO_RIGHT:
        return refused(request, reason=said)
    messages.error(request, said)
    return redirect("operation", operation.pk)
