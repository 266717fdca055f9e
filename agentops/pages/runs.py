"""The list of runs: search, filter, counters that keep up."""

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from agentops.pages.operating import ACTS
from reconciliation.models import Case, Operation
from runs import clock, queries
from runs.access import needs
from runs.models import Proposal
from runs.models.run import TERMINAL

DEEPEST = 200  # pages; further back one searches


def also_matching(*, text: str) -> Q | None:
    """What only this layer can search: operations by identity or their reference, cases by number."""
    words = text.strip()[: queries.TEXT_LIMIT].replace("\x00", "")
    if not words:
        return None
    operations = Operation.objects.filter(Q(identity__icontains=words) | Q(external_reference__icontains=words))
    found = Q(pk__in=operations.values("run_id"))
    found |= Q(pk__in=Proposal.objects.filter(identity__icontains=words).values("run_id"))
    number = words.upper().removeprefix("RC-")
    if number.isascii() and number.isdigit() and len(number) < 16:
        found |= Q(pk__in=Case.objects.filter(pk=int(number)).values("operation__run_id"))
    return found


def page_number(request: HttpRequest) -> int:
    text = request.GET.get("page", "1")
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 1
    return min(max(number, 1), DEEPEST)


@needs("runs.view_run")
def run_list(request: HttpRequest) -> HttpResponse:
    text = request.GET.get("q", "")[: queries.TEXT_LIMIT]
    group = queries.group(request.GET.get("state", ""))
    matching = queries.search(text=text, also=also_matching(text=text))
    counts = queries.counts(runs=matching)
    page = queries.listed(runs=matching, states=group.states, number=page_number(request))
    context = {
        "section": "runs",
        "q": text,
        "group": group,
        "tabs": [(one, counts[one.key]) for one in queries.GROUPS],
        "page": page,
        "now": clock.now(),
        "may": request.user.has_perm("runs.operate_run"),
        "live": sum(counts[one.key] for one in queries.GROUPS if one.key and not set(one.states) & set(TERMINAL))
        if not group.key
        else counts[group.key] * (not set(group.states) & set(TERMINAL)),
        "acts": tuple(ACTS.values()),
        "ever": bool(page.runs) or queries.search(text="").exists(),
    }
    is_fragment = request.headers.get("HX-Request") == "true"
    return render(request, "runs/_list.html" if is_fragment else "runs/list.html", context)
