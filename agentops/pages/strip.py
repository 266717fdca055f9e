"""The states a run has been through, in the machine's order, with how long and how often. Reads nothing."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from agentops.pages.story import EventLike, state_word
from runs import times, words
from runs.models.run import TERMINAL, RunState

S = RunState
# where a run is headed as long as nothing unusual happens; shown pale before it gets there
PATH = (S.QUEUED, S.GATHERING, S.DECIDING, S.AUTHORISING, S.EXECUTING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """`said` is the time spent and the number of visits, in words; `tone` is empty for a state not reached yet."""

    state: str
    word: str
    icon: str
    tone: str
    said: str
    current: bool


def nodes(*, events: Sequence[EventLike], current: str, now: dt.datetime) -> list[Node]:
    """From the events `run.started` and `run.state` in order; `current` is the state the run is in."""
    seconds: dict[str, float] = {}
    visits: dict[str, int] = {}
    state, since = str(S.QUEUED), events[0].at if events else now
    visits[state] = 1
    for event in events:
        if event.kind != "run.state":
            continue
        seconds[state] = seconds.get(state, 0.0) + (event.at - since).total_seconds()
        state, since = str(event.data.get("target", "")), event.at
        visits[state] = visits.get(state, 0) + 1
    seconds[state] = seconds.get(state, 0.0) + (now - since).total_seconds()
    visits.setdefault(current, 1)
    live = current not in TERMINAL
    shown = [one for one in S if one in visits or (live and one in PATH)]
    return [
        _node(state=one, current=current, seconds=seconds.get(one, 0.0), visits=visits.get(one, 0)) for one in shown
    ]


def _node(*, state: RunState, current: str, seconds: float, visits: int) -> Node:
    look, here = words.look(kind="run", state=state), state == current
    over = state in TERMINAL
    said = "" if over or not visits else times.spell(seconds=seconds) + (f" · {visits} times" if visits > 1 else "")
    passed = bool(visits) and not here
    if passed:
        violet = state == S.OUTCOME_UNKNOWN
        icon, tone = (look.icon, "violet") if violet else ("check", "green")
        said = f"{said}, settled" if violet else said
    else:
        icon, tone = ("circle-dot" if look.colour == "blue" else look.icon), look.colour if visits else ""
    if here and not over:
        said = f"{said} so far"
    return Node(state=str(state), word=state_word(state), icon=icon, tone=tone, said=said, current=here)
