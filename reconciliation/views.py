"""The desk: the queue of what no machine could settle, and the page of one case. No button here sends anything."""

import datetime as dt
import uuid
from typing import Any

from django.contrib import messages
from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from reconciliation import comparison, queries, words
from reconciliation.forms import VerdictForm
from reconciliation.models import Attempt, Case, Observation, Operation
from reconciliation.models.case import CaseState
from reconciliation.services import cases
from reconciliation.services.cases import CLAIM_LAPSES, CaseResult
from runs import clock
from runs.access import needs, refused, someone_else, user_of
from runs.models import Principal
from runs.services import principals

OTHER_LOGIN = "This page was opened under another login, so nothing was recorded."


@require_GET
@needs("reconciliation.view_case")
def queue(request: HttpRequest) -> HttpResponse:
    now = clock.now()
    sort = "amount" if request.GET.get("sort") == "amount" else "age"
    context = {
        "section": "cases",
        "now": now,
        "sort": sort,
        "desk": queries.desk(sort=sort),
        "settled": queries.settled_counts(since=now - dt.timedelta(days=1)),
        "may_settle": request.user.has_perm("reconciliation.settle_case"),
    }
    fragment = request.headers.get("HX-Request") == "true"
    return render(request, "reconciliation/_queue.html" if fragment else "reconciliation/queue.html", context)


def _found(number: int) -> Case:
    found = Case.objects.select_related(
        "operation__run", "operation__proposal", "operation__decision__request", "claimed_by", "resolved_by"
    ).prefetch_related(
        Prefetch("operation__attempts", Attempt.objects.select_related("sender").order_by("number")),
        Prefetch("operation__observations", Observation.objects.select_related("actor").order_by("at")),
    )
    return get_object_or_404(found, pk=number)


def _holder(case: Case, principal: Principal | None, now: dt.datetime) -> str:
    """Who has the case: me, other, or nobody (a lapsed claim is nobody's)."""
    if case.state != CaseState.CLAIMED or case.claimed_at is None:
        return "nobody"
    if principal is not None and case.claimed_by_id == principal.pk:
        return "me"
    return "nobody" if now - case.claimed_at >= CLAIM_LAPSES else "other"


def _closed_choices(case: Case) -> dict[str, str]:
    """Verdicts that cannot be given now, with the reason shown beside them."""
    closed: dict[str, str] = {}
    attempts = case.operation.attempts.all()
    if any(one.closed_at is None and one.sender.ended_at is None for one in attempts):
        closed["did_not"] = "Not while a sender may still wake: its silence proves nothing yet."
    if not case.operation.amount_minor:
        closed["differently"] = (
            "Nothing here has an amount; settle it as happened and say in the evidence what differs."
        )
    return closed


def _page(request: HttpRequest, case: Case, form: VerdictForm, *, problem: str = "", status: int = 200) -> HttpResponse:
    now, operation = clock.now(), case.operation
    observations = list(operation.observations.all())
    newest = queries.newest_found(observations)
    shown = comparison.compare(
        effect=operation.effect, identity=operation.identity, observed=newest.raw if newest else {}
    )
    principal = Principal.objects.filter(user=user_of(request)).first()
    closed = _closed_choices(case)
    context: dict[str, Any] = {
        "section": "cases",
        "now": now,
        "case": case,
        "operation": operation,
        "run": operation.run,
        "attempts": list(operation.attempts.all()),
        "probes": [one for one in observations if one.source == Observation.Source.PROBE],
        "observations": observations,
        "found": shown,
        "found_at": newest.at if newest else None,
        "asked": queries.newest_lookup(observations),
        "sent": comparison.sent_only(effect=operation.effect, identity=operation.identity),
        "form": form,
        "choices": [(one, closed.get(one.key, ""), _fields(form, one.key)) for one in words.CHOICES],
        "problem": problem,
        "holder": _holder(case, principal, now),
        "lapses": case.claimed_at + CLAIM_LAPSES if case.claimed_at else None,
        "may_settle": request.user.has_perm("reconciliation.settle_case"),
        "unsure": operation.state in queries.UNSURE,
        "desk": queries.desk(),
    }
    return render(request, "reconciliation/case.html", context, status=status)


def _fields(form: VerdictForm, key: str) -> list[Any]:
    return [form[name] for name in form.fields if name.endswith(f"_{key}")]


@require_GET
@needs("reconciliation.view_case")
def case_page(request: HttpRequest, number: int) -> HttpResponse:
    case = _found(number)
    return _page(request, case, VerdictForm(currency=case.operation.currency))


def _say(request: HttpRequest, result: CaseResult, *, done: str) -> None:
    if result.ok:
        messages.success(request, done)
    else:
        messages.error(request, words.refusal(code=result.code, detail=result.detail))


@require_POST
@needs("reconciliation.settle_case")
def case_claim(request: HttpRequest, number: int) -> HttpResponse:
    if someone_else(request):
        return refused(request, reason=OTHER_LOGIN)
    case = get_object_or_404(Case, pk=number)
    result = cases.claim(case_number=case.pk, principal=principals.of_user(user=user_of(request)))
    _say(request, result, done=f"{case.label} is yours for 30 minutes. Claiming again renews it.")
    return redirect("case", case.pk)


@require_POST
@needs("reconciliation.settle_case")
def case_release(request: HttpRequest, number: int) -> HttpResponse:
    if someone_else(request):
        return refused(request, reason=OTHER_LOGIN)
    case = get_object_or_404(Case, pk=number)
    result = cases.release(case_number=case.pk, principal=principals.of_user(user=user_of(request)))
    _say(request, result, done=f"{case.label} is back in the queue.")
    return redirect("cases" if result.ok else reverse("case", args=[case.pk]))


@require_POST
@needs("reconciliation.settle_case")
def case_settle(request: HttpRequest, number: int) -> HttpResponse:
    """Record the verdict. What was typed stays on the page until it has been accepted."""
    if someone_else(request):
        return refused(request, reason=OTHER_LOGIN)
    case = _found(number)
    form = VerdictForm(request.POST, currency=case.operation.currency)
    if not form.is_valid():
        return _page(request, case, form, status=422)
    principal = principals.of_user(user=user_of(request))
    if form.cleaned_data["verdict"] == "still":
        asked = cases.probe_now(operation_id=case.operation_id, principal=principal)
        _say(request, asked, done="The other side is asked now. Nothing else is sent; the case stays open.")
        return redirect("case", case.pk)
    result = cases.settle(case_number=case.pk, principal=principal, **form.settling())
    if result.ok:
        messages.success(request, f"{case.label} is settled. Nothing was sent; the run takes note of it.")
        return redirect("case", case.pk)
    problem = words.refusal(code=result.code, detail=result.detail)
    field = f"{words.FIELDS.get(result.code, '')}_{form.cleaned_data['verdict']}"
    form.add_error(field if field in form.fields else None, problem)
    return _page(request, _found(number), form, problem=problem, status=409)


@require_POST
@needs("reconciliation.settle_case")
def probe_now(request: HttpRequest, operation_id: uuid.UUID) -> HttpResponse:
    """Ask the other side at the next opportunity; this is all that trying again means for an unknown outcome."""
    if someone_else(request):
        return refused(request, reason=OTHER_LOGIN)
    operation = get_object_or_404(Operation, pk=operation_id)
    result = cases.probe_now(operation_id=operation.pk, principal=principals.of_user(user=user_of(request)))
    _say(request, result, done="The other side is asked now. Nothing else is sent.")
    back = request.POST.get("case", "")
    return redirect(reverse("case", args=[int(back)]) if back.isascii() and back.isdigit() else "cases")
