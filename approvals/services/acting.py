"""What people do to a request beside answering it: one durable transaction on the locked run and request, in which who
acts is looked at under the locks, and a refusal is recorded.

Locks go Run → Request → users, as for a vote; so of an act and a vote that meet, one is first and the other is told.
"""

import datetime as dt
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from django.contrib.auth.models import User
from django.db import transaction

from approvals import locks, objections, seating
from approvals.models import ApprovalRequest, Refusal
from approvals.objections import Objection
from approvals.services import requests
from approvals.words import is_blank
from runs import clock, holding, record, rights, transitions
from runs.models import Principal, Run
from runs.texts import typed

Channel = Literal["page", "api", "command"]
TEXT_LENGTH = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Acted:
    """What became of it: `code` is ok, or a refusal's (its sentence is in `approvals.words`), filled from `detail`."""

    code: str
    request: ApprovalRequest
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.code == "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hand:
    """Whoever acts, with the locked rows it is about and what they wrote."""

    request: ApprovalRequest
    run: Run
    principal: Principal
    text: str
    now: dt.datetime

    @property
    def user(self) -> User:
        """The person; of a machine somebody who is nobody, whose word would count for nothing."""
        return self.principal.user or User()


Check = Callable[[Hand], Objection | None]
Inner = Callable[[Hand], dict[str, Any] | None]


def carry_out(
    *,
    act: str,
    request_id: uuid.UUID,
    principal: Principal,
    text: str,
    channel: Channel,
    checks: Sequence[Check],
    inner: Inner,
) -> Acted:
    """Do it, or refuse and record that; refusals are returned, never raised. `inner` returns what the answer tells.

    Raises ApprovalRequest.DoesNotExist.
    """
    with transaction.atomic(durable=True):
        request = requests.lock_with_run(request_id=request_id)
        held = [] if principal.user_id is None else [principal.user_id]
        groups = [name for stage in seating.stages_of(request=request) for name in stage.every_group]
        locks.share_users(user_ids=held, groups=groups)
        hand = Hand(request=request, run=request.run, principal=principal, text=typed(text=text), now=clock.now())
        objection = next((found for check in checks if (found := check(hand)) is not None), None)
        if objection is not None:
            return _refuse(hand, objection, act, channel)
        return Acted(code="ok", request=request, detail=inner(hand) or {})


def _refuse(hand: Hand, objection: Objection, act: str, channel: str) -> Acted:
    Refusal.objects.create(
        request=hand.request,
        principal=hand.principal,
        code=objection.code,
        detail={**objection.detail, "act": act},
        channel=channel,
        at=hand.now,
    )
    record.append(
        run=hand.run,
        kind="request.refused",
        actor=hand.principal,
        request=str(hand.request.pk),
        choice=act,
        code=objection.code,
        channel=channel,
    )
    if objection.code == "out_of_date":
        transitions.want_facts(run=hand.run)
    return Acted(code=objection.code, request=hand.request, detail=objection.detail)


# ---- checks that several acts share


def undecided(hand: Hand) -> Objection | None:
    return objections.closed(request=hand.request, run=hand.run, user=hand.user, now=hand.now)


def asked(hand: Hand) -> Objection | None:
    """Only those who are asked, and have no part in the run."""
    if hand.principal.user_id is None:
        return Objection(code="no_right", detail={"group": objections.whom(stages=list(hand.request.stages.all()))})
    found = objections.entitled_now(request=hand.request, user=hand.user)
    return found or objections.involvement(run=hand.run, user=hand.user)


def raised_or_operates(hand: Hand) -> Objection | None:
    """Whoever started the run, or may operate runs."""
    active = hand.principal.user is None or hand.principal.user.is_active
    if active and hand.principal.pk == hand.run.initiator_id:
        return None
    if rights.entitled(principal=hand.principal, permission=holding.OPERATE) and hand.principal.user_id is not None:
        return None
    return Objection(code="not_yours")


def with_reason(hand: Hand) -> Objection | None:
    if is_blank(text=hand.text):
        return Objection(code="why_needed")
    if len(hand.text) > TEXT_LENGTH:
        return Objection(code="comment_too_long", detail={"limit": TEXT_LENGTH})
    return None
