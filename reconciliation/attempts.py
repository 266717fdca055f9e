"""An operation's attempts as the absence and resend rules see them."""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from reconciliation.classification import WITHOUT_EFFECT, Result, Sent
from reconciliation.models import Attempt, Observation, Operation
from runs.money import MAX_MINOR

_RECORDED = (Observation.Finding.FOUND, Observation.Finding.DIFFERENT, Observation.Finding.SEVERAL)


def sent_attempts(*, operation: Operation) -> list[Sent]:
    """The attempts as the absence and resend rules see them."""
    return [
        Sent(
            epoch=one.epoch,
            opened_at=one.opened_at,
            send_before=_begun_by(one),
            call_limit=dt.timedelta(seconds=one.call_limit_seconds),
            can_wake=one.may_wake,
        )
        for one in operation.attempts.select_related("sender").order_by("number")
    ]


def _begun_by(one: Attempt) -> dt.datetime:
    """When its call had begun at the latest. A sender that was frozen after its last look at the time may call later
    than it should; once it has reported, or is known to have ended, it begins no call any more."""
    if one.result in WITHOUT_EFFECT:
        return one.send_before
    own = one.closed_at if one.result != Result.SENDER_GONE else None
    last = own or one.sender.ended_at
    return one.send_before if last is None else max(one.send_before, last)


def may_have_acted(*, operation: Operation) -> list[Attempt]:
    """The attempts that are not proved to have had no effect, with their senders; one that is out is among them."""
    attempts = operation.attempts.exclude(result__in=WITHOUT_EFFECT)
    return list(attempts.select_related("sender").order_by("number"))


def seen_recorded(*, operation: Operation) -> bool:
    """Did the other side ever say, by an answer or a lookup, that it has something under this identity? A lookup that
    finds nothing then looked in the wrong place or too early; it proves nothing."""
    return operation.observations.filter(finding__in=_RECORDED).exists()


def records_in(*, observation: Observation) -> list[dict[str, Any]]:
    """The other side's records that an answer or a lookup showed, as `findings.as_found` keeps them."""
    found = observation.raw.get("records") if isinstance(observation.raw, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A record of theirs under our identity, as it was shown last: every name it goes by, its reference first, and
    what differs from what was sent (field → (sent, recorded)). `pending`: they have only taken it on."""

    names: tuple[str, ...]
    void: bool
    mismatch: dict[str, tuple[str, str]]
    pending: bool = False

    @property
    def reference(self) -> str:
        return self.names[0]

    def minor(self, *, sent: int | None) -> int | None:
        """Its amount in the operation's currency; None where it has none there that could be booked. `sent` is what
        was asked for."""
        if sent is None or "currency" in self.mismatch:
            return None
        if "amount_minor" not in self.mismatch:
            return sent
        recorded = self.mismatch["amount_minor"][1]
        known = recorded.isascii() and recorded.isdigit() and len(recorded) < 20 and int(recorded) <= MAX_MINOR
        return int(recorded) if known else None


def shown(*, observations: Iterable[Observation]) -> list[Shown]:
    """All that was ever shown under our identity, each as it was shown last. `observations` oldest first."""
    found: dict[str, Shown] = {}
    for observation in observations:
        for one in records_in(observation=observation):
            names = (str(one.get("reference", "")), *map(str, one.get("also") or ()))
            pairs = {
                str(key): (str(pair[0]), str(pair[-1])) for key, pair in (one.get("mismatch") or {}).items() if pair
            }
            found[names[0]] = Shown(
                names=names, void=bool(one.get("void")), mismatch=pairs, pending=bool(one.get("pending"))
            )
    return [found[reference] for reference in sorted(found)]


def standing_references(*, observations: Iterable[Observation]) -> list[str]:
    """Their references for everything ever shown under our identity, without what was void when it was shown last.

    A record that is no longer shown still stands: not finding it says nothing. `observations` oldest first.
    """
    return [one.reference for one in shown(observations=observations) if not one.void]
