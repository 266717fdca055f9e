"""Spreading what the record says about requests: a notice for each person concerned, a delivery for each endpoint.

Each announcement is one durable transaction, so that who was to be told, and when, is written down as a whole or not
at all; several messengers share the work by skipping what another holds. Nothing is sent here.
"""

import datetime as dt
import hashlib
import logging
from typing import Any

from django.contrib.auth.models import User
from django.db import DatabaseError, InterfaceError, transaction

from approvals import announced, objections, seating, talk
from approvals.models import Announcement, ApprovalRequest, Delivery, Endpoint, Notice, Preference, Remark
from approvals.services.preferences import digest_at, of
from runs import clock
from runs.models import Event, Principal

log = logging.getLogger(__name__)
ASKED = "request.opened"
# each asks people: at first, when a stage's turn has come, when somebody is asked by name or as well, and once more
ASKS = frozenset(
    {ASKED}
    | {f"request.{how}" for how in ("stage_opened", "stage_reopened", "handed_on", "added", "escalated", "reminded")}
)
_ENDS = ("approved", "rejected", "expired", "withdrawn", "sent_back", "stale", "revoked")
# what the person who started the run hears; an approval that is carried out shows on the run
OUTCOMES = frozenset(f"request.{end}" for end in _ENDS)
TALK = frozenset({"request.commented", "request.question", "request.answered"})
# what other systems hear: every change of a request's state, and what is written on it
TOLD_OUTSIDE = OUTCOMES | TALK | {ASKED, "request.superseded", "request.spent"}
SPREAD_OVER = dt.timedelta(seconds=60)  # however many are asked, the last mail is due by then
BETWEEN = dt.timedelta(seconds=1)


class NotSpread(Exception):
    """Some announcements could not be worked off, and wait; all the others were."""


def spread(*, limit: int) -> int:
    """Work announcements off, oldest first; returns how many. Safe to run anywhere, any number at once.

    Raises NotSpread, after the rest, for those that failed in a way that nobody foresaw.
    """
    done, failed = 0, []
    for pk in list(Announcement.objects.filter(done_at=None).order_by("pk").values_list("pk", flat=True)[:limit]):
        try:
            done += _spread(pk)
        except (DatabaseError, InterfaceError):
            raise
        except Exception:
            log.exception("event %s could not be passed on", pk)
            failed.append(pk)
    if failed:
        raise NotSpread(f"{len(failed)} of {done + len(failed)}, the first of them event {failed[0]}")
    return done


def _spread(pk: int) -> bool:
    """One announcement; False when somebody else has it or did it."""
    with transaction.atomic(durable=True):
        waiting = Announcement.objects.select_for_update(skip_locked=True, of=("self",)).filter(pk=pk, done_at=None)
        announcement = waiting.select_related("event__actor").first()
        if announcement is None:
            return False
        event, now = announcement.event, clock.now()
        request = _request_of(event)
        if request is not None:
            Notice.objects.bulk_create(_notices(event, request, now))
            Delivery.objects.bulk_create(_deliveries(event, request, now))
        announcement.done_at = now
        announcement.save(update_fields=["done_at"])
        return True


def _request_of(event: Event) -> ApprovalRequest | None:
    related = ("run__initiator__user", "proposal", "policy_version__policy")
    return ApprovalRequest.objects.select_related(*related).filter(pk=event.data.get("request")).first()


def _notices(event: Event, request: ApprovalRequest, now: dt.datetime) -> list[Notice]:
    if event.kind in ASKS:
        asked = _asked(event, request, now)
        # in another order each time, so that it is not always the same person who is told first
        asked.sort(key=lambda user: hashlib.sha256(f"{event.pk} {user.pk}".encode()).digest())
        step = min(BETWEEN, SPREAD_OVER / max(len(asked), 1))
        return [
            _notice(event, request, of(user=user), Notice.Kind.ASKED, now=now, due_at=now + number * step)
            for number, user in enumerate(asked)
        ]
    if event.kind in TALK:
        remark = Remark.objects.select_related("request__run__initiator").filter(pk=event.data.get("remark")).first()
        people = [] if remark is None else talk.to_tell(remark=remark)
        return [_notice(event, request, of(user=user), Notice.Kind.TALK, now=now, due_at=now) for user in people]
    if event.kind in OUTCOMES:
        initiator = request.run.initiator
        # whoever did it themselves knows
        if initiator.kind == Principal.Kind.PERSON and initiator.user is not None and event.actor_id != initiator.pk:
            return [_notice(event, request, of(user=initiator.user), Notice.Kind.OUTCOME, now=now, due_at=now)]
    return []


def _asked(event: Event, request: ApprovalRequest, now: dt.datetime) -> list[User]:
    """Whom this very event asks, with those who stand in for them; all who have not answered, for a reminder."""
    asks = seating.asked_now(
        request=request, stages=seating.stages_of(request=request), votes=seating.votes_of(request=request)
    )
    only = str(event.data.get("stage_id") or "")
    also = str(event.data.get("also") or "")
    people = {
        person.user.pk: person.user
        for stage, person in asks
        if only in ("", str(stage.pk)) and (not also or also in person.groups)
    }
    for users in seating.stand_ins(user_ids=people, now=now).values():
        people |= {user.pk: user for user in users if objections.involvement(run=request.run, user=user) is None}
    return list(people.values())


def _notice(
    event: Event,
    request: ApprovalRequest,
    wish: Preference,
    kind: Notice.Kind,
    *,
    now: dt.datetime,
    due_at: dt.datetime,
) -> Notice:
    """A row for everybody concerned, for those who want no mail as well: so who was told can be shown."""
    fields: dict[str, Any] = {"due_at": due_at}
    if not wish.user.email.strip():
        fields |= {"result": Notice.Result.NO_ADDRESS, "ended_at": now}
    elif wish.mail == Preference.Mail.NONE:
        fields |= {"result": Notice.Result.NOT_WANTED, "ended_at": now}
    elif wish.mail == Preference.Mail.DIGEST:
        together = digest_at(wish=wish, now=now)
        # what cannot wait for the next digest goes out at once
        if kind == Notice.Kind.OUTCOME or request.closed_at is not None or together < request.respond_by:
            fields = {"digest": True, "due_at": together}
    return Notice(event=event, request=request, recipient=wish.user, kind=kind, created_at=now, **fields)


def _deliveries(event: Event, request: ApprovalRequest, now: dt.datetime) -> list[Delivery]:
    if event.kind not in TOLD_OUTSIDE:
        return []
    endpoints = list(Endpoint.objects.filter(ended_at=None))
    if not endpoints:
        return []
    body = announced.body(event=event, request=request)
    return [Delivery(event=event, endpoint=one, body=body, created_at=now, due_at=now) for one in endpoints]
