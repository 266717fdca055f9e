"""What people do to runs, in words: each act with its consequence, each refusal with its sentence. Reads nothing."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runs import words
from runs.services.operate import OperateResult

_SAID = {
    "ok": "Done.",
    "no_right": "Your rights have changed: this takes an active account with the right to operate runs. Nothing was"
    " changed.",
    "over": "The run has already ended ({state}), so nothing was changed.",
    "already_requested": "{by} has asked for that already.",
    "reason_needed": "Say why: the reason stays in the run's record.",
    "not_paused": "The run is not paused. Nothing was changed.",
    "paused_anew": "It was resumed and paused again after this page was opened, for a reason the page did not show."
    " Nothing was changed.",
    "not_waiting": "The run no longer needs a person: it is {state} now. Nothing was changed.",
    "claimed_by_other": "{by} has this run. Ask them to give it back; a claim lapses after 30 minutes. Nothing"
    " was changed.",
    "cancelling": "{by} has asked to cancel it: it ends once what is in flight is settled. Nothing was changed.",
    "paused": "The run is paused: resume it, and it goes on by itself. Nothing was changed.",
    "needs_person": "The run is with people already: take it over and say how it goes on. Nothing was changed.",
    "frozen": "It is held by {freeze}. It goes on by itself when the freeze is lifted. Nothing was changed.",
    "awaits_answer": "It waits for an answer that only people can give. Nothing was changed.",
    "at_work": "It does not wait: a worker has it, or takes it up in a moment. Nothing was changed.",
    "own_wait": "It waits for {what}, as its workflow asked, and nobody can bring that forward. Nothing was changed.",
    "asked_to_wait": "{system} has asked to be left alone until {until}. Nothing was changed.",
    "in_flight": "Something it sent to {system} is not settled yet, and stays with the run until it is known whether it"
    " happened. Try again then. Nothing was changed.",
    "busy": "Somebody else had this run locked for a minute and more, so it was given up. Nothing was changed.",
    "broke_off": "It broke off for a reason nobody foresaw ({what}); the log has the details. Nothing was changed.",
}


def sentence(*, code: str, detail: Mapping[str, Any]) -> str:
    """What became of an act, for the person who tried; `ok` included."""
    told = {key: str(value) for key, value in detail.items()}
    if "state" in told:
        told["state"] = words.look(kind="run", state=told["state"]).word.lower()
    if "system" in told:
        told["system"] = words.system(told["system"], begins=code == "asked_to_wait")
    if "until" in told:
        told["until"] = f"{dt.datetime.fromisoformat(told['until']).astimezone(dt.UTC):%H:%M} UTC"
    template = _SAID.get(code, "Not done ({code}). Nothing was changed.")
    return template.format_map({"by": "Somebody else", "state": "over", "code": code, **told})


def say(result: OperateResult) -> str:
    """Why it was refused, for the person who tried."""
    return sentence(code=result.code, detail=result.detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """A button on the run page: `title` asks, `does` says what keeps running, `done` what was recorded; `verb` and
    `each` say the first two of many runs."""

    key: str
    word: str
    icon: str
    title: str
    does: str
    button: str
    done: str
    verb: str
    each: str
    tone: str = "btn-line"


ACTS = {
    "pause": Act(
        key="pause",
        word="Pause…",
        icon="pause",
        title="Pause this run?",
        does="Nothing new begins until somebody resumes it. The step in flight finishes, and what was sent is still"
        " settled. Deadlines go on running, and people may still decide.",
        button="Pause the run",
        done="Paused. The step in flight finishes; nothing new begins.",
        verb="Pause",
        each="Nothing new begins in any of them until somebody resumes it. Steps in flight finish, and what was sent is"
        " still settled. Deadlines go on running, and people may still decide.",
    ),
    "resume": Act(
        key="resume",
        word="Resume…",
        icon="play",
        title="Resume this run?",
        does="It goes on where it was. Everything is checked again before anything is sent.",
        button="Resume the run",
        done="Resumed. It goes on where it was.",
        verb="Resume",
        each="Each goes on where it was. Everything is checked again before anything is sent.",
    ),
    "again": Act(
        key="again",
        word="Try again now…",
        icon="repeat",
        title="Try again now?",
        does="A run that waits to try something again does so now; what its workflow waits for is not cut"
        " short. Where it is not confirmed whether something happened, the other side is asked now. This sends nothing"
        " again: that follows its own rule, whoever asks for it.",
        button="Try again now",
        done="It tries again now.",
        verb="Try again now:",
        each="Those that wait to try something again do so now; what a workflow waits for is not cut short. Where it is"
        " not confirmed whether something happened, the other side is asked now. This sends nothing again: that follows"
        " its own rule, whoever asks for it.",
    ),
    "to-person": Act(
        key="to-person",
        word="Hand to a person…",
        icon="hand",
        title="Hand this run to a person?",
        does="It stops where it is and waits on the list of what needs a person, who says how it goes on. An open"
        " request is withdrawn, an approval that was not used no longer counts, and what was done stays. While"
        " something it sent is not settled this is refused.",
        button="Hand it over",
        done="Handed over. It waits on the list of what needs a person.",
        verb="Hand over",
        each="Each stops where it is and waits on the list of what needs a person. Open requests are withdrawn,"
        " approvals that were not used no longer count, and what was done stays. Where something that was sent is not"
        " settled it is refused.",
    ),
    "cancel": Act(
        key="cancel",
        word="Cancel…",
        icon="circle-slash",
        title="Cancel this run?",
        does="What has not started never will. What is in flight is settled first, so that it is known whether it"
        " happened. What was done stays done and in the record; where its tool declares how it is undone, that is"
        " proposed, and needs its own approval.",
        button="Cancel the run",
        done="Cancel asked for. What is in flight is settled first; nothing else starts.",
        tone="btn-line btn-no",
        verb="Cancel",
        each="What has not started never will, and open requests are withdrawn. What is in flight is settled first, so"
        " that it is known whether it happened. What was done stays done and in the record; where its tool declares how"
        " it is undone, that is proposed, each with its own approval.",
    ),
}
