"""What the frame around every page needs: where things wait, and how the reader likes to see them."""

from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from agentops.demo.world import PASSWORD, PEOPLE
from approvals import freezes
from approvals.queries import drafts_waiting, waiting_count
from approvals.services import preferences
from reconciliation.models import Case
from reconciliation.models.case import UNRESOLVED
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
        "keys_on": SimpleLazyObject(lambda: preferences.of(user=user).keys if user is not None and signed_in else True),
        "counts": SimpleLazyObject(lambda: counts(user=user) if user is not None and signed_in else {}),
    }


def counts(*, user: User, mine: int | None = None) -> dict[str, int]:
    """How much waits where, only of what the reader may see; `mine` is what waits for them, if that was counted."""
    found: dict[str, int] = {}
    if user.has_perm("approvals.view_approvalrequest"):
        found["mine"] = waiting_count(user=user) if mine is None else mine
    if user.has_perm("runs.view_run"):
        found["needs_person"] = Run.objects.filter(state=RunState.NEEDS_PERSON).count()
    if user.has_perm("reconciliation.view_case"):
        found["cases"] = Case.objects.filter(UNRESOLVED).count()
    if user.has_perm("approvals.publish_policy"):
        found["drafts"] = drafts_waiting(user=user)
    return found
