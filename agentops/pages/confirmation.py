"""What the page can take beyond a click: the amount typed again, and how fresh the login of this session is."""

import datetime as dt
from typing import Any
from urllib.parse import urlencode

from allauth.account.adapter import get_adapter
from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from agentops.pages import walk
from approvals import confirming
from approvals.confirming import Given
from approvals.models import ApprovalRequest
from runs import clock
from runs.money import Money

_METHODS_KEY = "account_authentication_methods"  # where allauth keeps how this session was authenticated
PROOFS = frozenset({"password", "mfa"})
CODES = frozenset({"retype_needed", "retype_differs", "reauthentication_needed"})


def authenticated_by(request: HttpRequest) -> str:
    """How and when this session was authenticated, such as `password 2026-11-17T13:02:11+00:00, mfa …`."""
    parts = []
    for record in _records(request):
        at = _at(record)
        when = "" if at is None else at.isoformat(timespec="seconds")
        kinds = [str(record.get("method", "")), str(record.get("type", "")), when]
        parts.append(" ".join(kind for kind in kinds if kind))
    return ", ".join(parts) or "session"


def given(request: HttpRequest) -> Given:
    """What came with the posted form; the proof is the session's own, never the form's."""
    return Given(typed=request.POST.get("retyped", ""), proved=_proved(request))


def context(request: HttpRequest, *, ask: ApprovalRequest, money: Money | None) -> dict[str, Any]:
    """What the dialog has to ask for: `takes` in words ("" for a click), `retype`, and `prove`, where a fresh login is
    confirmed ("" when it is fresh already, until `fresh_until`)."""
    if ask.confirm == confirming.CLICK:
        return {"takes": "", "retype": False, "prove": "", "fresh_until": None}
    within = dt.timedelta(seconds=settings.ACCOUNT_REAUTHENTICATION_TIMEOUT)
    proved, needed = _proved(request), ask.confirm != "retype"
    fresh = confirming.is_fresh(proved=proved, now=clock.now(), within=within)
    back = urlencode({"next": reverse("decision", args=[ask.pk]) + walk.address(walk.listing(request))})
    return {
        "takes": confirming.words(level=ask.confirm, money=money),
        "retype": money is not None,
        "prove": f"{_way(request)}?{back}" if needed and not fresh else "",
        "fresh_until": proved + within if needed and fresh and proved is not None else None,
    }


def _way(request: HttpRequest) -> str:
    """The first way this person can prove their login again: password, code or passkey; the page offers the others."""
    methods = get_adapter(request).get_reauthentication_methods(request.user)
    return str(methods[0]["url"]) if methods else reverse("account_login")


def _records(request: HttpRequest) -> list[dict[str, Any]]:
    records = request.session.get(_METHODS_KEY, [])
    return [record for record in records if isinstance(record, dict)] if isinstance(records, list) else []


def _at(record: dict[str, Any]) -> dt.datetime | None:
    at = record.get("at")
    return dt.datetime.fromtimestamp(at, dt.UTC) if isinstance(at, int | float) else None


def _proved(request: HttpRequest) -> dt.datetime | None:
    times = [at for record in _records(request) if record.get("method") in PROOFS and (at := _at(record)) is not None]
    return max(times, default=None)
