"""Times are shown in the reader's zone, which static/js/shell.js stores in a cookie; UTC until then."""

import zoneinfo
from collections.abc import Callable
from urllib.parse import unquote

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

COOKIE = "tz"


class ViewerZone:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with timezone.override(zone_named(request.COOKIES.get(COOKIE, ""))):
            return self.get_response(request)


def zone_named(name: str) -> zoneinfo.ZoneInfo:
    """The zone of that name; anything else, however malformed, is UTC."""
    try:
        return zoneinfo.ZoneInfo(unquote(name) or "UTC")
    except (KeyError, ValueError, OSError):  # not a zone, not a name, the name of a folder of zones
        return zoneinfo.ZoneInfo("UTC")
