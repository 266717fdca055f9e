"""Reads about what is written on a request, and about who is looking at it."""

import datetime as dt
import uuid
from collections.abc import Iterable, Sequence

from django.contrib.auth.models import Permission, User
from django.db import connection
from django.db.models import Q

from approvals import objections, seating, voters
from approvals.models import ApprovalRequest, Claim, Remark
from runs.models import Principal

SHOWN = 500  # remarks on one request, at most


_REPLACED = """
WITH RECURSIVE older (id, newest) AS (
  SELECT supersedes_id, id FROM approvals_approvalrequest WHERE id = ANY(%s) AND supersedes_id IS NOT NULL
  UNION ALL
  SELECT r.supersedes_id, older.newest FROM approvals_approvalrequest r JOIN older USING (id)
   WHERE r.supersedes_id IS NOT NULL
) SELECT id, newest FROM older
"""


def versions(*, requests: Iterable[ApprovalRequest]) -> dict[uuid.UUID, uuid.UUID]:
    """The ids of these requests and of all that they replaced, each with that of the request it is now: one query, and
    none where nothing was replaced."""
    rows = list(requests)
    found = {one.pk: one.pk for one in rows}
    if replacing := [one.pk for one in rows if one.supersedes_id is not None]:
        with connection.cursor() as cursor:
            cursor.execute(_REPLACED, [replacing])
            found |= dict(cursor.fetchall())
    return found


def remarks(*, requests: Iterable[ApprovalRequest]) -> list[Remark]:
    """What was written on these requests, the oldest first and at most the newest `SHOWN`, with the answer of each
    question at hand."""
    found = Remark.objects.filter(request__in=[one.pk for one in requests])
    newest = found.select_related("author", "answers", "answer").order_by("-at", "-id")[:SHOWN]
    return list(reversed(newest))


def open_questions(*, request: ApprovalRequest) -> list[Remark]:
    """Questions that wait for an answer, those on a request that it replaced as well; one that is closed waits for
    none."""
    return questioned(requests=[request]).get(request.pk, [])


def holder(*, request: ApprovalRequest, now: dt.datetime) -> Claim | None:
    """Who says now that they are looking at the request; nobody once it has lapsed, the request is closed, or they
    could not answer it any more."""
    if request.closed_at is not None:
        return None
    held = Claim.objects.select_related("principal__user").filter(request=request, until__gt=now).first()
    user = None if held is None else held.principal.user
    return None if user is None or objections.entitled_now(request=request, user=user) else held


def questioned(*, requests: Iterable[ApprovalRequest]) -> dict[uuid.UUID, list[Remark]]:
    """`open_questions` of several requests in one query, by request; those without one are left out."""
    newest = versions(requests=[one for one in requests if one.closed_at is None])
    if not newest:
        return {}
    asked = Remark.objects.filter(request__in=list(newest), kind=Remark.Kind.QUESTION, answer__isnull=True)
    found: dict[uuid.UUID, list[Remark]] = {}
    for remark in asked.select_related("author").order_by("at", "id"):
        found.setdefault(newest[remark.request_id], []).append(remark)
    return found


def holders(*, requests: Sequence[ApprovalRequest], now: dt.datetime) -> dict[uuid.UUID, Claim]:
    """`holder` of several requests in a fixed number of queries, by request; their stages are read along with them."""
    waiting = {one.pk: one for one in requests if one.closed_at is None}
    held = list(Claim.objects.select_related("principal").filter(request__in=waiting, until__gt=now))
    claimers = {one.principal.user_id for one in held if one.principal.user_id is not None}
    if not claimers:
        return {}
    away = seating.covered_by(user_ids=claimers)
    people = voters.known(user_ids=claimers | {pk for covered in away.values() for pk in covered})
    return {
        claim.request_id: claim
        for claim in held
        if _could_answer(waiting[claim.request_id], claim.principal.user_id, people, away)
    }


def _could_answer(
    request: ApprovalRequest, user_id: int | None, people: dict[int, voters.Known], away: dict[int, list[int]]
) -> bool:
    """One of its stages asks the person, or somebody for whom they stand in."""
    if user_id is None or user_id not in people:
        return False
    able = [people[one] for one in (user_id, *away.get(user_id, [])) if one in people]
    stages = request.stages.all()
    return any(
        seating.fits(stage=stage, person=person, proposal=request.proposal) for stage in stages for person in able
    )


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
            Q(pk__in=Remark.objects.filter(request__in=list(versions(requests=[request]))).values("author"))
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
