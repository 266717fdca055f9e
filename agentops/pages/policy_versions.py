"""The versions of a policy: who wrote and published each, when and why; any two side by side; the way back."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from agentops.pages import policy_parts as parts
from approvals import rule_diff
from approvals.models import Policy, PolicyVersion
from approvals.services import drafts
from runs import clock
from runs.access import needs, user_of


@require_GET
@needs("approvals.view_policy")
def versions(request: HttpRequest, slug: str) -> HttpResponse:
    """All versions, the newest first, and what differs between two of them (`from` and `to`; by default the last)."""
    policy = get_object_or_404(Policy.objects.select_related("active"), slug=slug)
    found = list(_versions(policy))
    if not found:
        raise Http404("no version was ever published")
    old, new = _asked(request, found)
    context = {
        "section": "policies",
        "now": clock.now(),
        "policy": policy,
        "versions": [(one, parts.authors(one.draft) if one.draft else []) for one in found],
        "old": old,
        "new": new,
        "changes": rule_diff.changes(old=old.rules, new=new.rules) if old and new else [],
        "draft": parts.open_draft(slug=slug),
        "may_edit": user_of(request).has_perm(drafts.EDIT),
    }
    return render(request, "approvals/versions.html", context)


def _versions(policy: Policy) -> list[PolicyVersion]:
    shown = PolicyVersion.objects.select_related("published_by", "draft__asked_by", "draft__based_on")
    return list(shown.filter(policy=policy).order_by("-number"))


def _asked(request: HttpRequest, found: list[PolicyVersion]) -> tuple[PolicyVersion | None, PolicyVersion | None]:
    """The two to compare: those asked for, else the newest and the one before it. Raises Http404."""
    by_number = {str(one.number): one for one in found}
    pair = (request.GET.get("from", ""), request.GET.get("to", ""))
    if not any(pair):
        return (found[1], found[0]) if len(found) > 1 else (None, None)
    if not all(one in by_number for one in pair):
        raise Http404("no such version")
    return by_number[pair[0]], by_number[pair[1]]
