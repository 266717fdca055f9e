"""Saying "I am looking at this", so that two people do not do the same work. A claim lapses by itself, and keeps nobody
from answering: it only keeps another claim out while it lasts."""

import datetime as dt
import uuid
from typing import Any

from approvals import freezes, talk
from approvals.models import Claim
from approvals.objections import Objection
from approvals.services import acting
from approvals.services.acting import Acted, Channel, Hand
from runs import record
from runs.models import Principal

LAPSES = dt.timedelta(minutes=30)


def claim(*, request_id: uuid.UUID, principal: Principal, channel: Channel) -> Acted:
    """Take it for `LAPSES`, or until the time to answer is over; claiming again renews it.

    Refusals: those of a closed request, inactive, no_right, own_request, claimed_by_other.
    """
    return acting.carry_out(
        act="claim",
        request_id=request_id,
        principal=principal,
        text="",
        channel=channel,
        checks=(acting.undecided, acting.asked, _free),
        inner=_claim,
    )


def release(*, request_id: uuid.UUID, principal: Principal, channel: Channel) -> Acted:
    """Give it back before it lapses. Refusals: those of a closed request, not_claimed."""
    return acting.carry_out(
        act="release",
        request_id=request_id,
        principal=principal,
        text="",
        channel=channel,
        checks=(acting.undecided, _mine),
        inner=_release,
    )


def _free(hand: Hand) -> Objection | None:
    held = talk.holder(request=hand.request, now=hand.now)
    if held is None or held.principal_id == hand.principal.pk:
        return None
    return Objection(code="claimed_by_other", detail={"by": str(held.principal), "at": held.until.isoformat()})


def _mine(hand: Hand) -> Objection | None:
    held = talk.holder(request=hand.request, now=hand.now)
    return None if held is not None and held.principal_id == hand.principal.pk else Objection(code="not_claimed")


def _claim(hand: Hand) -> dict[str, Any]:
    until = min(hand.now + LAPSES, freezes.answer_by(request=hand.request, run=hand.run, now=hand.now))
    fields = {"principal": hand.principal, "at": hand.now, "until": until}
    Claim.objects.update_or_create(request=hand.request, defaults=fields)
    _record(hand, "request.claimed", until=until.isoformat())
    return {"at": until.isoformat()}


def _release(hand: Hand) -> dict[str, Any]:
    Claim.objects.filter(request=hand.request).update(until=hand.now)
    _record(hand, "request.released")
    return {}


def _record(hand: Hand, kind: str, **more: str) -> None:
    record.append(run=hand.run, kind=kind, actor=hand.principal, request=str(hand.request.pk), **more)
