"""The desk in words: what each verdict means and does, why something was refused. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """`does` is the consequence; `button` what the button says while this one is chosen."""

    key: str
    word: str
    does: str
    button: str


CHOICES = (
    Choice(
        key="happened",
        word="It happened",
        does="The operation counts as completed with their reference, and the run goes on.",
        button="Record: it happened",
    ),
    Choice(
        key="differently",
        word="It happened differently",
        does="Their amount is booked instead of ours, and counts against every limit.",
        button="Record: it happened differently",
    ),
    Choice(
        key="did_not",
        word="It did not happen",
        does="The operation counts as failed, what it reserved is given back, and the workflow decides what follows.",
        button="Record: it did not happen",
    ),
    Choice(
        key="twice",
        word="It happened twice",
        does="The first reference counts; the second is kept in the record as the one to reverse on their side.",
        button="Record: it happened twice",
    ),
    Choice(
        key="still",
        word="Still unknown, ask again",
        does="Sends a question now, never the action itself. The case stays open.",
        button="Ask again now",
    ),
)

_SAID = {
    "resolved": "This case is settled already, by {by}. Your verdict was not recorded.",
    "claimed_by_other": "{by} has this case. Ask them to give it back; a claim lapses after 30 minutes.",
    "not_claimed": "Claim the case first, so that two people do not settle it at once. Nothing was recorded.",
    "reference_needed": "Give the reference the other side has for it.",
    "reference_taken": "{reference} already settles another operation, so it cannot settle this one too.",
    "evidence_needed": "Say how you know: the evidence stays in the record.",
    "amount_needed": "Give the amount that the other side has recorded.",
    "other_reference_needed": "Give the reference of the second record, a different one from the first.",
    "unknown_verdict": "Choose one of the verdicts.",
    "sender_may_wake": "The process that made an attempt has not been proved to have ended, so it may still send. "
    "Until it is, nothing proves that it did not happen.",
    "too_early": "A call may still be on its way until {at}; its effect may come that late. Say so after that.",
    "not_unknown": "The outcome is known by now ({state}), so there is nothing left to settle.",
}
FIELDS = {
    "reference_needed": "reference",
    "reference_taken": "reference",
    "evidence_needed": "evidence",
    "amount_needed": "actual",
    "other_reference_needed": "other_reference",
}


def refusal(*, code: str, detail: Mapping[str, Any]) -> str:
    """Why it was refused, for the person who tried."""
    known = {"by": "somebody", "reference": "That reference", "state": "settled", "code": code}
    sentence = _SAID.get(code, "Not recorded ({code}).")
    return sentence.format_map({**known, **{key: str(value) for key, value in detail.items()}})
