"""Several cases settled by the lines of one statement, and what became of each."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_POST

from reconciliation import words
from reconciliation.models import Case, Statement
from reconciliation.models.case import SETTLE
from reconciliation.services import backed
from reconciliation.services.backed import Settled
from runs.access import needs, refused, someone_else, user_of
from runs.rights import NO_RIGHT
from runs.services import principals

_SAID = {
    "ok": "Settled by its line",
    "proposed": "Proposed: another admin has to confirm it",
    "proposed_since": "Not settled: {by} has proposed it since this page was made. Look at it anew, then confirm it.",
    "proposed_otherwise": "Not settled: {by} has proposed another verdict. Its own page shows it.",
    "left": "Left: asking about the others took too long. Choose it again.",
    "not_backed": "Not settled: no line of its own in this statement backs it, or it is settled by now.",
}


@require_POST
@needs(SETTLE)
def statement_settle(request: HttpRequest, number: int) -> HttpResponse:
    """Record "it happened" for each case that is ticked, by the line that backs it."""
    if someone_else(request):
        return refused(request, reason="This page was opened under another login, so nothing was recorded.")
    statement = get_object_or_404(Statement.objects.defer("columns"), pk=number)
    chosen = [int(one) for one in request.POST.getlist("case") if one.isascii() and one.isdigit() and len(one) < 16]
    digests = {number: request.POST.get(f"digest_{number}", "") for number in chosen}
    me = principals.of_user(user=user_of(request))
    done = backed.settle(statement=statement, numbers=chosen, principal=me, digests=digests)
    if done and all(one.code == NO_RIGHT for one in done):
        return refused(request, reason=words.refusal(code=NO_RIGHT, detail={}))
    known: QuerySet[Case] = Case.objects.filter(pk__in=chosen).select_related("operation__run")
    by_number = {one.pk: one for one in known}
    context: dict[str, Any] = {
        "section": "cases",
        "statement": statement,
        "results": [(by_number[one.number], one.code, _words(one)) for one in done if one.number in by_number],
        "settled": sum(_is_settled(one) for one in done),
    }
    return render(request, "reconciliation/settled_many.html", context)


def _is_settled(one: Settled) -> bool:
    return one.code == "ok" or (one.code == "resolved" and one.detail.get("verdict") == "by_probe")


def _words(one: Settled) -> str:
    if one.code == "resolved" and one.detail.get("verdict") == "by_probe":
        return "Settled by asking: the other side confirmed it just now"
    if one.confirmed:
        return "Confirmed, and settled by its line under both names"
    if said := _SAID.get(one.code):
        return said.format_map({"by": "Somebody", **one.detail})
    return words.refusal(code=one.code, detail=one.detail)
