"""Who may open a page, and under whose name a form is posted. Views of every app use these."""

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render, resolve_url
from django.utils.crypto import constant_time_compare

View = Callable[..., HttpResponseBase]


def _same_site_path(*, url: str, request: HttpRequest) -> str:
    """The path and query of an address on this very site; empty for any other."""
    parts = urlsplit(url)
    if not parts.path.startswith("/") or (parts.netloc and parts.netloc != request.get_host()):
        return ""
    return parts.path + (f"?{parts.query}" if parts.query else "")


def _to_login(request: HttpRequest) -> HttpResponse:
    """To the login page and back to the page somebody was on; a posted action is not done by that."""
    fallback = request.get_full_path() if request.method in ("GET", "HEAD") else "/"
    if request.headers.get("HX-Request") != "true":
        before = fallback if fallback != "/" else request.headers.get("Referer", "")
        return redirect_to_login(_same_site_path(url=before, request=request) or "/")
    if request.method == "GET":  # a page that refreshes itself: say so, and leave what was typed where it is
        return HttpResponse(status=401, content_type="text/plain", content="signed out")
    back = _same_site_path(url=request.headers.get("HX-Current-URL", ""), request=request) or "/"
    response = HttpResponse(status=204)
    response["HX-Redirect"] = f"{resolve_url(settings.LOGIN_URL)}?{urlencode({'next': back})}"
    return response


def deactivated(request: HttpRequest) -> User | None:
    """The account this session belongs to, if it was deactivated meanwhile: Django then shows nobody as signed in."""
    if request.user.is_authenticated:
        return None
    stored = request.session.get(SESSION_KEY)
    if not isinstance(stored, str) or not stored.isdecimal():
        return None
    user = User.objects.filter(pk=int(stored), is_active=False).first()
    proof = request.session.get(HASH_SESSION_KEY, "")
    return user if user is not None and constant_time_compare(proof, user.get_session_auth_hash()) else None


def refused(request: HttpRequest, *, reason: str = "", status: int = 403) -> HttpResponse:
    """The page that says why not; without a reason, that the account lacks the right and who can give it."""
    return render(request, "403.html", {"reason": reason}, status=status)


def needs(permission: str) -> Callable[[View], View]:
    """Login, then `permission` (`app.codename`), read afresh on every request; else the page that says why not."""

    def decorate(view: View) -> View:
        @wraps(view)
        def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not request.user.is_authenticated:
                if deactivated(request) is not None:
                    return refused(request, reason="Your account is no longer active.")
                return _to_login(request)
            if permission and not request.user.has_perm(permission):
                return refused(request)
            return view(request, *args, **kwargs)

        return checked

    return decorate


def user_of(request: HttpRequest) -> User:
    """The signed-in person, in a view behind `needs`."""
    assert isinstance(request.user, User)
    return request.user


def someone_else(request: HttpRequest) -> bool:
    """True when a posted form was rendered for another login than the one it now comes with."""
    return request.POST.get("as_user", "") != str(request.user.pk)
