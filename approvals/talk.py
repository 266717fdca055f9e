"""Reads about what is written on a request, and about who is looking at it."""

import datetime as dt
from collections.abc import Iterable

from django.contrib.auth.models import Permission, User
from django.db.models import Q

from approvals import objections
from approvals.models import ApprovalRequest, Claim, Remark
from runs.models import Principal

SHOWN = 500  # remarks on one request, at most


def remarks(*, requests: Iterable[ApprovalRequest]) -> list[Remark]:
    """What was written on these requests, the oldest first and at most the newest `SHOWN`, with the answer of each
    question at hand."""
    found = Remark.objects.filter(request__in=[one.pk for one in requests])
    newest = found.select_related("author", "answers", "answer").order_by("-at", "-id")[:SHOWN]
    return list(reversed(newest))


def open_questions(*, request: ApprovalRequest) -> list[Remark]:
    """Questions that wait for an answer; a request that is closed waits for none."""
    if request.closed_at is not None:
        return []
    asked = Remark.objects.filter(request=request, kind=Remark.Kind.QUESTION, answer__isnull=True)
    return list(asked.select_related("author").order_by("at", "id"))


def holder(*, request: ApprovalRequest, now: dt.datetime) -> Claim | None:
    """Who says now that they are looking at the request; nobody once it has lapsed, the request is closed, or they
    could not answer it any more."""
    if request.closed_at is not None:
        return None
    held = Claim.objects.select_related("principal__user").filter(request=request, until__gt=now).first()
    user = None if held is None else held.principal.user
    return None if user is None or objections.entitled_now(request=request, user=user) else held


def to_tell(*, remark: Remark) -> list[User]:
    """Whom a remark concerns: of a question whoever is to answer it, else those who have written, voted or look at it,
    and the person who raised it. Its own author knows."""
    request = remark.request
    if remark.kind == Remark.Kind.QUESTION:
        people = _support() if remark.asked_of == Remark.Of.SUPPORT else Q(principal=request.run.initiator_id)
        if remark.asked_of == Remark.Of.REQUESTER and request.run.initiator.user_id is None:
            people = _support()  # nobody reads the mail of a machine
    else:
        part = Principal.objects.filter(
            Q(pk__in=Remark.objects.filter(request=request).values("author"))
            | Q(pk__in=request.votes.values("principal"))
            | Q(pk__in=Claim.objects.filter(request=request).values("principal"))
            | Q(pk=request.run.initiator_id)
        )
        people = Q(principal__in=part)
    found = User.objects.filter(people, is_active=True).exclude(principal=remark.author_id).distinct()
    return [user for user in found.order_by("pk") if user.has_perm("approvals.view_approvalrequest")]


def _support() -> Q:
    """Those who may operate runs."""
    operate = Permission.objects.filter(codename="operate_run", content_type__app_label="runs")
    return Q(groups__permissions__in=operate) | Q(user_permissions__in=operate)
