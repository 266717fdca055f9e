"""Taking what is due to be sent, and writing down what came of it. The sending itself is done in between, by a
messenger, outside every transaction.

A claim is a lease and a number that grows (`tries`): a sender that was thought dead and speaks up late changes nothing
any more. A row is claimed again when its lease ends without a word, so what was sent by a process that died before it
could say so is sent once more, under the same Message-ID or event id.
"""

import datetime as dt
from collections.abc import Sequence

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from approvals import freezes, objections
from approvals.models import Delivery, Endpoint, Notice
from runs import clock, retry

LEASE = dt.timedelta(seconds=120)  # longer than a mail or a call may take
GIVE_UP_AFTER = dt.timedelta(days=3)
TOGETHER = 100  # at most so many requests in one digest
BASE_SECONDS, CAP_SECONDS = 5.0, 300.0
ENDPOINT_CAP_SECONDS = 3600.0


def _due(now: dt.datetime) -> Q:
    return Q(ended_at=None, due_at__lte=now) & (Q(lease_until=None) | Q(lease_until__lte=now))


def _problem(text: str) -> str:
    return " ".join(text.split())[:300]


# ---- mail


def take_notices() -> list[Notice]:
    """The next notice that is due, or a whole digest; none when nothing is. One durable transaction."""
    related = ("event__actor", "request__run__initiator", "request__proposal", "request__policy_version", "recipient")
    with transaction.atomic(durable=True):
        now = clock.now()
        free = Notice.objects.select_for_update(skip_locked=True, of=("self",)).select_related(*related)
        first = free.filter(_due(now)).order_by("due_at", "id").first()
        if first is None:
            return []
        taken = [first]
        if first.digest:
            others = free.filter(_due(now), recipient=first.recipient_id, digest=True).exclude(pk=first.pk)
            taken += others.order_by("created_at", "id")[: TOGETHER - 1]
        for notice in taken:
            notice.tries += 1
            notice.lease_until = now + LEASE
            notice.save(update_fields=["tries", "lease_until"])
    return taken


def no_longer(*, notice: Notice) -> str:
    """Why the person need not be asked any more, as a stable code; empty while they can answer."""
    request, user = notice.request, notice.recipient
    if notice.kind == Notice.Kind.TALK:
        return "" if user.is_active and user.has_perm("approvals.view_approvalrequest") else "no_right"
    if notice.kind != Notice.Kind.ASKED:
        return ""
    found = objections.first(request=request, user=user, now=clock.now())
    return "" if found is None else found.code


def answer_by(*, notice: Notice) -> dt.datetime:
    """When the time to answer ends, with what a freeze has added so far."""
    return freezes.answer_by(request=notice.request, run=notice.request.run, now=clock.now())


def end_notices(*, notices: Sequence[Notice], result: Notice.Result, problem: str = "") -> None:
    """Nothing more is sent for these. A claim that is not the latest any more changes nothing."""
    for notice in notices:
        Notice.objects.filter(pk=notice.pk, tries=notice.tries, ended_at=None).update(
            result=result, ended_at=clock.now(), problem=_problem(problem), lease_until=None
        )


def retry_notices(*, notices: Sequence[Notice], problem: str) -> None:
    """Try these again later; those that are told of too long ago are given up, which the overview shows."""
    now = clock.now()
    for notice in notices:
        if now - notice.created_at > GIVE_UP_AFTER:
            end_notices(notices=[notice], result=Notice.Result.GIVEN_UP, problem=problem)
            continue
        wait = retry.backoff(attempt=notice.tries, base=BASE_SECONDS, cap=CAP_SECONDS)
        Notice.objects.filter(pk=notice.pk, tries=notice.tries, ended_at=None).update(
            due_at=now + wait, problem=_problem(problem), lease_until=None
        )


# ---- deliveries


def take_delivery() -> Delivery | None:
    """The next delivery whose endpoint may be called now, which is once at a time. One durable transaction."""
    with transaction.atomic(durable=True):
        now = clock.now()
        free = Delivery.objects.select_for_update(skip_locked=True, of=("self", "endpoint"), no_key=True)
        free = free.select_related("endpoint", "event")
        open_now = Q(endpoint__not_before=None) | Q(endpoint__not_before__lte=now)
        being_called = Delivery.objects.filter(endpoint=OuterRef("endpoint"), ended_at=None, lease_until__gt=now)
        delivery = free.filter(_due(now), open_now, ~Exists(being_called)).order_by("due_at", "id").first()
        if delivery is None:
            return None
        delivery.tries += 1
        delivery.lease_until = now + LEASE
        delivery.save(update_fields=["tries", "lease_until"])
    return delivery


def _locked(delivery: Delivery) -> Endpoint:
    """The endpoint, which is always locked before its deliveries; new ones may be written meanwhile."""
    return Endpoint.objects.select_for_update(no_key=True).get(pk=delivery.endpoint_id)


def end_delivery(*, delivery: Delivery, result: Delivery.Result, status: int | None = None, problem: str = "") -> None:
    """It was delivered, or is not tried any more. A claim that is not the latest any more changes nothing."""
    with transaction.atomic(durable=True):
        endpoint = _locked(delivery)
        mine = Delivery.objects.filter(pk=delivery.pk, tries=delivery.tries, ended_at=None)
        ended = mine.update(
            result=result, ended_at=clock.now(), status=status, problem=_problem(problem), lease_until=None
        )
        if ended and result == Delivery.Result.DELIVERED and endpoint.failures:
            endpoint.failures, endpoint.not_before = 0, None
            endpoint.save(update_fields=["failures", "not_before"])


def retry_delivery(*, delivery: Delivery, status: int | None, problem: str, retry_after: str | None) -> None:
    """Try it again later; meanwhile the endpoint is left alone, so that a dead one costs one call and not one for each
    delivery that waits. A Retry-After, an hour at most, is kept to."""
    now = clock.now()
    if now - delivery.created_at > GIVE_UP_AFTER:
        end_delivery(delivery=delivery, result=Delivery.Result.GIVEN_UP, status=status, problem=problem)
        return
    with transaction.atomic(durable=True):
        mine = Delivery.objects.filter(pk=delivery.pk, tries=delivery.tries, ended_at=None)
        endpoint = _locked(delivery)
        wait = retry.backoff(attempt=endpoint.failures + 1, base=BASE_SECONDS, cap=ENDPOINT_CAP_SECONDS)
        asked = retry.retry_after(header=retry_after, now=now)
        until = now + max(wait, asked or wait)
        if mine.update(due_at=until, status=status, problem=_problem(problem), lease_until=None):
            endpoint.failures += 1
            endpoint.not_before = until
            endpoint.save(update_fields=["failures", "not_before"])
