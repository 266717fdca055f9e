"""What the frame around every page needs: where things wait, and how the reader likes to see them."""

from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from agentops.demo.world import PASSWORD, PEOPLE
from approvals import freezes
from approvals.queries import drafts_waiting, waiting_count
from reconciliation.models import Case
from reconciliation.models.case import CaseState
from runs.models import Run
from runs.models.run import RunState

THEMES = ("light", "dark", "system")


def shell(request: HttpRequest) -> dict[str, Any]:
    theme = request.COOKIES.get("theme", "")
    user = getattr(request, "user", None)
    signed_in = user is not None and user.is_authenticated
    return {
        "demo": settings.DEMO,
        "demo_world": bool(settings.DEMO and settings.SANDBOX_URL),
        "demo_people": PEOPLE if settings.DEMO else (),
        "demo_password": PASSWORD if settings.DEMO else "",
        "theme": theme if theme in THEMES else "system",
        # lazy: fragments and the login page never ask
        "freezes": SimpleLazyObject(lambda: list(freezes.current()) if signed_in else []),
        "counts": SimpleLazyObject(lambda: _counts(user) if user is not None and signed_in else {}),
    }


def _counts(user: User) -> dict[str, int]:
    """Only what the reader may see."""
    counts: dict[str, int] = {}
    if user.has_perm("approvals.view_approvalrequest"):
        counts["mine"] = waiting_count(user=user)
    if user.has_perm("runs.view_run"):
        counts["needs_person"] = Run.objects.filter(state=RunState.NEEDS_PERSON).count()
    if user.has_perm("reconciliation.view_case"):
        counts["cases"] = Case.objects.exclude(state=CaseState.RESOLVED).count()
    if user.has_perm("approvals.publish_policy"):
        counts["drafts"] = drafts_waiting(user=user)
    return counts
