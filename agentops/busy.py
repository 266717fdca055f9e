"""The database could not do it just now: said plainly, with 503, instead of a server error.

*Busy* is a lock that was not given in time, a statement that took too long, or a transaction that lost against another
one: each ends the transaction, so nothing of the request was recorded. *Gone* is a database that cannot be reached, or
a connection that broke: it may have broken after the commit, so nobody can say, and the answer says that.

A transaction that lost against another one (deadlock, serialisation) is not the caller's affair: the request is made
again here, a few times, before anybody is told. One that waited too long is not: it would wait again.
"""

import random
import sys
import time
from collections.abc import Callable

from django.db import OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views import defaults

from runs.one_by_one import is_busy, is_gone, is_lost

MOST_TRIES = 3  # of one request whose transaction lost
TRIES = "_tries_of_a_lost_transaction"  # where a request counts them
RETRY_AFTER = 5  # seconds; as long as a lock is waited for
DETAIL = "busy: somebody else is working on this just now, and nothing was recorded; try again in a moment"
GONE_DETAIL = (
    "the database cannot be reached just now, and whether this was recorded is not known; send the same again with the "
    "same key, which does nothing twice"
)


def answer_to(*, request: HttpRequest, problem: BaseException | None) -> HttpResponse | None:
    """503, as a problem where the API was called, else as a page; None when it is trouble of another kind."""
    if problem is None or not (is_busy(problem=problem) or is_gone(problem=problem)):
        return None
    busy = is_busy(problem=problem)
    response: HttpResponse
    if request.path.startswith("/api/"):
        code, detail = ("busy", DETAIL) if busy else ("database_unreachable", GONE_DETAIL)
        response = JsonResponse({"code": code, "detail": detail, "faults": []}, status=503)
    elif busy:
        response = render(request, "busy.html", status=503)
    else:  # the frame of the other pages asks the database
        response = HttpResponse(render_to_string("unreachable.html"), status=503)
    response["Retry-After"] = str(RETRY_AFTER)
    return response


def again(*, request: HttpRequest, problem: BaseException) -> HttpResponse | None:
    """The view's answer when it is called once more because its transaction lost; None where that is not the trouble,
    or where it has lost too often. Raises what the view raises."""
    tries = getattr(request, TRIES, 1)
    match = request.resolver_match
    if not is_lost(problem=problem) or tries >= MOST_TRIES or match is None:
        return None
    setattr(request, TRIES, tries + 1)
    time.sleep(random.uniform(0.01, 0.05) * tries)
    for name in request.FILES:
        for file in request.FILES.getlist(name):
            file.seek(0)
    try:
        answer: HttpResponse = match.func(request, *match.args, **match.kwargs)
    except OperationalError as next_problem:
        return again(request=request, problem=next_problem) or answer_to(request=request, problem=next_problem)
    return answer


class Busy:
    """For what a view raises."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        return again(request=request, problem=exception) or answer_to(request=request, problem=exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """For what is raised round the views, by sessions and logins; anything else is the page of a server error."""
    return answer_to(request=request, problem=sys.exc_info()[1]) or defaults.server_error(request)
