"""What an event of the record says to people: one line each, with its icon and colour. Reads nothing; kinds it has
never heard of are told plainly, so a new kind never breaks a page.

Texts may come from outside: lines are bounded here and escaped by the templates; amounts are never shortened.
"""

import datetime as dt
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from agentops.pages import reversal_words, story_asked
from agentops.pages.said import Data, Said, short
from runs import times, words
from runs.models.run import RunState
from runs.money import Money, MoneyError

GAP_FROM = 60.0  # seconds without an event that are worth a word


class EventLike(Protocol):
    @property
    def seq(self) -> int: ...
    @property
    def at(self) -> dt.datetime: ...
    @property
    def kind(self) -> str: ...
    @property
    def data(self) -> Data: ...
    @property
    def actor(self) -> object: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of the event list; `gap` is how long nothing happened before it, in words, or empty."""

    seq: int
    at: dt.datetime
    kind: str
    said: Said
    gap: str
    data: Data


def amount(data: Data) -> str:
    """The event's amount for people, whole and never cut; empty when it has none."""
    minor, currency = data.get("amount_minor"), data.get("currency")
    if minor in (None, "") or not currency:
        return ""
    try:
        return str(Money(int(minor), str(currency)))
    except (MoneyError, ValueError, TypeError):
        return f"{minor} {currency}"


def tool_name(tool: object) -> str:
    return short(words.tool(str(tool)), 80)


def case_label(data: Data) -> str:
    """`RC-12`, whether the event carries the label or the bare number."""
    return short(f"RC-{str(data.get('case', '')).removeprefix('RC-')}", 20)


def plain_kind(kind: str) -> str:
    return short(kind.replace(".", " ").replace("_", " ").capitalize(), 80)


def state_word(value: object) -> str:
    """The step the run was in, finer than its chip says: `Gathering`, `Checking policy`, `Not confirmed`."""
    return RunState(value).label if value in RunState.values else plain_kind(str(value))


PROBE_WORDS = {
    "found": ("exactly one record, as sent", "green"),
    "different": ("one record, but not as sent", "amber"),
    "several": ("more than one record", "amber"),
    "absent": ("no record", "grey"),
    "unreachable": ("no answer, which says nothing", "grey"),
}
POLICY_WORDS = {"allow": ("allows it", "green"), "ask": ("asks a person", "amber"), "deny": ("forbids it", "red")}


def _rules(data: Data) -> str:
    told = [short(rule.get("text", "")) for rule in data.get("rules", []) if isinstance(rule, dict)]
    return "; ".join(told) or short(data.get("reason", ""))


def _started(data: Data) -> Said:
    workflow = f"{data.get('workflow', '')} v{data['workflow_version']}" if data.get("workflow_version") else ""
    return Said(
        icon="play",
        lead="Run started",
        text=short(data.get("title", "")),
        note=short(workflow or data.get("workflow", "")),
    )


def _moved(data: Data) -> Said:
    target = str(data.get("target", ""))
    look = words.look(kind="run", state=target)
    running = look.colour == "blue"
    return Said(
        icon="circle-dot" if running else look.icon,
        lead=state_word(target) or "Moved",
        text=short(data.get("why", "")),
        tone="" if running else look.colour,
    )


def _read(data: Data) -> Said:
    pieces = [piece for piece in data.get("pieces", []) if isinstance(piece, dict)]
    names = ", ".join(
        f"{short(p.get('title', p.get('kind', '')), 60)} v{short(p.get('version', ''), 20)}" for p in pieces
    )
    return Said(icon="eye", lead=f"Read {len(pieces)} source{'s' * (len(pieces) != 1)}", note=short(names))


def _not_read(data: Data) -> Said:
    return Said(
        icon="plug",
        lead=f"Could not read {short(data.get('source', 'a source'), 80)}",
        text=short(data.get("detail", "")),
        tone="amber",
    )


def _answered(data: Data) -> Said:
    if data.get("refusal_code"):
        return Said(icon="bot", lead="Answer refused", text=short(data.get("refusal", "")), tone="red")
    choice = str(data.get("choice") or data.get("kind") or "")
    return Said(icon="bot", lead="Agent answered", text=short(choice.replace("_", " "), 80))


def _proposed(data: Data) -> Said:
    return Said(
        icon="file-pen",
        lead=f"Proposed: {tool_name(data.get('tool'))} {amount(data)}".rstrip(),
        note=str(data.get("identity", ""))[:200],
    )


def _checked(data: Data) -> Said:
    verdict, tone = POLICY_WORDS.get(str(data.get("effect")), ("answered", "grey"))
    return Said(
        icon="scale", lead=f"Policy {verdict}", text=_rules(data), note=short(data.get("policy", "")), tone=tone
    )


def _operation(data: Data) -> Said:
    money = amount(data)
    return Said(
        icon="credit-card" if money else "send",
        lead=f"Operation: {tool_name(data.get('tool'))} {money}".rstrip(),
        note=str(data.get("identity", ""))[:200],
    )


def _attempt(data: Data) -> Said:
    return Said(icon="send", lead=f"Attempt {data.get('number', '')}", text="sending", tone="blue", inner=True)


def _attempt_closed(data: Data) -> Said:
    look = words.look(kind="attempt", state=str(data.get("result", "")))
    return Said(
        icon=look.icon,
        lead=f"Attempt {data.get('number', '')}: {short(look.word.lower(), 60)}",
        note=short(data.get("detail", "")),
        tone=look.colour,
        inner=True,
    )


def _operation_moved(data: Data) -> Said:
    look = words.look(kind="operation", state=str(data.get("target", "")))
    return Said(
        icon=look.icon,
        lead=f"Operation: {short(look.word.lower(), 60)}",
        text=short(data.get("why", "")),
        tone=look.colour,
        inner=True,
    )


def _probed(data: Data) -> Said:
    found, tone = PROBE_WORDS.get(str(data.get("finding")), (short(data.get("finding", "asked"), 60), "grey"))
    final, note = "" if data.get("conclusive") else "not conclusive", short(data.get("summary", ""))
    return Said(icon="radar", lead=f"Looked up: {found}", text=final, note=note, tone=tone, inner=True)


def _case(lead: str, tone: str) -> Callable[[Data], Said]:
    def told(data: Data) -> Said:
        text = short(str(data.get("verdict") or data.get("case_kind") or "").replace("_", " "), 60)
        about = f"Case {case_label(data)} {lead}".replace("  ", " ")
        return Said(icon="life-buoy", lead=about, text=text, tone=tone, inner=True)

    return told


def _added(data: Data) -> Said:
    text = short(data.get("why", ""))
    return Said(icon="life-buoy", lead=f"More for case {case_label(data)}", text=text, tone="violet", inner=True)


def _corrected(data: Data) -> Said:
    was, note = f"it said {short(data.get('was', ''), 120)}", short(data.get("evidence", ""))
    return Said(icon="equal-not", lead="Our record is corrected", text=was, note=note, tone="amber")


def _by_person(icon: str, did: str, tone: str = "") -> Callable[[Data], Said]:
    def told(data: Data) -> Said:
        lead = f"{did} by {short(data.get('by', 'a person'), 80)}"
        return Said(icon=icon, lead=lead, text=short(data.get("reason", "")), tone=tone)

    return told


def _wait_began(data: Data) -> Said:
    seconds = data.get("seconds")
    text = f"for {times.spell(seconds=seconds)}" if isinstance(seconds, int) else ""
    return Said(
        icon="hourglass", lead=f"Waits for {short(data.get('about', 'something'), 160)}", text=text, tone="grey"
    )


WAIT_WORDS = {
    "passed": ("the time has passed", "check", "green"),
    "came": ("it came", "check", "green"),
    "ended": ("it has ended", "check", "green"),
    "late": ("not there in time", "clock", "orange"),
    "dropped": ("no longer waited for", "circle-slash", "slate"),
}


def _wait_ended(data: Data) -> Said:
    text, icon, tone = WAIT_WORDS.get(str(data.get("result")), ("over", "circle-dot", "grey"))
    return Said(icon=icon, lead=f"Waited for {short(data.get('about', 'something'), 160)}", text=text, tone=tone)


def _reversal(told: Callable[[Data], dict[str, str]]) -> Callable[[Data], Said]:
    def said(data: Data) -> Said:
        return Said(icon=reversal_words.ICON, **Data({name: short(text) for name, text in told(data).items()}))

    return said


_TOLD: dict[str, Callable[[Data], Said]] = {
    **{kind: _reversal(told) for kind, told in reversal_words.TOLD.items()},
    "run.started": _started,
    "run.state": _moved,
    "evidence.read": _read,
    "evidence.failed": _not_read,
    "model.answered": _answered,
    "proposal.made": _proposed,
    "policy.checked": _checked,
    **story_asked.TOLD,
    "decision.policy": lambda data: Said(icon="settings", lead="Automatic", text="decided by policy alone"),
    "event.received": lambda data: Said(
        icon="zap", lead="Their event came", text="it is looked up, not believed", inner=True
    ),
    "operation.created": _operation,
    "operation.state": _operation_moved,
    "operation.corrected": _corrected,
    "attempt.opened": _attempt,
    "attempt.closed": _attempt_closed,
    "probe.made": _probed,
    "process.ended": lambda data: Said(
        icon="plug",
        lead=f"{short(data.get('process', 'A process'), 80)} is gone, says {short(data.get('by', 'a person'), 80)}",
        text=short(data.get("evidence", "")),
        inner=True,
    ),
    "case.opened": _case("opened", "violet"),
    "case.added": _added,
    "case.claimed": _case("claimed", "violet"),
    "case.released": _case("given back", ""),
    "case.proposed": _case("has a verdict that another admin has to confirm:", "amber"),
    "case.resolved": _case("settled", "green"),
    "run.cancel_requested": _by_person("circle-slash", "Cancel asked for", "slate"),
    "run.claimed_by_person": lambda data: Said(
        icon="hand", lead=f"Taken over by {short(data.get('by', 'a person'), 80)}", tone="amber"
    ),
    "run.step_failed": lambda data: Said(
        icon="triangle-alert", lead="A step broke off", text=short(data.get("reason", "")), tone="amber"
    ),
    "probe.requested": lambda _: Said(icon="radar", lead="Asked to look it up now", inner=True),
    "act.refused": lambda data: Said(
        icon="triangle-alert",
        lead=f"Refused to {short(data.get('by', 'somebody'), 80)}",
        text=f"{plain_kind(str(data.get('act', 'an act'))).lower()}: not entitled to it any more",
        tone="amber",
    ),
    "run.released_by_person": lambda data: Said(icon="hand", lead="Given back to the list"),
    "run.paused": _by_person("pause", "Paused"),
    "run.resumed": _by_person("play", "Resumed"),
    "run.frozen": lambda data: Said(
        icon="snowflake", lead="Held", text=f"by {short(data.get('why', 'a freeze'))}", tone="slate"
    ),
    "run.try_again": _by_person("repeat", "Told to try again now"),
    "signal.received": lambda data: Said(icon="bell", lead=f"Told from outside: {short(data.get('about', ''), 60)}"),
    "wait.began": _wait_began,
    "wait.linked": lambda data: Said(icon="play", lead=f"Started {short(data.get('about', 'a run'), 160)}"),
    "wait.ended": _wait_ended,
}


def tell(event: EventLike) -> Said:
    """The event in words."""
    known = _TOLD.get(event.kind)
    if known is not None:
        actor = event.actor
        return known({"by": str(actor), **event.data} if getattr(actor, "kind", "") == "person" else event.data)
    facts = "; ".join(f"{plain_kind(str(key))}: {short(value, 80)}" for key, value in event.data.items())
    return Said(icon="circle-dot", lead=plain_kind(event.kind), text=short(facts))


def rows(*, events: Iterable[EventLike], after: dt.datetime | None = None) -> Iterator[Row]:
    """Lines for events in order; `after` is the time of the event before the first of them, if there is one."""
    for event in events:
        idle = (event.at - after).total_seconds() if after else 0.0
        gap = times.spell(seconds=idle) if idle >= GAP_FROM else ""
        yield Row(seq=event.seq, at=event.at, kind=event.kind, said=tell(event), gap=gap, data=event.data)
        after = event.at
