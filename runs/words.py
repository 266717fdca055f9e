"""The words, colours and icons of states: one word per idea, the same on every page, in mail and in the API.

Pure text; the colour is the name of a style (`is-amber`), the icon one of lucide's names or `unknown`, our own.
"""

import re
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Look:
    word: str
    colour: str
    icon: str


WAITING = Look("Waiting", "amber", "hand")
RUNNING = Look("Running", "blue", "loader-circle")
HELD = Look("Waiting", "grey", "hourglass")
COMPLETED = Look("Completed", "green", "check")
APPROVED = Look("Approved", "green", "check")
REJECTED = Look("Rejected", "red", "x")
FAILED = Look("Failed", "red", "circle-alert")
EXPIRED = Look("Expired", "orange", "clock")
CANCELLED = Look("Cancelled", "slate", "circle-slash")
UNKNOWN = Look("Not confirmed", "violet", "unknown")
OUT_OF_DATE = Look("Out of date", "amber", "arrow-right-left")
IN_DISPUTE = Look("In dispute", "amber", "equal-not")

STATES: dict[str, dict[str, Look]] = {
    "run": {
        "queued": replace(HELD, word="Queued"),
        "gathering": RUNNING,
        "deciding": RUNNING,
        "authorising": RUNNING,
        "awaiting_approval": replace(WAITING, word="Waiting for approval"),
        "executing": RUNNING,
        "outcome_unknown": UNKNOWN,
        "waiting": HELD,
        "needs_person": replace(WAITING, word="Needs a person"),
        "completed": COMPLETED,
        "rejected": REJECTED,
        "cancelled": CANCELLED,
        "failed": FAILED,
    },
    "request": {
        "open": WAITING,
        "approved": APPROVED,
        "rejected": REJECTED,
        "expired": EXPIRED,
        "superseded": OUT_OF_DATE,
        "withdrawn": replace(CANCELLED, word="Withdrawn"),
        "sent_back": replace(OUT_OF_DATE, word="Sent back", icon="undo-2"),
        "spent": APPROVED,
        "stale": OUT_OF_DATE,
        "revoked": replace(CANCELLED, word="No longer allowed"),
    },
    # what is written on a request, and who looks at it
    "talk": {
        "commented": Look("Comment", "grey", "message-square"),
        "question": Look("Asked for information", "amber", "message-circle-question-mark"),
        "answered": Look("Answered", "grey", "message-square-reply"),
        "claimed": Look("Being looked at", "grey", "eye"),
        "released": Look("Given back", "grey", "eye-off"),
    },
    "draft": {
        "writing": replace(HELD, word="Being written", icon="pencil"),
        "asked": replace(WAITING, word="Waiting for a second person"),
        "published": replace(COMPLETED, word="Published"),
        "discarded": replace(CANCELLED, word="Discarded"),
    },
    "operation": {
        "authorised": replace(HELD, word="Waiting to run"),
        "sending": RUNNING,
        "succeeded": COMPLETED,
        "failed": FAILED,
        "accepted": replace(HELD, word="Accepted, not final"),
        "unknown": UNKNOWN,
        "abandoned": replace(CANCELLED, word="Given up"),
        "compensated": replace(COMPLETED, word="Reversed"),
    },
    "attempt": {
        "": RUNNING,
        "done": COMPLETED,
        "not_sent": replace(CANCELLED, word="Never sent"),
        "refused": replace(FAILED, word="Refused"),
        "overloaded": replace(HELD, word="Asked to wait"),
        "ambiguous": UNKNOWN,
        "sender_gone": UNKNOWN,
    },
    "case": {
        "open": replace(UNKNOWN, word="Open"),
        "claimed": replace(WAITING, word="Claimed"),
        "resolved": replace(COMPLETED, word="Resolved"),
    },
    # a settled operation of which the other side shows something else
    "dispute": {"open": IN_DISPUTE, "noted": replace(IN_DISPUTE, word="Put right outside")},
}


def look(*, kind: str, state: str, who: str = "") -> Look:
    """How a state is shown. `who` completes *Waiting* ("you", "Support managers"); an unknown state stays readable."""
    found = STATES.get(kind, {}).get(state) or Look(state.replace("_", " ").capitalize() or "None", "grey", "info")
    return replace(found, word=f"Waiting for {who}") if who and found.word == WAITING.word else found


GROUP_WORDS = {"manager": "support managers", "support": "support staff", "admin": "admins"}
_LATER_CAPITAL = re.compile(r"(?<=\w[\s-])[A-Z](?=[a-z])")
# what people call an outside system whose name is not a word by itself: in a sentence, and as a label
_SYSTEMS = {"helpdesk": ("the help desk", "Help desk")}


def system(name: str, *, begins: bool = False) -> str:
    """An outside system in a sentence: `billing`, `the help desk`; `The help desk` where it `begins` one."""
    said = _SYSTEMS.get(name, (name, ""))[0]
    return said[:1].upper() + said[1:] if begins else said


def system_title(name: str) -> str:
    """An outside system as a label: `Billing`, `Help desk`."""
    return _SYSTEMS.get(name, ("", name[:1].upper() + name[1:]))[1]


def group(name: str) -> str:
    """The people of a group: `support managers`; another group by its name."""
    return GROUP_WORDS.get(name, name)


def sentence_case(text: str) -> str:
    """`Change Password` → `Change password`: a heading as ours are, whatever library wrote it."""
    return _LATER_CAPITAL.sub(lambda found: found[0].lower(), text)


def tool(name: str) -> str:
    """A tool's name as words, where its contract is not at hand: `billing.create_credit` → `Create credit`."""
    return str(name).rpartition(".")[2].replace("_", " ").capitalize() or "Action"
