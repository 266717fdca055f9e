"""The desk: the queue of what no machine could settle, and the page of one case. No button here sends anything."""

import datetime as dt
import uuid
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db.models import Prefetch
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from reconciliation import comparison, csvfile, queries, risk, words
from reconciliation.attempts import standing_references
from reconciliation.corrections import correctable
from reconciliation.forms import GoneForm, VerdictForm
from reconciliation.models import Attempt, Case, Observation, Operation, WorkerProcess
from reconciliation.models.case import SETTLE, CaseState
from reconciliation.services import cases, probe
from reconciliation.services.cases import CLAIM_LAPSES, CaseResult
from reconciliation.verdicts import beyond_one, stake
from runs import clock
from runs.access import needs, refused, someone_else, user_of
from runs.models import Principal
from runs.money import Money
from runs.rights import NO_RIGHT, entitled
from runs.services import principals
from runs.tools.base import Contract
from runs.tools.registry import UnknownTool, tool
from runs.words import system as system_words

OTHER_LOGIN = "This page was opened under another login, so nothing was recorded."


@require_GET
@needs("reconciliation.view_case")
def queue(request: HttpRequest) -> HttpResponse:
    now = clock.now()
    sort = "amount" if request.GET.get("sort") == "amount" else "age"
    kind = request.GET.get("kind", "")
    if kind and kind not in Case.Kind.values:
        raise Http404
    context = {
        "section": "cases",
        "now": now,
        "sort": sort,
        "kind": kind,
        "desk": queries.desk(sort=sort, kind=kind),
        "settled": queries.settled_counts(since=now - dt.timedelta(days=1)),
        "may_settle": request.user.has_perm(SETTLE),
    }
    fragment = request.headers.get("HX-Request") == "true"
    return render(request, "reconciliation/_queue.html" if fragment else "reconciliation/queue.html", context)


@require_GET
@needs("reconciliation.view_case")
def risk_export(request: HttpRequest) -> StreamingHttpResponse:
    """What is at risk, as a file that a spreadsheet may open."""
    pieces = csvfile.written(header=risk.EXPORTED, lines=risk.exported(risk.at_risk()))
    answer = StreamingHttpResponse(pieces, content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="at-risk-{clock.now():%Y-%m-%d}.csv"'
    return answer


def _found(number: int) -> Case:
    found = Case.objects.select_related(
        "operation__run",
        "operation__proposal",
        "operation__decision__request",
        "claimed_by",
        "resolved_by",
        "confirmed_by",
    ).prefetch_related(
        Prefetch("operation__attempts", Attempt.objects.select_related("sender").order_by("number")),
        Prefetch("operation__observations", Observation.objects.select_related("actor").order_by("at")),
    )
    return get_object_or_404(found, pk=number)


def _holder(case: Case, principal: Principal | None, now: dt.datetime) -> str:
    """Who has the case: me, other, or nobody (a claim that lapsed, or whose owner left, is nobody's)."""
    if case.state != CaseState.CLAIMED or case.claimed_at is None:
        return "nobody"
    if principal is not None and case.claimed_by_id == principal.pk:
        return "me"
    owner = case.claimed_by
    lapsed = now - case.claimed_at >= CLAIM_LAPSES
    gone = owner is None or not entitled(principal=owner, permission=SETTLE)
    return "nobody" if lapsed or gone else "other"


def _closed_choices(case: Case, senders: list[WorkerProcess], theirs: list[str]) -> dict[str, str]:
    """Verdicts that cannot be given now, with the reason shown beside them."""
    closed: dict[str, str] = {}
    if senders:
        closed["did_not"] = "Not while a sender may still wake: its silence proves nothing yet."
    elif theirs:
        closed["did_not"] = (
            f"Not while {system_words(case.operation.system)} shows {', '.join(theirs)} under our identity."
        )
    return closed


def _page(
    request: HttpRequest,
    case: Case,
    form: VerdictForm,
    *,
    gone: GoneForm | None = None,
    problem: str = "",
    confirming: str = "",
    status: int = 200,
) -> HttpResponse:
    """`problem` is why the verdict in the form was refused, `confirming` why the proposed one was."""
    now, operation, to_undo = clock.now(), case.operation, case.kind == Case.Kind.NOT_UNDONE
    observations = list(operation.observations.all())
    newest = queries.newest_found(observations)
    shown = comparison.compare(
        effect=operation.effect, identity=operation.identity, observed=newest.raw if newest else {}
    )
    principal = Principal.objects.filter(user=user_of(request)).first()
    senders = list({one.sender_id: one.sender for one in operation.attempts.all() if one.may_wake}.values())
    theirs = standing_references(observations=observations)
    closed = _closed_choices(case, senders, theirs)
    problem = problem or _no_choice(form, closed, case)
    fields = {one.key: [form[name] for name in form.fields if name.endswith(f"_{one.key}")] for one in words.CHOICES}
    context: dict[str, Any] = {
        "section": "cases",
        "now": now,
        "case": case,
        "operation": operation,
        "run": operation.run,
        "attempts": list(operation.attempts.all()),
        "unlike": queries.answered_otherwise(attempts=operation.attempts.all(), observations=observations),
        "probes": queries.in_a_row([one for one in observations if one.source == Observation.Source.PROBE]),
        "observations": observations,
        "found": shown,
        "found_at": newest.at if newest else None,
        "asked": queries.newest_lookup(observations),
        "sent": comparison.sent_only(effect=operation.effect, identity=operation.identity),
        "form": form,
        "choices": [(one, closed.get(one.key, ""), fields[one.key]) for one in _choices(case)],
        "senders": [(one, _gone_form(gone, str(one.pk))) for one in senders],
        "stands": _stands(operation, theirs) if operation.is_settled and not to_undo else "",
        "to_undo": to_undo,
        "problem": problem,
        "confirming": confirming,
        "proposed": _proposed(case, principal),
        "takes_two": _takes_two(operation),
        "holder": _holder(case, principal, now),
        "lapses": case.claimed_at + CLAIM_LAPSES if case.claimed_at else None,
        "may_settle": request.user.has_perm(SETTLE),
        "other": operation.other_reference,
        "correction": queries.corrections().filter(case=case).first(),
        "correctable": correctable(operation),
        "reversals": operation.reversals.select_related("run", "proposed_by").order_by("created_at"),
        "unsure": operation.is_unconfirmed,
        "to_judge": operation.is_unconfirmed or operation.is_settled,
        "desk": queries.desk(),
    }
    return render(request, "reconciliation/case.html", context, status=status)


def _proposed(case: Case, principal: Principal | None) -> dict[str, Any]:
    """The verdict that waits for another admin, in words, and whether the reader proposed it; empty when none does."""
    proposed = queries.proposal(case=case)
    if proposed is None:
        return {}
    operation = case.operation
    choice = next(one for one in (*_choices(case), *words.CHOICES) if one.key == proposed.verdict)
    recorded = Money(proposed.actual_minor, operation.currency) if proposed.actual_minor and operation.currency else ""
    return {
        "it": proposed,
        "own": principal is not None and proposed.proposed_by_id == principal.pk,
        "does": choice.does,
        "recorded": recorded if proposed.verdict == Case.Verdict.DIFFERENTLY else "",
    }


def _takes_two(operation: Operation) -> str:
    """Why a verdict about this operation takes two admins, as a sentence; empty where one settles it alone."""
    limits, currency = settings.SETTLE_ALONE_UP_TO, operation.currency
    if not beyond_one(operation=operation, minor=stake(operation=operation), alone_up_to=limits):
        return ""
    limit = f"up to {Money(limits[currency], currency)}" if currency in limits else f"nothing in {currency}"
    return f"One admin settles {limit} alone."


def _no_choice(form: VerdictForm, closed: dict[str, str], case: Case) -> str:
    """Why the verdict in the form cannot be given at all; its own fields, with what is wrong in them, are not shown."""
    chosen = form["verdict"].value() if form.is_bound else ""
    if chosen in words.KEYS and chosen not in [one.key for one in _choices(case)]:
        operation = case.operation
        code = "not_unknown" if operation.is_settled else "not_settled"
        return words.refusal(code=code, detail={"state": operation.get_state_display().lower()})
    return closed.get(str(chosen), "")


def _choices(case: Case) -> tuple[words.Choice, ...]:
    about, to_undo = case.operation, case.kind == Case.Kind.NOT_UNDONE
    return words.choices(settled=about.is_settled, correctable=correctable(about), to_undo=to_undo)


def _gone_form(typed: GoneForm | None, process: str) -> GoneForm:
    return typed if typed is not None and typed.process == process else GoneForm(process=process)


def _stands(operation: Operation, theirs: list[str]) -> str:
    """What our record and the other side say of a settled operation."""
    known = (operation.external_reference, operation.other_reference)
    amount = Money(operation.amount_minor, operation.currency) if operation.amount_minor else ""
    return words.stands(
        state=operation.state,
        system=operation.system,
        reference=operation.external_reference or "",
        failure=operation.failure,
        theirs=[one for one in theirs if one not in known],
        amount=str(amount),
    )


@require_GET
@needs("reconciliation.view_case")
def case_page(request: HttpRequest, number: int) -> HttpResponse:
    case = _found(number)
    return _page(request, case, VerdictForm(currency=case.operation.currency))


def _answer(request: HttpRequest, result: CaseResult, *, done: str, to: HttpResponse) -> HttpResponse:
    """Say what came of it on the page `to`; a lost right has a page of its own."""
    if result.code == NO_RIGHT:
        return refused(request, reason=words.refusal(code=result.code, detail=result.detail))
    if result.ok:
        messages.success(request, done)
    else:
        messages.error(request, words.refusal(code=result.code, detail=result.detail))
    return to


@require_POST
@needs(SETTLE)
def case_claim(request: HttpRequest, number: int) -> HttpResponse:
    if someone_else(request):
        return refused(request, reason=OTHER_LOGIN)
    case = get_object_or_404(Case, pk=number)
    result = cases.claim(case_number=case.pk, principal=principals.of_user(user=user_of(request)))
    done = f"{case.label} is yours for 30 minutes. Claiming again renews it."
    return _answer(request, result, done=done, to=redirect("case", case.pk))


@require_POST
@needs(SETTLE)
def case_release(request: HttpRequest, number: int) -> HttpResponse:
    if someone_else(request):
        return refused(request, reason=OTHER_LOGIN)
    case = get_object_or_404(Case, pk=number)
    result = cases.release(case_number=case.pk, principal=principals.of_user(user=user_of(request)))
    back = redirect("cases" if result.ok else reverse("case", args=[case.pk]))
    return _answer(request, result, done=f"{case.label} is back in the queue.", to=back)


@require_POST
@needs(SETTLE)
def case_settle(request: HttpRequest, number: int) -> HttpResponse:
    """Ask the other side, then record the verdict. What was typed stays on the page until it has been accepted."""
    if someone_else(request):
        return refused(request, reason=OTHER_LOGIN)
    case = _found(number)
    form = VerdictForm(request.POST, currency=case.operation.currency)
    if not form.is_valid():
        return _page(request, case, form, status=422)
    principal = principals.of_user(user=user_of(request))
    if form.cleaned_data["verdict"] == "still":
        asked = cases.probe_now(operation_id=case.operation_id, principal=principal)
        done = "The other side is asked now. Nothing else is sent; the case stays open."
        return _answer(request, asked, done=done, to=redirect("case", case.pk))
    contract = _ask_first(case, principal)
    result = cases.settle(case_number=case.pk, principal=principal, contract=contract, **form.settling())
    if result.ok:
        messages.success(request, f"{case.label} is settled. Nothing was sent; the run takes note of it.")
        return redirect("case", case.pk)
    if result.code == "proposed":
        done = "Your verdict is proposed, and nothing has come of it yet: another admin has to confirm it."
        messages.info(request, f"{done} {case.label} is back in the queue.")
        return redirect("case", case.pk)
    problem = words.refusal(code=result.code, detail=result.detail)
    if result.code == NO_RIGHT:
        return refused(request, reason=problem)
    field = f"{words.FIELDS.get(result.code, '')}_{form.cleaned_data['verdict']}"
    form.add_error(field if field in form.fields else None, problem)
    return _page(request, _found(number), form, problem=problem, status=409)


@require_POST
@needs(SETTLE)
def case_confirm(request: HttpRequest, number: int) -> HttpResponse:
    """Ask the other side, then let the proposed verdict that the page showed take effect."""
    if someone_else(request):
        return refused(request, reason=OTHER_LOGIN)
    case, principal = _found(number), principals.of_user(user=user_of(request))
    contract = _ask_first(case, principal)
    shown = request.POST.get("digest", "")
    result = cases.confirm(case_number=case.pk, principal=principal, contract=contract, digest=shown)
    if result.ok:
        messages.success(request, f"{case.label} is settled. Nothing was sent; the run takes note of it.")
        return redirect("case", case.pk)
    problem = words.refusal(code=result.code, detail=result.detail)
    if result.code == NO_RIGHT:
        return refused(request, reason=problem)
    verdict = VerdictForm(currency=case.operation.currency)
    if result.code == "resolved":
        return _page(request, _found(number), verdict, problem=problem, status=409)
    return _page(request, _found(number), verdict, confirming=problem, status=409)


def _ask_first(case: Case, principal: Principal) -> Contract | None:
    """Have the other side's latest word before a person's is taken, outside any transaction and within the tool's time
    limits. Whoever does not have the case is refused anyway, so nobody is asked for them. The tool's contract, or None
    when there is no such tool any more."""
    operation = case.operation
    try:
        connector = tool(operation.tool)
    except UnknownTool:
        return None
    if _holder(case, principal, clock.now()) == "me":
        probe.ask(operation=operation, connector=connector, actor=principal)
    return connector.contract


@require_POST
@needs(SETTLE)
def case_gone(request: HttpRequest, number: int, process_id: uuid.UUID) -> HttpResponse:
    """Record that a process which may still send is gone for good."""
    if someone_else(request):
        return refused(request, reason=OTHER_LOGIN)
    case = _found(number)
    form, verdict = GoneForm(request.POST, process=str(process_id)), VerdictForm(currency=case.operation.currency)
    if not form.is_valid():
        return _page(request, case, verdict, gone=form, status=422)
    result = cases.sender_gone(
        case_number=case.pk,
        principal=principals.of_user(user=user_of(request)),
        process_id=process_id,
        evidence=form.cleaned_data["evidence"],
    )
    if result.ok:
        messages.success(request, "Recorded: that process is gone. The other side is asked again now.")
        return redirect("case", case.pk)
    problem = words.refusal(code=result.code, detail=result.detail)
    if result.code == NO_RIGHT:
        return refused(request, reason=problem)
    return _page(request, _found(number), verdict, gone=form, problem=problem, status=409)


@require_POST
@needs(SETTLE)
def probe_now(request: HttpRequest, operation_id: uuid.UUID) -> HttpResponse:
    """Ask the other side at the next opportunity; this is all that trying again means for an unknown outcome."""
    if someone_else(request):
        return refused(request, reason=OTHER_LOGIN)
    operation = get_object_or_404(Operation, pk=operation_id)
    result = cases.probe_now(operation_id=operation.pk, principal=principals.of_user(user=user_of(request)))
    to = _back(request, operation) or redirect("cases")
    return _answer(request, result, done="The other side is asked now. Nothing else is sent.", to=to)


@require_POST
@needs(SETTLE)
def operation_doubt(request: HttpRequest, operation_id: uuid.UUID) -> HttpResponse:
    """Somebody doubts our record of a settled operation: a case about it is opened and is theirs."""
    if someone_else(request):
        return refused(request, reason=OTHER_LOGIN)
    operation = get_object_or_404(Operation, pk=operation_id)
    principal, reason = principals.of_user(user=user_of(request)), request.POST.get("reason", "")[:4000]
    result = cases.doubt(operation_id=operation.pk, principal=principal, reason=reason)
    to = redirect("case", result.detail["case"]) if "case" in result.detail else _back(request, operation)
    to = to or redirect("run", operation.run_id)
    done = "This case is about our own record. Until it is settled its run tells nobody anything more."
    return _answer(request, result, done=done, to=to)


def _back(request: HttpRequest, operation: Operation) -> HttpResponse | None:
    """To the case it was asked from, if that is one of the operation's."""
    number = request.POST.get("case", "")
    known = number.isascii() and number.isdigit() and len(number) < 16
    return redirect("case", int(number)) if known and operation.cases.filter(pk=int(number)).exists() else None
