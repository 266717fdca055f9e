"""An operation's attempts as the absence and resend rules see them."""

import datetime as dt
from collections.abc import Iterable
from typing import Any

from reconciliation.classification import Sent
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
            can_wake=one.may_wake,
        )
        for one in operation.attempts.select_related("sender").order_by("number")
    ]


def seen_recorded(*, operation: Operation) -> bool:
    """Did the other side ever say, by an answer or a lookup, that it has something under this identity? A lookup that
    finds nothing then looked in the wrong place or too early; it proves nothing."""
    return operation.observations.filter(finding__in=_RECORDED).exists()


def records_in(*, observation: Observation) -> list[dict[str, Any]]:
    """The other side's records that an answer or a lookup showed, as `settle.as_found` keeps them."""
    found = observation.raw.get("records") if isinstance(observation.raw, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def standing_references(*, observations: Iterable[Observation]) -> list[str]:
    """Their references for everything ever shown under our identity, without what was void when it was shown last.

    A record that is no longer shown still stands: not finding it says nothing. `observations` oldest first.
    """
    void: dict[str, bool] = {}
    for observation in observations:
        for one in records_in(observation=observation):
            void[str(one.get("reference", ""))] = bool(one.get("void"))
    return sorted(reference for reference, undone in void.items() if not undone)
