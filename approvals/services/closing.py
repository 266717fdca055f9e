"""Ending a request without deciding it: sent back by whoever is asked, withdrawn by whoever asks.

Both are ends of the request's machine, only from *open*, with a reason. No vote counts any more and nothing is ever
sent for it. The run's own worker draws the consequence: see `agentops.steps.handed_back`.
"""

import uuid
from typing import Any

from approvals.models import ApprovalRequest
from approvals.models.request import RequestState
from approvals.services import acting, requests
from approvals.services.acting import Acted, Channel, Hand
from runs import transitions
from runs.models import Principal


def send_back(*, request_id: uuid.UUID, principal: Principal, reason: str, channel: Channel) -> Acted:
    """It cannot be answered as it is asked. The agent is told why and may propose anew, or a person has the run.

    Refusals: those of a closed request, inactive, no_right, own_request, why_needed, comment_too_long.
    """
    return acting.carry_out(
        act="send_back",
        request_id=request_id,
        principal=principal,
        text=reason,
        channel=channel,
        checks=(acting.undecided, acting.asked, acting.with_reason),
        inner=lambda hand: _end(hand, RequestState.SENT_BACK),
    )


def withdraw(*, request_id: uuid.UUID, principal: Principal, reason: str, channel: Channel) -> Acted:
    """What was asked is not wanted as it stands; a person has the run. Only while it is undecided.

    Refusals: those of a closed request, not_yours, why_needed, comment_too_long.
    """
    return acting.carry_out(
        act="withdraw",
        request_id=request_id,
        principal=principal,
        text=reason,
        channel=channel,
        checks=(acting.undecided, acting.raised_or_operates, acting.with_reason),
        inner=lambda hand: _end(hand, RequestState.WITHDRAWN),
    )


def _end(hand: Hand, to: RequestState) -> dict[str, Any]:
    closed = requests.close_open(run=hand.run, to=to, why=hand.text, actor=hand.principal)
    assert isinstance(closed, ApprovalRequest)  # it is open: looked at under its lock
    hand.request.state, hand.request.close_reason = closed.state, closed.close_reason
    transitions.wake(run=hand.run)
    return {}
