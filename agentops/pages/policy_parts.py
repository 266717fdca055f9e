"""What the pages about a policy's draft and versions share."""

import uuid
from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect

from approvals import draft_words, policy_checks
from approvals.models import Policy, PolicyDraft, PolicyTool
from approvals.models.draft import OPEN
from approvals.rules import PolicyDocument, Problem
from runs.access import refused
from runs.rights import NO_RIGHT

NOTHING_OPEN = "Nobody is writing a change of this policy now. Nothing was changed."


def open_draft(*, slug: str) -> PolicyDraft | None:
    """The policy's open draft with what pages show of it. Raises Http404 for no such policy."""
    policy = get_object_or_404(Policy, slug=slug)
    found = PolicyDraft.objects.select_related("policy__active", "based_on", "asked_by")
    return found.filter(policy=policy, state__in=OPEN).first()


def say(
    request: HttpRequest, *, code: str, to: str, slug: str, detail: Mapping[str, Any] | None = None, act: str = "write"
) -> HttpResponse:
    """The refusal's sentence on the page `to`; a lost right has a page of its own."""
    sentence = NOTHING_OPEN if code == "nothing_open" else draft_words.sentence(code=code, detail=detail, act=act)
    if code == NO_RIGHT:
        return refused(request, reason=sentence)
    messages.error(request, sentence)
    return redirect(to, slug)


def authors(draft: PolicyDraft) -> list[str]:
    """Everybody who saved a revision of it, by name, in the order of their first."""
    labels = draft.revisions.order_by("number").values_list("author__label", flat=True)
    return list(dict.fromkeys(labels))


def group_problems(document: Any) -> list[Problem]:
    return policy_checks.group_problems(document=PolicyDocument.model_validate(document))


def governed_elsewhere(policy: Policy) -> list[str]:
    return list(PolicyTool.objects.exclude(policy=policy).values_list("tool", flat=True))


def posted_draft(request: HttpRequest, *, slug: str) -> uuid.UUID:
    """The draft that the posted page was about, of this very policy. Raises Http404."""
    try:
        found = uuid.UUID(request.POST.get("draft", ""))
    except ValueError:
        raise Http404("no such draft") from None
    return get_object_or_404(PolicyDraft, pk=found, policy__slug=slug).pk
