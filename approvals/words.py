"""Every code of a refusal or a result, and its own sentence; and what a typed text must be. Pure."""

import datetime as dt
import unicodedata
from collections.abc import Mapping
from typing import Any

from runs.texts import typed

ACCEPTED = frozenset({"approved", "rejected", "voted", "voted_no"})  # the codes of a word that counts
SENTENCES: dict[str, str] = {
    # results
    "approved": "Approved. It is waiting to run.",
    "rejected": "Rejected. What was asked will not be done.",
    "voted": "Your approval counts: {votes_for} of {quorum}. It waits for others.",
    "voted_no": "Your no counts. One alone does not end this; it waits for others.",
    # refusals
    "decided": "{by} {verb} this on {at}.",
    "superseded": "Something has changed since this was asked. Look at what is asked now.",
    "withdrawn": "This request was withdrawn. It takes no answers any more.",
    "sent_back": "{by} sent this back on {at}. It takes no answers any more.",
    "cancelled": "The run was cancelled. This takes no answers any more.",
    "expired": "The time to answer ended on {at}. It takes no answers any more.",
    "inactive": "Your account is no longer active.",
    "no_right": "Your rights have changed: members of {group} with the right to vote decide this.",
    "own_request": "You {part} this, so somebody else decides it.",
    "already_voted": "You have already answered; {votes_for} of {quorum} have approved.",
    "stand_in_voted": "{by} has answered for you, and you and they count once; {votes_for} of {quorum} have approved.",
    "away_has_voted": "{whom}, for whom you stand in, has answered already; you and they count once.",
    "not_yet": "{stage} is asked later: {now} answers first.",
    "stage_met": "{stage} has all its answers. Now {now} is asked.",
    "needed_elsewhere": "You are needed for {stage}: each answers once, and too few others could answer there. "
    "Leave this to somebody else.",
    "page_differs": "What you had before you is not what is asked. Look at it again before you decide.",
    "out_of_date": "The facts have changed, and are being read again. Look again in a moment.",
    "policy_changed": "The policy has changed since this was asked. It is being checked again under {policy}; "
    "look again in a moment.",
    "not_granted": "This run was not granted {tool}, so it could not use your approval.",
    "grant_over": "This run was granted {tool} until {until}, and that is over: it could not use your approval. "
    "Rejecting is possible.",
    "frozen": "Held by {freeze}: approving is possible again once the freeze is lifted, and "
    "the time to answer stands still until then. Rejecting is possible now.",
    "unread_changes": "Something has changed since it was last asked. Confirm that you have seen what changed.",
    "reason_needed": "Say why you reject it: the comment is empty.",
    "comment_too_long": "The comment is too long: at most {limit} characters.",
    "confirm_on_page": "Approving this takes {takes}, which only its own page can take.",
    "retype_needed": "Type the amount to approve it.",
    "retype_differs": "The amount you typed is not the one asked for.",
    "reauthentication_needed": "Approving this takes {takes}. Confirm your login, then approve.",
    # refusals of what is done beside voting
    "not_yours": "Only whoever raised this, or may operate runs, can do that. Nothing was changed.",
    "why_needed": "Say why: it is empty. Nothing was changed.",
    "amount_fixed": "No other amount can be proposed for this. Send it back instead, and say why.",
    "amount_unreadable": "The amount {why}. Nothing was changed.",
    "amount_same": "That is the amount which is asked for already. Nothing was changed.",
    "amount_not_possible": "{why} Nothing was changed.",
    "amount_denied": "The policy refuses that amount: {why} Nothing was changed.",
    "amount_needs_you": "Whoever proposes an amount does not decide it, and without you too few could decide for "
    "{stage}. Nothing was changed.",
    "text_needed": "Write something first. Nothing was kept.",
    "may_not_see": "Your account may not see this request. Nothing was kept.",
    "too_many": "There are {limit} remarks on this already, which is all it takes. Nothing was kept.",
    "no_question": "There is no such question on this request. Nothing was kept.",
    "own_question": "You asked this, so somebody else answers it. Nothing was kept.",
    "answered": "{by} has answered this already. Nothing was kept.",
    "claimed_by_other": "{by} is looking at this until {at}. You may decide all the same.",
    "not_claimed": "You are not the one who is looking at this. Nothing was changed.",
    "someone_else": "You are signed in as someone else than when this page was opened. Your answer was not recorded.",
    # what stops an approval afterwards
    "not_approved": "The approval no longer stands.",
    "rights_lost": "Somebody whose approval counted is no longer entitled to give it.",
}
# of these nothing else says that an answer which was just given did not count
NOT_COUNTED = frozenset(
    {
        "decided", "not_yet", "needed_elsewhere", "policy_changed", "not_granted", "grant_over", "frozen",
        "confirm_on_page", "retype_needed", "retype_differs", "reauthentication_needed",
    }
)  # fmt: skip


def sentence(*, code: str, detail: Mapping[str, Any] | None = None, answered: bool = True) -> str:
    """The sentence for a code, filled from the detail that came with it; times in UTC. Unknown codes say so plainly.
    `answered`: told to somebody who has just answered, so also what became of that answer."""
    template = SENTENCES.get(code)
    if template is None:
        return f"This was refused ({code})."
    detail = dict(detail or {})
    yours = code == "decided" and detail.get("yours")
    said = template.format_map(_Words(_filled(code, detail)))
    if not answered or code not in NOT_COUNTED:
        return said
    return f"{said} It counts once." if yours else f"{said} Your answer was not counted."


class _Words(dict[str, Any]):
    """A missing detail leaves a readable gap instead of an error."""

    def __missing__(self, key: str) -> str:
        return {
            "at": "an earlier day",
            "by": "Somebody",
            "group": "the group",
            "policy": "the new one",
            "verb": "decided",
        }.get(key, "?")


def _filled(code: str, detail: dict[str, Any]) -> dict[str, Any]:
    if isinstance(detail.get("at"), str):
        detail["at"] = when(iso=detail["at"])
    if code == "decided":
        detail["verb"] = "approved" if detail.get("choice") == "approve" else "rejected"
        if detail.get("yours"):
            detail["by"] = "You" if detail.get("people", 1) == 1 else "You and others"
    if code == "own_request":
        detail["part"] = "raised" if detail.get("part") == "initiator" else "proposed"
    return detail


def when(*, iso: str) -> str:
    """`29 November 2026 at 14:03 UTC` from an ISO 8601 time with its offset."""
    at = dt.datetime.fromisoformat(iso).astimezone(dt.UTC)
    return f"{at.day} {at:%B %Y} at {at:%H:%M} UTC"


def is_blank(*, text: str) -> bool:
    """Nothing in it that a person could read: no letter, mark, number, punctuation or symbol."""
    return all(unicodedata.category(mark)[0] in "ZC" for mark in text)


def storable(*, text: str) -> str:
    """The same text, trimmed, without what a database or JSON cannot hold (NUL, lone surrogates)."""
    return typed(text=text)
