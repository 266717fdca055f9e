"""What the record says of reversals, and where one stands, in words. Pure."""

from collections.abc import Callable
from typing import Any

from runs.words import Look

Data = dict[str, Any]
ICON = "undo-2"

STATES: dict[str, Look] = {
    "planned": Look("Waits its turn", "grey", "hourglass"),
    "proposed": Look("Being proposed", "blue", "loader-circle"),
    "done": Look("Reversed", "green", "check"),
    "rejected": Look("Rejected", "red", "x"),
    "cancelled": Look("Cancelled", "slate", "circle-slash"),
    "delayed": Look("Could not be proposed yet", "amber", "circle-alert"),
    "failed": Look("Not reversed", "red", "circle-alert"),
    "dropped": Look("Not proposed", "slate", "circle-slash"),
}


def _proposed(data: Data) -> dict[str, str]:
    after = f", after {data['after']}" if data.get("after") else ""
    by = f" by {data['by']}" if data.get("by") else ""
    return {"lead": f"Reversal of {data.get('reference', '')} proposed{by}{after}", "text": str(data.get("reason", ""))}


def _started(data: Data) -> dict[str, str]:
    return {"lead": f"Reversal of {data.get('reference', '')} has its run", "text": "it needs its own approval"}


def _ended(data: Data) -> dict[str, str]:
    look = STATES.get(str(data.get("result")), STATES["failed"])
    about = f"Reversal of {data.get('reference', '')}: {look.word.lower()}"
    return {"lead": about, "text": str(data.get("why", "")), "tone": look.colour}


def _second(data: Data) -> dict[str, str]:
    return {"lead": f"The second record, {data.get('reference', '')}, was reversed", "tone": "green"}


def _delayed(data: Data) -> dict[str, str]:
    lead = f"Reversal of {data.get('reference', '')}: what is due failed, and is tried again"
    return {"lead": lead, "text": str(data.get("why", "")), "tone": "amber"}


def _anew(data: Data) -> dict[str, str]:
    lead = f"{data.get('reference', '')} may be done anew"
    return {"lead": lead, "text": str(data.get("reason", "")), "tone": "amber"}


TOLD: dict[str, Callable[[Data], dict[str, str]]] = {
    "reversal.proposed": _proposed,
    "reversal.started": _started,
    "reversal.ended": _ended,
    "reversal.delayed": _delayed,
    "operation.anew_allowed": _anew,
    "operation.second_reversed": _second,
}

_SAID = {
    "reason_needed": "Say why: the reason stays in the record, and whoever approves reads it.",
    "no_right": "Your rights have changed: this takes an active account with the right to propose it. Nothing was"
    " proposed.",
    "already_proposed": "{by} has proposed a reversal of it already. Nothing was proposed a second time.",
    "not_reversible": "{why} Nothing was proposed.",
    "other_case": "That case is about another operation. Nothing was proposed.",
}


def refusal(*, code: str, detail: Data) -> str:
    """Why it was not proposed, for the person who tried."""
    return _SAID.get(code, "Not proposed ({code}).").format_map({"by": "Somebody", "why": "", "code": code, **detail})


_ANEW = {
    "reason_needed": "Say why: the reason stays in the record.",
    "no_right": "Your rights have changed: this takes an active account with the right to settle cases. Nothing was"
    " changed.",
    "not_reversed": "The operation is {state}, and only what was reversed is done anew. Nothing was changed.",
    "already": "It has been allowed already. Nothing was changed.",
    "in_dispute": "What stands of it is not sure: settle {case} first. Nothing was changed.",
    "takes_another": "You proposed its reversal, and for this amount somebody else has to allow it. Nothing was"
    " changed.",
}


def anew_refusal(*, code: str, detail: Data) -> str:
    """Why it was not allowed, for the person who tried."""
    known = {"state": "settled", "case": "its case", "code": code, **detail}
    return _ANEW.get(code, "Not allowed ({code}).").format_map(known)
