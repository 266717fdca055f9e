"""What people do to runs, in words: refusals of `runs.services.operate`, each with its own sentence. Pure."""

from runs import words
from runs.services.operate import OperateResult

_SAID = {
    "over": "The run has already ended ({state}), so nothing was changed.",
    "already_requested": "{by} has asked to cancel this run already.",
    "reason_needed": "Say why: the reason stays in the run's record.",
    "not_waiting": "The run no longer needs a person: it is {state} now. Nothing was changed.",
    "claimed_by_other": "{by} has this run. Ask them, or wait until they give it back. Nothing was changed.",
}


def say(result: OperateResult) -> str:
    """Why it was refused, for the person who tried."""
    detail = {key: str(value) for key, value in result.detail.items()}
    if "state" in detail:
        detail["state"] = words.look(kind="run", state=detail["state"]).word.lower()
    sentence = _SAID.get(result.code, "Not done ({code}). Nothing was changed.")
    return sentence.format_map({"by": "Somebody else", "state": "over", "code": result.code, **detail})
