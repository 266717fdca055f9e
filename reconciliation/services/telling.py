"""Telling whoever may settle cases of new ones and of those that stay open. A row for each person and stage, so nobody
is told twice of the same; sending is at least once. People who wish for one mail every few hours get one."""

import datetime as dt
from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef

from approvals.services.preferences import digest_at, of
from reconciliation.models import Case, CaseNotice
from reconciliation.models.case import SETTLE, UNRESOLVED
from runs import clock

AGEING_AFTER = dt.timedelta(hours=24)
TOGETHER = dt.timedelta(minutes=1)  # what comes within this time goes out in one mail
TRY_AGAIN = dt.timedelta(minutes=2)  # also for how long whoever sends may take
MOST_TRIES = 12
MOST_IN_ONE = 50
Stage = CaseNotice.Stage


def spread(*, limit: int) -> int:
    """Write a row for each person and case that is new, or has been open for a day; returns how many cases. A case is
    told of to those who may settle it at that time."""
    opened = Case.objects.filter(UNRESOLVED)
    told = CaseNotice.objects.filter(case=OuterRef("pk"))
    new = opened.filter(~Exists(told.filter(stage=Stage.NEW)))
    ageing = opened.filter(~Exists(told.filter(stage=Stage.AGEING)), opened_at__lt=clock.now() - AGEING_AFTER)
    found = [(one, Stage.NEW) for one in new.order_by("number")[:limit]]
    found += [(one, Stage.AGEING) for one in ageing.order_by("number")[:limit]]
    if not found:
        return 0
    people = User.objects.with_perm(SETTLE, include_superusers=False).filter(is_active=True)
    now = clock.now()
    due = {user: _due(user, now) for user in people.order_by("pk")}
    rows = [
        CaseNotice(case=case, recipient=user, stage=stage, due_at=at)
        for case, stage in found
        for user, at in due.items()
    ]
    CaseNotice.objects.bulk_create(rows, ignore_conflicts=True)
    return len(found) if rows else 0


def _due(user: User, now: dt.datetime) -> dt.datetime:
    wish = of(user=user)
    return digest_at(wish=wish, now=now) if wish.mail == "digest" else now + TOGETHER


def take() -> list[CaseNotice]:
    """One person's notices that are due, theirs for a while; whoever dies with them leaves them to be sent again."""
    with transaction.atomic(durable=True):
        due = CaseNotice.objects.filter(ended_at__isnull=True).select_for_update(skip_locked=True, of=("self",))
        first = due.filter(due_at__lte=clock.ClockTimestamp()).order_by("due_at", "pk").first()
        if first is None:
            return []
        mine = due.filter(recipient=first.recipient_id, due_at__lte=first.due_at + TOGETHER)
        found = list(mine.select_related("case__operation__run", "recipient").order_by("pk")[:MOST_IN_ONE])
        for one in found:
            one.tries += 1
            one.due_at = clock.now() + TRY_AGAIN * one.tries
            one.save(update_fields=["tries", "due_at"])
        return found


def end(*, notices: Iterable[CaseNotice], result: CaseNotice.Result) -> None:
    """Write down what came of them."""
    ids = [one.pk for one in notices]
    CaseNotice.objects.filter(pk__in=ids, ended_at__isnull=True).update(result=result, ended_at=clock.ClockTimestamp())
