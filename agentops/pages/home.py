"""The start page, where everybody lands where their work is, and what their frame says of it."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET

from runs.access import needs, refused

# the first that the reader may use
STARTS = (
    ("approvals.vote", "inbox"),
    ("reconciliation.settle_case", "cases"),
    ("runs.operate_run", "runs"),
    ("runs.view_run", "overview"),
)


@needs("")
def home(request: HttpRequest) -> HttpResponse:
    for permission, name in STARTS:
        if request.user.has_perm(permission):
            return redirect(name)
    return refused(
        request,
        reason="Your account is in none of the groups that work here. Ask an administrator to put you into one.",
    )


@require_GET
@needs("")
def waiting(request: HttpRequest) -> HttpResponse:
    """How much waits where, for the frame of a page that stays open."""
    return render(request, "parts/waiting.html")
