"""What people do to runs, in words: each act with its consequence, each refusal with its own sentence. Pure."""

from dataclasses import dataclass

from runs import words
from runs.services.operate import OperateResult

_SAID = {
    "no_right": "Your rights have changed: this takes an active account with the right to operate runs. Nothing was"
    " changed.",
    "over": "The run has already ended ({state}), so nothing was changed.",
    "already_requested": "{by} has asked for that already.",
    "reason_needed": "Say why: the reason stays in the run's record.",
    "not_paused": "The run is not paused. Nothing was changed.",
    "not_waiting": "The run no longer needs a person: it is {state} now. Nothing was changed.",
    "claimed_by_other": "{by} has this run. Ask them to give it back; a claim lapses after 30 minutes. Nothing"
    " was changed.",
}


def say(result: OperateResult) -> str:
    """Why it was refused, for the person who tried."""
    detail = {key: str(value) for key, value in result.detail.items()}
    if "state" in detail:
        detail["state"] = words.look(kind="run", state=detail["state"]).word.lower()
    sentence = _SAID.get(result.code, "Not done ({code}). Nothing was changed.")
    return sentence.format_map({"by": "Somebody else", "state": "over", "code": result.code, **detail})


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """A button on the run page: `title` asks, `does` says what keeps running, `done` what was recorded."""

    key: str
    word: str
    icon: str
    title: str
    does: str
    button: str
    done: str
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
    ),
    "resume": Act(
        key="resume",
        word="Resume…",
        icon="play",
        title="Resume this run?",
        does="It goes on where it was. Everything is checked again before anything is sent.",
        button="Resume the run",
        done="Resumed. It goes on where it was.",
    ),
    "cancel": Act(
        key="cancel",
        word="Cancel…",
        icon="circle-slash",
        title="Cancel this run?",
        does="What has not started never will. What is in flight is settled first, so that it is known whether it"
        " happened. What was done stays done and stays in the record.",
        button="Cancel the run",
        done="Cancel asked for. What is in flight is settled first; nothing else starts.",
        tone="btn-line btn-no",
    ),
}
