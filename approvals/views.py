"""Policies, to read: what is in force, every version, who published it, and what changed."""

from typing import Any

from django.db.models import Count, OuterRef, Subquery
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from approvals import policy_text, rule_diff
from approvals.models import Policy, PolicyDraft, PolicyTool, PolicyVersion
from approvals.models.draft import OPEN
from runs import clock
from runs.access import needs
from runs.tools.registry import TOOLS


@needs("approvals.view_policy")
def policies(request: HttpRequest) -> HttpResponse:
    rows = (
        Policy.objects.select_related("active__published_by")
        .prefetch_related("tools")
        .annotate(version_count=Count("versions", distinct=True), draft_state=_open_draft())
        .order_by("name")
    )
    governed = PolicyTool.objects.filter(policy__active__isnull=False).values_list("tool", flat=True)
    context = {
        "section": "policies",
        "now": clock.now(),
        "policies": rows,
        "ungoverned": sorted(set(TOOLS).difference(governed)),
    }
    return render(request, "approvals/policies.html", context)


def _open_draft() -> Subquery:
    return Subquery(PolicyDraft.objects.filter(policy=OuterRef("pk"), state__in=OPEN).values("state")[:1])


def _rule(rule: dict[str, Any]) -> dict[str, Any]:
    return {
        **rule,
        "asks": policy_text.asks(ask=rule["ask"]) if rule.get("ask") else "",
        "sums": policy_text.window(window=rule["window"]) if rule.get("window") else "",
    }


@needs("approvals.view_policy")
def policy(request: HttpRequest, slug: str) -> HttpResponse:
    found = get_object_or_404(Policy.objects.select_related("active"), slug=slug)
    versions = list(PolicyVersion.objects.filter(policy=found).select_related("published_by").order_by("-number"))
    if not versions:
        raise Http404("no version was ever published")
    wanted = request.GET.get("version", "")
    if wanted and not wanted.isdecimal():
        raise Http404("a version is a number")
    number = int(wanted) if wanted else (found.active.number if found.active else versions[0].number)
    shown = next((version for version in versions if version.number == number), None)
    if shown is None:
        raise Http404("no such version")
    before = next((version for version in versions if version.number < number), None)
    context = {
        "section": "policies",
        "now": clock.now(),
        "policy": found,
        "tools": [tool.tool for tool in found.tools.order_by("tool")],
        "versions": versions,
        "shown": shown,
        "before": before,
        "draft": PolicyDraft.objects.filter(policy=found, state__in=OPEN).first(),
        "rules": [_rule(rule) for rule in shown.rules.get("rules", [])],
        "totals": [
            {**total, "limit_texts": policy_text.limits(total=total)} for total in shown.rules.get("totals", [])
        ],
        "standing": policy_text.standing(terms=shown.rules["standing"]) if shown.rules.get("standing") else {},
        "changes": rule_diff.changes(old=before.rules, new=shown.rules) if before else [],
        "document": policy_text.pretty(document=shown.rules),
    }
    return render(request, "approvals/policy.html", context)
