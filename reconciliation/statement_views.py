"""Statements: the list, a new one from a period or a file, what a file's columns mean, the result, and its export."""

import datetime as dt
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from reconciliation import csvfile, statement_queries, statement_words
from reconciliation.columns import BadLine, Columns, parse
from reconciliation.models import Case, Difference, Statement, StatementFile
from reconciliation.models.case import SETTLE
from reconciliation.services import backed, statement_stopping, statements
from reconciliation.services.statements import StatementResult
from reconciliation.statement_forms import ColumnsForm, PeriodForm, UploadForm
from reconciliation.views import OTHER_LOGIN
from runs import clock
from runs.access import needs, refused, someone_else, user_of
from runs.rights import NO_RIGHT
from runs.services import principals
from runs.tools.registry import SYSTEMS, ledger

PAGE = 100


@require_GET
@needs("reconciliation.view_case")
def statement_list(request: HttpRequest) -> HttpResponse:
    return _list(request, PeriodForm(now=clock.now()), UploadForm())


def _list(
    request: HttpRequest, period: PeriodForm, upload: UploadForm, *, problem: str = "", status: int = 200
) -> HttpResponse:
    found = statement_queries.latest()
    context = {
        "section": "cases",
        "now": clock.now(),
        "statements": [(one, _title(one), statement_words.STAGES[one.stage]) for one in found],
        "strange": statement_queries.strange(),
        "period": period,
        "upload": upload,
        "problem": problem,
        "may": request.user.has_perm(SETTLE),
    }
    return render(request, "reconciliation/statements.html", context, status=status)


def _title(statement: Statement) -> str:
    return SYSTEMS[statement.system].title if statement.system in SYSTEMS else statement.system.capitalize()


def _refusal(request: HttpRequest, result: StatementResult) -> tuple[str, HttpResponse | None]:
    """The sentence, and where the right itself is gone, the page that says so."""
    said = statement_words.refusal(code=result.code, detail=result.detail)
    return said, refused(request, reason=said) if result.code == NO_RIGHT else None


@require_POST
@needs(SETTLE)
def statement_start(request: HttpRequest) -> HttpResponse:
    """Write down what is to be read; a worker reads it."""
    if someone_else(request):
        return refused(request, reason=OTHER_LOGIN)
    now = clock.now()
    form = PeriodForm(request.POST, now=now)
    if not form.is_valid():
        return _list(request, form, UploadForm(), status=422)
    system = form.cleaned_data["system"]
    over = now - ledger(system).settling - dt.timedelta(seconds=1)  # what is recorded later may not be listed yet
    since, until = form.period(over=over)
    result = statements.start_reading(
        system=system, since=since, until=until, principal=principals.of_user(user=user_of(request))
    )
    if result.statement is None:
        said, page = _refusal(request, result)
        return page or _list(request, form, UploadForm(), problem=said, status=409)
    messages.success(request, f"{result.statement.label} is being read. You may leave this page; it goes on.")
    return redirect("statement", result.statement.pk)


@require_POST
@needs(SETTLE)
def statement_upload(request: HttpRequest) -> HttpResponse:
    """Keep the file; the next page asks what its columns mean."""
    if someone_else(request):
        return refused(request, reason=OTHER_LOGIN)
    form, period = UploadForm(request.POST, request.FILES), PeriodForm(now=clock.now())
    if not form.is_valid():
        return _list(request, period, form, status=422)
    file = form.cleaned_data["file"]
    result = statements.take_file(
        system=form.cleaned_data["file_system"],
        name=file.name or "",
        content=file.read(),
        principal=principals.of_user(user=user_of(request)),
    )
    if result.statement is None:
        said, page = _refusal(request, result)
        if page is not None:
            return page
        form.add_error("file", said)
        return _list(request, period, form, status=422)
    return redirect("statement", result.statement.pk)


def _found(number: int) -> Statement:
    found = Statement.objects.select_related("asked_by", "stopped_by", "file").defer("file__content")
    return get_object_or_404(found, pk=number)


@require_GET
@needs("reconciliation.view_case")
def statement_page(request: HttpRequest, number: int) -> HttpResponse:
    found = _found(number)
    if found.stage == "columns":
        return _columns_page(request, found, None)
    key = request.GET.get("result", "")
    if key and key not in statement_words.BY_KEY:
        raise Http404
    counts = statement_queries.result_counts(statement=found)
    page = _page_number(request)
    rows = statement_queries.entries(statement=found, result=key, start=(page - 1) * PAGE, limit=PAGE + 1)
    looks = [statement_words.look(key=one.key, of_file=found.is_file) for one in statement_words.RESULTS]
    context: dict[str, Any] = {
        "section": "cases",
        "now": clock.now(),
        "statement": found,
        "title": _title(found),
        "stage": statement_words.STAGES[found.stage],
        "lines": sum(count for name, count in counts.items() if name != "missing"),
        "judged": sum(count for name, count in counts.items() if name not in ("", "missing")),
        "unread": counts.get("unread", 0),
        "tabs": [(one, counts.get(one.key, 0)) for one in looks if counts.get(one.key)],
        "all": sum(count for name, count in counts.items() if name != "missing"),
        "key": key,
        "look": next((one for one in looks if one.key == key), None),
        "rows": [(one, _look(one, found)) for one in rows[:PAGE]],
        "page": page,
        "more": len(rows) > PAGE,
        "backed": backed.backed(statement=found)[: backed.MOST] if found.finished_at else [],
        "dialog": request.GET.get("act", ""),
        "may_settle": request.user.has_perm(SETTLE),
        **_sums(found, looks),
    }
    fragment = request.headers.get("HX-Request") == "true"
    return render(request, f"reconciliation/{'_statement' if fragment else 'statement'}.html", context)


def _look(entry: statement_queries.Entry, statement: Statement) -> statement_words.Look | None:
    return statement_words.look(key=entry.result, of_file=statement.is_file) if entry.result else None


def _sums(found: Statement, looks: list[statement_words.Look]) -> dict[str, Any]:
    """Totals by currency with each row's words, shown once every line is judged."""
    words = {one.key: one for one in looks}
    cases = Case.objects.filter(pk__in=found.differences.values("case")).order_by("number")
    told: dict[str, Any] = {
        "cases": cases,
        "strange": found.differences.filter(case__isnull=True).select_related("line", "noted_by"),
        "columns": [],
        "same": [],
    }
    if found.is_file:
        told["columns"] = statement_queries.columns_in_words(statement=found, header=found.file.header)
        told["same"] = statement_queries.same_file(file=found.file)
    if found.finished_at is None:
        return {**told, "totals": []}
    whole = statement_queries.whole(statement=found)
    totals = statement_queries.totals(statement=found)
    return {
        **told,
        "totals": [
            {
                "currency": one.currency,
                "rows": [(row, words[row.result], _signed(row.difference, one.currency)) for row in one.rows],
                "whole": one.whole,
                "difference": _signed(one.whole.difference, one.currency),
                "adds_up": one.whole.theirs == whole.get(one.currency, (0, 0)),
            }
            for one in totals
        ],
    }


def _signed(minor: int, currency: str) -> dict[str, Any]:
    return {"sign": "−" if minor < 0 else "+" if minor else "", "minor": abs(minor), "currency": currency}


def _page_number(request: HttpRequest) -> int:
    text = request.GET.get("page", "1")
    return min(max(int(text), 1), 10_000) if text.isascii() and text.isdigit() and len(text) < 7 else 1


def _columns_page(
    request: HttpRequest,
    found: Statement,
    form: ColumnsForm | None,
    *,
    bad: list[tuple[int, str]] | None = None,
    status: int = 200,
) -> HttpResponse:
    file = StatementFile.objects.select_related("statement").get(pk=found.pk)
    remembered = statement_queries.remembered(file=file)
    form = form or ColumnsForm(header=file.header, remembered=remembered, zone=_zone())
    context = {
        "section": "cases",
        "now": clock.now(),
        "statement": found,
        "title": _title(found),
        "file": file,
        "delimiter": csvfile.DELIMITERS.get(file.delimiter, file.delimiter),
        "preview": statement_queries.preview(file=file),
        "remembered": remembered is not None,
        "same": statement_queries.same_file(file=file),
        "form": form,
        "bad": bad or [],
        "may": request.user.has_perm(SETTLE),
    }
    return render(request, "reconciliation/statement_columns.html", context, status=status)


def _zone() -> str:
    return timezone.get_current_timezone_name()


@require_POST
@needs(SETTLE)
def statement_columns(request: HttpRequest, number: int) -> HttpResponse:
    """Take what the columns mean, unless none of the first lines can be read that way."""
    if someone_else(request):
        return refused(request, reason=OTHER_LOGIN)
    found = _found(number)
    if not found.is_file:
        raise Http404
    file = StatementFile.objects.select_related("statement").get(pk=found.pk)
    form = ColumnsForm(request.POST, header=file.header, remembered=None, zone=_zone())
    if not form.is_valid():
        return _columns_page(request, found, form, status=422)
    bad = _unread(statement_queries.preview(file=file), form.columns())
    if bad is not None:
        form.add_error(None, "None of the first lines can be read this way, so nothing was taken in yet.")
        return _columns_page(request, found, form, bad=bad, status=422)
    result = statements.set_columns(
        number=found.pk, columns=form.columns(), principal=principals.of_user(user=user_of(request))
    )
    if not result.ok:
        said, page = _refusal(request, result)
        if page is not None:
            return page
        messages.error(request, said)
        return redirect("statement", found.pk)
    messages.success(request, f"{found.label} is being taken in. You may leave this page; it goes on.")
    return redirect("statement", found.pk)


def _unread(rows: list[csvfile.Row], columns: Columns) -> list[tuple[int, str]] | None:
    """Why each of the first lines cannot be read; None when one can, or there is none."""
    bad: list[tuple[int, str]] = []
    for row in rows:
        try:
            if row.problem:
                raise BadLine(row.problem)
            parse(values=row.values, columns=columns)
        except BadLine as problem:
            bad.append((row.line, str(problem)))
        else:
            return None
    return bad or None


@require_POST
@needs(SETTLE)
def statement_stop(request: HttpRequest, number: int) -> HttpResponse:
    """Stop it where it is, for a reason."""
    if someone_else(request):
        return refused(request, reason=OTHER_LOGIN)
    result = statement_stopping.stop(
        number=_found(number).pk,
        reason=request.POST.get("reason", "")[:2000],
        principal=principals.of_user(user=user_of(request)),
    )
    return _back(request, number, result, "{} is stopped. What was read is kept, and says nothing of what is missing.")


@require_POST
@needs(SETTLE)
def statement_go_on(request: HttpRequest, number: int) -> HttpResponse:
    """Go on where it was stopped."""
    if someone_else(request):
        return refused(request, reason=OTHER_LOGIN)
    result = statement_stopping.go_on(number=_found(number).pk, principal=principals.of_user(user=user_of(request)))
    return _back(request, number, result, "{} goes on where it was stopped.")


def _back(request: HttpRequest, number: int, result: StatementResult, done: str) -> HttpResponse:
    """To the statement's page, with what came of it."""
    if not result.ok:
        said, page = _refusal(request, result)
        if page is not None:
            return page
        messages.error(request, said)
    else:
        messages.success(request, done.format(f"ST-{number}"))
    return redirect("statement", number)


@require_GET
@needs("reconciliation.view_case")
def statement_export(request: HttpRequest, number: int) -> HttpResponseBase:
    """The whole result as a file that a spreadsheet may open."""
    found = _found(number)
    if found.finished_at is None:
        messages.error(request, f"{found.label} is not compared yet, so there is nothing to export.")
        return redirect("statement", found.pk)
    pieces = csvfile.written(header=statement_queries.EXPORTED, lines=statement_queries.exported(statement=found))
    answer = StreamingHttpResponse(pieces, content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{found.label}.csv"'
    return answer


@require_http_methods(["POST"])
@needs(SETTLE)
def difference_note(request: HttpRequest, difference_id: int) -> HttpResponse:
    """Note what became of an effect under our name that nothing here has."""
    if someone_else(request):
        return refused(request, reason=OTHER_LOGIN)
    found = get_object_or_404(Difference, pk=difference_id, case__isnull=True)
    result = statements.note(
        difference_id=found.pk,
        evidence=request.POST.get("evidence", "")[:4000],
        principal=principals.of_user(user=user_of(request)),
    )
    if not result.ok:
        said, page = _refusal(request, result)
        if page is not None:
            return page
        messages.error(request, said)
    else:
        messages.success(request, "Noted. Nothing was sent.")
    return redirect("statements")
