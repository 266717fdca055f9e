"""The desk in words: what each verdict means and does, why something was refused. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runs.words import system as system_words


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
        does="Their amount is booked instead of ours and counts against every limit, and a person gets the run.",
        button="Record: it happened differently",
    ),
    Choice(
        key="did_not",
        word="It did not happen",
        does="The operation counts as failed, what it reserved is given back, and a person gets the run.",
        button="Record: it did not happen",
    ),
    Choice(
        key="twice",
        word="It happened twice",
        does="The first reference counts; the second is kept as the one to reverse on their side. Both count against "
        "every limit until then, and a person gets the run.",
        button="Record: it happened twice",
    ),
    Choice(
        key="still",
        word="Still unknown, ask again",
        does="Sends a question now, never the action itself. The case stays open.",
        button="Ask again now",
    ),
    Choice(
        key="stands",
        word="Our record is right",
        does="The other side shows what our record says, and the case closes with your evidence.",
        button="Record: it is right",
    ),
    Choice(
        key="noted",
        word="Noted; put right outside",
        does="Our record stays as it is and nothing is sent. The case closes with your evidence, and run and operation "
        "go on showing it.",
        button="Record: noted",
    ),
)
# of a settled operation: each but the last puts our own record right, by a new entry
_CORRECTIONS = (
    CHOICES[-2],
    Choice(
        key="happened",
        word="It happened, as sent",
        does="Our record is corrected: completed with their reference, and it counts against every limit.",
        button="Correct: it happened",
    ),
    Choice(
        key="differently",
        word="It happened differently",
        does="Our record is corrected to their amount, which counts against every limit instead of ours.",
        button="Correct: it happened differently",
    ),
    Choice(
        key="did_not",
        word="Nothing of it stands",
        does="Our record is corrected to failed. What it counted against limits is given back, and the same may be "
        "proposed again.",
        button="Correct: nothing of it stands",
    ),
    Choice(
        key="twice",
        word="It happened twice",
        does="Our record is corrected: the first reference counts, the second is kept as the one to reverse on their "
        "side, and both count against every limit until then.",
        button="Correct: it happened twice",
    ),
    CHOICES[-1],
)


# of what could not be undone; that it is undone after all closes such a case by itself
_TO_UNDO = (
    Choice(
        key="noted",
        word="It stays, or was undone outside",
        does="Our record stays as it is and nothing is sent. The case closes with your evidence.",
        button="Record: nothing more is to be done",
    ),
)


def choices(*, settled: bool, correctable: bool, to_undo: bool = False) -> tuple[Choice, ...]:
    """The verdicts that may be given of an operation in such a state, or in a case about its being undone."""
    if to_undo and settled:
        return _TO_UNDO
    if not settled:
        return CHOICES[:-2]
    return _CORRECTIONS if correctable else (CHOICES[-1],)


KEYS = frozenset(one.key for one in CHOICES)

_SAID = {
    "by_probe": "{system} was asked just before, and its answer settled this case: {evidence}. Your verdict was not "
    "recorded.",
    "no_right": "Your rights have changed: this takes an active account with the right to settle cases. Nothing was "
    "recorded.",
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
    "seen_recorded": "{system} has shown {reference} under our identity, so it cannot be recorded that it did not "
    "happen. If it was undone since, have it asked again: what is void no longer counts.",
    "not_asked": "{system} has not been asked since you claimed the case. Nothing was recorded; try again.",
    "unreachable": "{system} could not be asked just now ({problem}). Nothing was recorded; try again.",
    "too_early": "What was sent to {system} may still arrive there, or still appear. Nothing was recorded; try again "
    "in {seconds} s.",
    "none_recorded": "{system} was asked just now and shows nothing that stands under our identity, late enough to "
    "prove that nothing happened. Nothing was recorded.",
    "undone": "{reference} is void at {system}, so nothing of it stands. Nothing was recorded.",
    "left_out": "{system} shows {reference} under our identity, and your verdict leaves some of that out. Two can be "
    "recorded as “it happened twice”; of more, have some undone at {system} first. Nothing was recorded.",
    "not_shown": "{system} shows {reference} under our identity and not {named}. Nothing was recorded.",
    "same_record": "Both are names of one record, {reference}. Nothing was recorded.",
    "not_as_sent": "{reference} is not what was sent: {differing}. Record it as “it happened differently”.",
    "other_amount": "{system} shows {amount} for {reference}. Give that amount.",
    "no_amount": "{reference} has no amount in our currency, so it cannot be booked as a second one. Have it undone at "
    "{system} first.",
    "not_final": "{system} has taken {reference} on and not carried it out so far, so it is not known whether it will. "
    "It is asked about until that is; have it completed or cancelled at {system} first.",
    "not_unknown": "The operation is {state} by now, so no verdict about its outcome is left to give.",
    "not_settled": "The operation is {state}: it has to be settled before anything can be noted about it.",
    "as_recorded": "That is what our record says already. Nothing was recorded.",
    "not_right": "{system} shows {reference} otherwise than our record has it, so our record is not right.",
    "shows_nothing": "{system} shows nothing under our identity now, so our record cannot be called right.",
    "done_anew": "{by} has done the same in its place since, so this one cannot count as done too. Have one of them "
    "undone at {system}, and note it here.",
    "reversal_booked": "What this undid is recorded as reversed, and no longer counts. If it stands at {system} after "
    "all, have it undone there, and note it here.",
    "not_correctable": "The operation is {state}, so there is nothing in our record to correct.",
    "reason_needed": "Say why you doubt it: the reason stays in the record.",
    "nothing_proposed": "No verdict is proposed in this case. Nothing was recorded.",
    "proposal_changed": "{by} has proposed another verdict since this page was shown. Nothing was recorded; read that "
    "one.",
    "own_proposal": "You proposed this verdict yourself, so another admin has to confirm it. Nothing was recorded.",
    "proposer_lost_right": "{by} may no longer settle cases, so this proposal no longer counts. Give a verdict of your "
    "own, which another admin confirms.",
    "evidence_changed": "What {system} shows has changed since this was proposed. Nothing was recorded; look at it and "
    "give a verdict of your own.",
    "not_waited_for": "Nothing waits for that process any more: it has reported, or is recorded as ended.",
    "still_running": "{process} shows that it is alive: it runs on this machine, or has held a run within the last "
    "minute. Nothing was recorded; if it has just ended, try again in a minute.",
}
FIELDS = {
    "reference_needed": "reference",
    "reference_taken": "reference",
    "evidence_needed": "evidence",
    "none_recorded": "reference",
    "undone": "reference",
    "left_out": "reference",
    "not_shown": "reference",
    "same_record": "other_reference",
    "not_as_sent": "reference",
    "not_final": "reference",
    "other_amount": "actual",
    "amount_needed": "actual",
    "other_reference_needed": "other_reference",
}


def refusal(*, code: str, detail: Mapping[str, Any]) -> str:
    """Why it was refused, for the person who tried."""
    known = {"by": "somebody", "reference": "That reference", "state": "settled", "code": code, "system": "It"}
    known |= {"named": "what you named", "differing": "see below", "amount": "another amount"}
    known |= {"problem": "no answer", "seconds": "a few", "process": "That process", "evidence": "see below"}
    told = {**known, **{key: str(value) for key, value in detail.items()}}
    told["system"] = system_words(told["system"])
    by_probe = code == "resolved" and detail.get("verdict") == "by_probe"
    sentence = _SAID.get("by_probe" if by_probe else code, "Not recorded ({code}).").format_map(told)
    return sentence[:1].upper() + sentence[1:]


def stands(*, state: str, system: str, reference: str, failure: str, theirs: Sequence[str], amount: str) -> str:
    """What our record says of a settled operation and what `theirs` (their references, ours left out) says against it;
    `amount` is in words, or empty."""
    ours = {
        "succeeded": f"completed as {reference}",
        "failed": f"failed, as not done ({failure})",
        "abandoned": "given up before anything was sent",
        "compensated": f"completed as {reference} and reversed later",
    }.get(state, state)
    if not theirs:
        shows = f"Nothing that {system_words(system)} shows now stands against it; what did is told above."
        return f"Our record says: {ours}. {shows}"
    named, money = " and ".join(theirs), amount or "the effect"
    may = f"{money} may be out a second time" if reference else f"{money} may be out although our record says it is not"
    return f"Our record says: {ours}. {system_words(system, begins=True)} names {named}, so {may}."
