"""The start page: everybody lands where their work is."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import NoReverseMatch, reverse

from runs.access import needs, refused

# the first that the reader may use and that exists
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
            try:
                return redirect(reverse(name))
            except NoReverseMatch:
                continue
    return refused(
        request,
        reason="Your account is in none of the groups that work here. Ask an administrator to put you into one.",
    )
