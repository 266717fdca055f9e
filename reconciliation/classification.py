"""What an answer means for the operation, in one place. Pure; tested as a table and by random sequences."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from runs.tools.base import Contract, Repeat


class Result(StrEnum):
    """How one attempt ended; the values are the attempt rows' own."""

    DONE = "done"
    NOT_SENT = "not_sent"
    REFUSED = "refused"
    OVERLOADED = "overloaded"
    AMBIGUOUS = "ambiguous"
    SENDER_GONE = "sender_gone"


WITHOUT_EFFECT = frozenset({Result.NOT_SENT, Result.REFUSED, Result.OVERLOADED})


class Outcome(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    LATER = "later"  # back to authorised: nothing happened, it may be tried again
    UNKNOWN = "unknown"
    ACCEPTED = "accepted"  # taken on, the outcome is still to come


def after_answer(*, earlier: Sequence[Result], result: Result, as_sent: bool) -> Outcome:
    """What the operation is once an attempt has answered.

    A success after a call whose outcome is not known is looked up before it counts: a receiver that did not keep the
    key has done it twice, and only its own record tells.

    `earlier` are the other attempts' results (an open one counts as AMBIGUOUS). Without effect only if EVERY attempt
    is proved without effect: a refusal of the second call says nothing about the first.
    """
    if any(one not in WITHOUT_EFFECT for one in earlier):
        return Outcome.UNKNOWN
    if result == Result.DONE:
        return Outcome.SUCCEEDED if as_sent else Outcome.UNKNOWN
    if result not in WITHOUT_EFFECT:
        return Outcome.UNKNOWN
    return Outcome.FAILED if result == Result.REFUSED else Outcome.LATER


def unless_pending(*, outcome: Outcome, pending: bool, contract: Contract) -> Outcome:
    """What is only taken on is no success; where the contract says nothing of that, its answer cannot be read."""
    if outcome != Outcome.SUCCEEDED or not pending:
        return outcome
    return Outcome.UNKNOWN if contract.final_within is None else Outcome.ACCEPTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What the rules need to know of an attempt. `send_before`: when its call had begun at the latest. `can_wake`: its
    sender may still act (neither closed by itself nor its process recorded as ended)."""

    epoch: int
    opened_at: dt.datetime
    send_before: dt.datetime
    call_limit: dt.timedelta
    can_wake: bool


def calls_over(*, attempts: Sequence[Sent]) -> dt.datetime:
    """When the last call has ended, whatever came of it."""
    return max(one.send_before + one.call_limit for one in attempts)


def conclusive_from(*, contract: Contract, attempts: Sequence[Sent]) -> dt.datetime:
    """The earliest moment at which a lookup that finds nothing proves anything."""
    return calls_over(attempts=attempts) + contract.settling


def absence_is_conclusive(
    *, contract: Contract, attempts: Sequence[Sent], asked_at: dt.datetime, seen: bool
) -> bool:  # fmt: skip
    """Does "none found" at `asked_at` prove that nothing happened, and that nothing still can?

    `seen`: the other side once said that it has something under this identity, which no later "none" takes back.
    """
    return (
        contract.lookup_is_conclusive
        and not seen
        and asked_at > conclusive_from(contract=contract, attempts=attempts)
        and not any(one.can_wake for one in attempts)
    )


class Resend(StrEnum):
    NO = "no"
    SAME_KEY = "same key"
    NEW_EPOCH = "new epoch"


RETENTION_MARGIN = dt.timedelta(minutes=10)
SAME_KEY_TRIES = 2  # a receiver may replay a stored failure for its key for as long as it keeps it


def resend(
    *, contract: Contract, attempts: Sequence[Sent], absent_at: dt.datetime, now: dt.datetime, seen: bool
) -> Resend:
    """The resend rule, the only one; `absent_at` is when the latest lookup that found nothing was asked, `seen` as for
    `absence_is_conclusive`. Never more attempts than the contract allows.

    (a) with the same wire key, where the receiver deduplicates it, within its retention less a margin;
    (b) with the next epoch, after conclusive absence. Otherwise it is not sent.
    """
    if seen or any(one.can_wake for one in attempts) or contract.repeat == Repeat.ONCE:
        return Resend.NO
    if len(attempts) >= contract.max_attempts:
        return Resend.NO
    epoch = max(one.epoch for one in attempts)
    current = [one for one in attempts if one.epoch == epoch]
    if (
        contract.repeat == Repeat.BY_IDENTITY
        and len(current) < SAME_KEY_TRIES
        and now < min(one.opened_at for one in current) + contract.retention - RETENTION_MARGIN
    ):
        return Resend.SAME_KEY
    if absence_is_conclusive(contract=contract, attempts=attempts, asked_at=absent_at, seen=seen):
        return Resend.NEW_EPOCH
    return Resend.NO
