"""Statements in words: how far one is, what each result means, why something was refused. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A result's word, colour, icon and what it means."""

    key: str
    word: str
    colour: str
    icon: str
    means: str


RESULTS = (
    Look(key="confirmed", word="As we have it", colour="green", icon="check", means="Both sides say the same."),
    Look(key="different", word="Differing", colour="amber", icon="equal-not",
         means="It is ours, and amount, account or state differ. Each has a case."),
    Look(key="duplicate", word="More than once", colour="amber", icon="copy",
         means="Further records of what one operation of ours did. Each that stands has a case."),
    Look(key="unconfirmed", word="Not confirmed here", colour="violet", icon="unknown",
         means="It is there, and our record does not know yet. The other side is asked now; the list settles nothing."),
    Look(key="missing", word="Here only", colour="amber", icon="triangle-alert",
         means="We say that it happened in this period, and the whole list does not have it. Each has a case."),
    Look(key="unknown", word="There only, under our name", colour="red", icon="circle-alert",
         means="It carries an identity of ours that nothing here has."),
    Look(key="not_ours", word="Not ours", colour="grey", icon="users",
         means="Recorded by somebody else: it carries no identity of ours."),
    Look(key="unread", word="Unread", colour="amber", icon="file-exclamation-point",
         means="Lines of the file that could not be read; each says why. They are in no sum."),
)  # fmt: skip
BY_KEY = {one.key: one for one in RESULTS}
NOT_IN_FILE = Look(
    key="missing", word="Not in the file", colour="grey", icon="file-question-mark",
    means="We say that it happened in this time, and the file does not have it. A file never proves absence: no case.",
)  # fmt: skip


def look(*, key: str, of_file: bool) -> Look:
    """The look of a result; what is missing means less where it is missing from a file."""
    return NOT_IN_FILE if of_file and key == "missing" else BY_KEY[key]


STAGES = {
    "columns": "Waiting for its columns",
    "reading": "Being read",
    "matching": "Being compared",
    "comparing": "Being compared",
    "stopped": "Stopped",
    "finished": "Compared",
}

_SAID = {
    "no_right": "Your rights have changed: this takes an active account with the right to settle cases. Nothing was "
    "recorded.",
    "no_ledger": "This system cannot be asked for all that it recorded. Upload its file instead.",
    "period_empty": "There is no time between the first day and the last that is over yet.",
    "period_too_long": "Choose 400 days at most, and read the rest as a statement of its own.",
    "period_not_over": "The period has to be over, so that the list is complete. Try again in {seconds} s.",
    "empty_file": "The file is empty.",
    "too_large": "The file is larger than 10 MB. Export a shorter period.",
    "not_text": "The file is not text in UTF-8 or in Windows’ western encoding. Export it as CSV, UTF-8.",
    "no_header": "The first line does not name at least two columns, nor at most 200. Export it with a header.",
    "too_many_lines": "The file has more than 100,000 lines. Export a shorter period.",
    "not_waiting": "Somebody has said already what the columns of this file mean.",
    "unlike_columns": "The file has no such columns. Nothing was recorded.",
    "reason_needed": "Say why it is stopped: it stays in the record.",
    "not_going": "It is not being read or compared any more. Nothing was stopped.",
    "not_stopped": "Somebody has continued it already, or it was not stopped.",
    "evidence_needed": "Say what it is and what was done: it stays in the record.",
    "noted_before": "{by} has noted this already. Yours was not recorded.",
}


def refusal(*, code: str, detail: Mapping[str, Any]) -> str:
    """Why it was refused, for the person who tried."""
    told = {"seconds": "a few", "by": "Somebody", **{key: str(value) for key, value in detail.items()}}
    return _SAID.get(code, f"Not recorded ({code}).").format_map(told)
