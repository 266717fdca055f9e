"""An operation's attempts as the absence and resend rules see them."""

import datetime as dt

from reconciliation.classification import Result, Sent
from reconciliation.models import Observation, Operation

_RECORDED = (Observation.Finding.FOUND, Observation.Finding.DIFFERENT, Observation.Finding.SEVERAL)


def sent_attempts(*, operation: Operation) -> list[Sent]:
    """The attempts as the absence and resend rules see them."""
    return [
        Sent(
            epoch=one.epoch,
            opened_at=one.opened_at,
            send_before=one.send_before,
            call_limit=dt.timedelta(seconds=one.call_limit_seconds),
            can_wake=(one.closed_at is None or one.result == Result.SENDER_GONE) and one.sender.ended_at is None,
        )
        for one in operation.attempts.select_related("sender").order_by("number")
    ]


def seen_recorded(*, operation: Operation) -> bool:
    """Did the other side ever say, by an answer or a lookup, that it has something under this identity? A lookup that
    finds nothing then looked in the wrong place or too early; it proves nothing."""
    return operation.observations.filter(finding__in=_RECORDED).exists()
