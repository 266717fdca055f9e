"""Times are shown in the zone that the reader chose, else in the browser's, which static/js/shell.js stores in a
cookie; UTC until then."""

import zoneinfo
from collections.abc import Callable
from urllib.parse import unquote

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from approvals.models import Preference

COOKIE = "tz"


class ViewerZone:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with timezone.override(zone_named(self._chosen(request) or request.COOKIES.get(COOKIE, ""))):
            return self.get_response(request)

    def _chosen(self, request: HttpRequest) -> str:
        """Machines have none, health needs no database, and nobody's is looked up before they have a session."""
        if request.path.startswith(("/api/", "/health/")) or settings.SESSION_COOKIE_NAME not in request.COOKIES:
            return ""
        return chosen(user_id=request.user.pk)


def chosen(*, user_id: int | None) -> str:
    """The zone that this person chose, or ""."""
    found = Preference.objects.filter(user_id=user_id).values_list("zone", flat=True).first() if user_id else None
    return found or ""


def zone_named(name: str) -> zoneinfo.ZoneInfo:
    """The zone of that name; anything else, however malformed, is UTC."""
    try:
        return zoneinfo.ZoneInfo(unquote(name) or "UTC")
    except (KeyError, ValueError, OSError):  # not a zone, not a name, the name of a folder of zones
        return zoneinfo.ZoneInfo("UTC")
