"""How people wish to be told, and to work."""

import datetime as dt
import zoneinfo
from functools import cache

from django.contrib.auth.models import User
from django.db import transaction

from approvals.models import Notice, Preference
from runs import clock

APART = 300  # seconds over which the digests of different people are spread


def of(*, user: User) -> Preference:
    """The person's wish; at once where they never said."""
    return Preference.objects.filter(user=user).select_related("user").first() or Preference(user=user)


def digest_at(*, wish: Preference, now: dt.datetime) -> dt.datetime:
    """When the person's next digest goes out: every `digest_hours` hours of UTC, some minutes apart between people."""
    period = wish.digest_hours * 3600
    offset = wish.user.pk % APART
    turn = int((now.timestamp() - offset) // period) + 1
    return dt.datetime.fromtimestamp(turn * period + offset, dt.UTC)


def save(*, user: User, mail: Preference.Mail, digest_hours: int) -> None:
    """Keep the wish, and let what waits follow it. One durable transaction. Raises ValueError outside 1 to 24 hours."""
    if not 1 <= digest_hours <= 24:
        raise ValueError("a digest goes out every 1 to 24 hours")
    with transaction.atomic(durable=True):
        wish, _ = Preference.objects.update_or_create(
            user=user, defaults={"mail": Preference.Mail(mail), "digest_hours": digest_hours}
        )
        now = clock.now()
        waiting = Notice.objects.filter(recipient=user, ended_at=None, digest=True)
        if wish.mail == Preference.Mail.AT_ONCE:
            waiting.update(digest=False, due_at=now)
        elif wish.mail == Preference.Mail.DIGEST:
            waiting.update(due_at=digest_at(wish=wish, now=now))


def work(*, user: User, zone: str | None = None, keys: bool | None = None) -> None:
    """Keep in which zone times are shown ("" is the browser's own) and whether single letters act; None leaves either
    as it is. One durable transaction. Raises ValueError for a zone that does not exist."""
    if zone and zone not in zones():
        raise ValueError("there is no such time zone")
    given: dict[str, str | bool] = {}
    if zone is not None:
        given["zone"] = zone
    if keys is not None:
        given["keys"] = keys
    with transaction.atomic(durable=True):
        Preference.objects.update_or_create(user=user, defaults=given)


@cache
def zones() -> tuple[str, ...]:
    """The zones that a person may choose, by name: places, and UTC."""
    known = zoneinfo.available_timezones()
    return ("UTC", *sorted(name for name in known if "/" in name and not name.startswith(("Etc/", "posix/", "right/"))))
