"""What the record says about asking people: requests, their stages and answers, in words. Pure."""

from collections.abc import Callable

from agentops.pages.said import Data, Said, short
from runs import times, words

ENDED = ("approved", "rejected", "expired", "superseded", "stale", "withdrawn", "sent_back", "revoked", "spent")


def _opened(data: Data) -> Said:
    names = [words.group(str(one.get("name", ""))) for one in data.get("stages", []) if isinstance(one, dict)]
    return Said(
        icon="hand",
        lead=f"Asked {short(', then '.join(names) or words.group(str(data.get('group', 'people'))), 80)}",
        text=short(data.get("ask", "")),
        tone="amber",
    )


def _voted(data: Data) -> Said:
    choice = {"approve": "Yes", "reject": "No"}.get(str(data.get("choice", "")), "Vote")
    away = f" for {short(data['instead_of'], 80)}" if data.get("instead_of") else ""
    lead = f"{choice} from {short(data.get('by', ''), 80)}{away}"
    return Said(icon="vote", lead=lead, text=short(data.get("comment", "")))


def _not_counted(data: Data) -> Said:
    return Said(
        icon="ban",
        lead="Vote refused",
        text=f"{short(data.get('by', ''), 80)} ({short(str(data.get('code', '')).replace('_', ' '), 60)})",
    )


def _request_ended(state: str, kind: str = "request") -> Callable[[Data], Said]:
    look = words.look(kind=kind, state=state)

    def told(data: Data) -> Said:
        by = short(data["why"]) if data.get("why") else f"by {short(data['by'], 80)}" if data.get("by") else ""
        if data.get("counted"):  # of several approvals, or where nobody clicked
            by = f"by {short(data['counted'], 80)}{'' if data.get('vote') else ', counted again by the system'}"
        return Said(icon=look.icon, lead=look.word, text=by, note=short(data.get("comment", "")), tone=look.colour)

    return told


def _stage(data: Data) -> str:
    return short(words.group(str(data.get("stage", "a stage"))), 80)


TOLD: dict[str, Callable[[Data], Said]] = {
    "request.opened": _opened,
    "request.vote": _voted,
    "request.refused": _not_counted,
    **{f"request.{state}": _request_ended(state) for state in ENDED},
    **{f"request.{what}": _request_ended(what, "talk") for what in words.STATES["talk"]},
    "request.spent": lambda data: Said(icon="check", lead="Approval used", text="for this operation", tone="green"),
    "request.moved_on": lambda data: Said(
        icon="clock",
        lead="More time to answer",
        text=f"a freeze had stopped the clock for {times.span(seconds=float(data.get('seconds', 0)))}",
        inner=True,
    ),
    "request.stage_opened": lambda data: Said(icon="hand", lead=f"Asked {_stage(data)}", text="now it is its turn"),
    "request.stage_reopened": lambda data: Said(
        icon="rotate-ccw", lead=f"Asked {_stage(data)} again", text=short(data.get("why", "")), tone="amber"
    ),
    "request.counted": lambda data: Said(
        icon="check",
        lead=f"System counted again for {_stage(data)}",
        text=f"what {short(data.get('counted', ''), 80)} had approved; that is enough now",
    ),
    "request.handed_on": lambda data: Said(
        icon="forward",
        lead=f"{_stage(data)} handed on to {short(data.get('to', ''), 80)}",
        text=short(data.get("why", "")),
    ),
    "request.added": lambda data: Said(
        icon="user-plus", lead=f"{short(data.get('to', ''), 80)} has to approve too", text=short(data.get("why", ""))
    ),
    "request.escalated": lambda data: Said(
        icon="trending-up",
        lead=f"System asked {short(words.group(str(data.get('also', ''))), 80)} as well",
        text=short(data.get("why", "")),
        tone="amber",
    ),
    "request.reminded": lambda data: Said(
        icon="bell",
        lead="System reminded",
        text=f"{short(data.get('people', ''), 20)} who had not answered",
        inner=True,
    ),
    "decision.standing": lambda data: Said(
        icon="stamp", lead="Approved beforehand", text=f"by {short(data.get('by', 'people'))}", tone="green"
    ),
}
