"""Somebody else holds what was needed, longer than anybody should wait: said plainly, instead of a server error.

Only for a lock that was not given in time and a statement that took too long. Both end the transaction, so nothing of
the request was recorded.
"""

from collections.abc import Callable

from django.db import OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

LOCK_NOT_AVAILABLE, QUERY_CANCELED = "55P03", "57014"
RETRY_AFTER = 5  # seconds; as long as a lock is waited for
DETAIL = "busy: somebody else is working on this just now, and nothing was recorded; try again in a moment"


def is_busy(*, problem: BaseException) -> bool:
    """Whether the database gave up waiting, by its own code."""
    return isinstance(problem, OperationalError) and getattr(problem.__cause__, "sqlstate", "") in (
        LOCK_NOT_AVAILABLE,
        QUERY_CANCELED,
    )


def answer(*, request: HttpRequest) -> HttpResponse:
    """503, as a problem where the API was called, else as a page."""
    response: HttpResponse
    if request.path.startswith("/api/"):
        response = JsonResponse({"code": "busy", "detail": DETAIL, "faults": []}, status=503)
    else:
        response = render(request, "busy.html", status=503)
    response["Retry-After"] = str(RETRY_AFTER)
    return response


class Busy:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        return answer(request=request) if is_busy(problem=exception) else None
