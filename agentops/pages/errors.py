"""A form whose token is out of date: somebody signed in or out since the page was opened."""

from django.http import HttpRequest, HttpResponse

from runs.access import refused


def stale_form(request: HttpRequest, reason: str = "") -> HttpResponse:
    return refused(
        request,
        reason="This page was opened before you last signed in or out, so what you sent was not done. "
        "Go back, load the page again and repeat it.",
    )
