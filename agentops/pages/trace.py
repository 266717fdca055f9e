"""The record of a run as lanes on a time axis: what runs beside what, positions of 100, labels placed. Reads nothing.

Every event ends up on exactly one bar: the bar that it begins, ends or is.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agentops.pages.said import Data, short
from agentops.pages.story import (
    POLICY_WORDS,
    PROBE_WORDS,
    EventLike,
    amount,
    case_label,
    state_word,
    tell,
    tool_name,
)
from agentops.pages.story_asked import ENDED
from agentops.pages.timescale import Cut, Scale, Tick
from runs import times, words

LETTER = 0.95  # of 100, the width of a label's letter on the narrowest screen that shows lanes
PADDING = 1.6
SETTLED = ("succeeded", "failed", "abandoned", "compensated")
POINT = 1.4  # of 100, what is narrower is drawn as a point of fixed size


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """`seq` is the event shown on a click, `seqs` all events told by this bar; `side` is where `text` is drawn:
    in, after, before, or nowhere (empty). `point` bars have no width of their own; `unsent` ones never reached the
    other side."""

    x: float
    width: float
    tone: str
    text: str
    side: str
    label: str
    dashed: bool
    seq: int
    seqs: tuple[int, ...]
    point: bool
    unsent: bool

    @property
    def text_x(self) -> float:
        return self.x + self.width if self.side == "after" else self.x


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """`level` is state, plain, group or under (drawn indented under the group before it)."""

    key: str
    name: str
    icon: str
    level: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    lanes: tuple[Lane, ...]
    cuts: tuple[Cut, ...]
    ticks: tuple[Tick, ...]

    @property
    def any_unsent(self) -> bool:
        return any(bar.unsent for lane in self.lanes for bar in lane.bars)


@dataclass(slots=True, kw_only=True)
class _Span:
    start: dt.datetime
    end: dt.datetime | None
    tone: str
    text: str
    label: str
    seqs: list[int]
    dashed: bool = False
    unsent: bool = False
    shows: int = 0

    def close(self, *, event: EventLike, tone: str = "", text: str = "", label: str = "") -> None:
        self.end = event.at
        self.seqs.append(event.seq)
        self.tone, self.text, self.label = tone or self.tone, text or self.text, label or self.label


@dataclass(slots=True)
class _Track:
    name: str
    icon: str
    level: str
    spans: list[_Span] = field(default_factory=list)


class _Builder:
    """Takes events in order; keeps what is open by its own key (a request, an attempt, a case…)."""

    def __init__(self, *, first: dt.datetime, titles: Mapping[str, str]) -> None:
        self.first, self.titles = first, titles
        self.tracks: dict[str, _Track] = {
            "state": _Track("State", "circle-dot", "state"),
            "model": _Track("Model", "bot", "plain"),
            "reads": _Track("Tool reads", "eye", "plain"),
            "policy": _Track("Policy", "scale", "plain"),
            "approval": _Track("Approval", "stamp", "plain"),
            "waits": _Track("Waits", "hourglass", "plain"),
            "person": _Track("People", "user", "plain"),
            "other": _Track("Other", "message-square", "plain"),
        }
        self.open: dict[str, _Span] = {}

    # ---- building blocks
    def _add(
        self, track: str, event: EventLike, *, tone: str = "", text: str = "", point: bool = True, dashed: bool = False
    ) -> _Span:
        said = tell(event)
        label = f"{said.lead}: {said.text}" if said.text else said.lead
        span = _Span(
            start=event.at,
            end=event.at if point else None,
            tone=tone or said.tone or "grey",
            text=text,
            label=label,
            seqs=[event.seq],
            dashed=dashed,
        )
        self.tracks[track].spans.append(span)
        return span

    def _close(self, key: str, event: EventLike, *, tone: str = "", text: str = "") -> bool:
        span = self.open.pop(key, None)
        if span is not None:
            said = tell(event)
            label = f"{said.lead}: {said.text}" if said.text else said.lead
            span.close(
                event=event, tone=tone, text=text, label=f"{label}, after {times.spell(seconds=_seconds(span, event))}"
            )
        return span is not None

    def _operation(self, data: Data) -> str:
        """The key of the operation's lane, made when first heard of (also when its beginning is out of the window)."""
        key = f"operation:{data.get('operation', '')}"
        if key not in self.tracks:
            money, tool = amount(data), str(data.get("tool", ""))
            name = self.titles.get(tool) or (tool_name(tool) if tool else "Operation")
            name = f"{short(name, 40)} {money.removesuffix(str(data.get('currency', '')))}".strip()
            self.tracks[key] = _Track(name, "credit-card" if money else "file-text", "group")
        return key

    def _sub(self, data: Data, name: str) -> str:
        """The key of a lane under the operation's own; inserted after the operation's last lane."""
        parent = self._operation(data)
        key = f"{parent}:{name}"
        if key not in self.tracks:
            self.tracks[key] = _Track(name, "", "under")
        return key

    # ---- one method a family of kinds
    def run(self, event: EventLike) -> None:
        data, what = event.data, event.kind.partition(".")[2]
        if what == "started":
            self.open["state"] = self._add("state", event, tone="blue", text="Queued", point=False)
        elif what == "state":
            target = str(data.get("target", ""))
            if "state" not in self.open:
                # the window begins in the middle: what the run was until now is the edge's source
                source = str(data.get("source", ""))
                word, tone = state_word(source) or "Before", words.look(kind="run", state=source).colour
                self.tracks["state"].spans.append(
                    _Span(start=self.first, end=event.at, tone=tone, text=word, label=word, seqs=[], shows=event.seq)
                )
            else:
                open_span = self.open.pop("state")
                open_span.end = event.at
                open_span.label = f"{open_span.label}, {times.spell(seconds=_seconds(open_span, event))}"
            tone = words.look(kind="run", state=target).colour
            waits = target in {"awaiting_approval", "needs_person", "waiting", "outcome_unknown"}
            over = target in {"completed", "rejected", "cancelled", "failed"}
            span = self._add("state", event, tone=tone, text=state_word(target), point=over, dashed=waits)
            if not over:
                self.open["state"] = span
        else:
            self._add("person", event)

    def evidence(self, event: EventLike) -> None:
        pieces = event.data.get("pieces", [])
        failed = event.kind == "evidence.failed"
        text = "failed" if failed else str(len(pieces)) if isinstance(pieces, list) else ""
        self._add("reads", event, text=text)

    def model(self, event: EventLike) -> None:
        refused = bool(event.data.get("refusal_code"))
        self._add("model", event, tone="red" if refused else "grey", text="refused" if refused else "")

    def proposal(self, event: EventLike) -> None:
        self._add("model", event, tone="grey", text=amount(event.data) or tool_name(event.data.get("tool")))

    def policy(self, event: EventLike) -> None:
        self._add("policy", event, tone=POLICY_WORDS.get(str(event.data.get("effect")), ("", "grey"))[1])

    def decision(self, event: EventLike) -> None:
        self._add("policy", event)

    def event(self, event: EventLike) -> None:
        """What the other side sent by itself; under the operation it names, if it names one."""
        known = bool(event.data.get("operation"))
        self._add(self._sub(event.data, "Events") if known else "other", event)

    def request(self, event: EventLike) -> None:
        what, key = event.kind.partition(".")[2], f"request:{event.data.get('request', '')}"
        if what == "opened":
            self.open[key] = self._add("approval", event, tone="amber", text="Waiting", point=False, dashed=True)
        elif what in ENDED and what != "spent":
            look = words.look(kind="request", state=what)
            if not self._close(key, event, tone=look.colour, text=look.word):
                self._add("approval", event, tone=look.colour, text=look.word)
        else:
            self._add("approval", event, text="used" if what == "spent" else "")

    def wait(self, event: EventLike) -> None:
        what, key = event.kind.partition(".")[2], f"wait:{event.data.get('wait', '')}"
        if what == "began":
            name = short(str(event.data.get("wait", "")).replace("_", " "), 40)
            self.open[key] = self._add("waits", event, text=name, point=False, dashed=True)
        elif what != "ended" or not self._close(key, event, tone=tell(event).tone):
            self._add("waits", event)

    def operation(self, event: EventLike) -> None:
        lane = self._operation(event.data)
        span = self.open.pop(lane, None)
        if span is not None:
            span.end = event.at
        target = str(event.data.get("target", "authorised"))
        look, over = words.look(kind="operation", state=target), target in SETTLED
        text, tone = ("" if target == "authorised" else look.word), look.colour
        if target in ("succeeded", "failed") and getattr(event.actor, "kind", "") == "person":
            text = "Settled by evidence"
        if event.kind not in {"operation.created", "operation.state"}:
            over, text, tone = True, "", "grey"
        added = self._add(lane, event, tone=tone, text=text, point=over, dashed=target == "unknown")
        if not over:
            self.open[lane] = added

    def attempt(self, event: EventLike) -> None:
        name = f"Attempt {short(event.data.get('number', ''), 8)}"
        lane = self._sub(event.data, name)
        if event.kind == "attempt.opened":
            self.open[lane] = self._add(lane, event, tone="blue", point=False)
            return
        look = words.look(kind="attempt", state=str(event.data.get("result", "")))
        if not self._close(lane, event, tone=look.colour, text=look.word):
            self._add(lane, event, tone=look.colour, text=look.word)
        self.tracks[lane].spans[-1].unsent = event.data.get("result") == "not_sent"

    def probe(self, event: EventLike) -> None:
        finding = str(event.data.get("finding"))
        text = {"found": "exactly 1", "several": "several", "different": "1, differs", "absent": "none"}.get(
            finding, ""
        )
        tone = PROBE_WORDS.get(finding, ("", "grey"))[1]
        self._add(self._sub(event.data, "Probes"), event, tone=tone, text=text)

    def case(self, event: EventLike) -> None:
        """Under the newest operation: a run's actions follow one another, so a case is about that one."""
        name = f"Case {case_label(event.data)}"
        parents = [key for key, track in self.tracks.items() if track.level == "group"]
        lane = next(
            (key for key in self.tracks if key.endswith(f":{name}")), f"{parents[-1] if parents else ''}:{name}"
        )
        if lane not in self.tracks:
            self.tracks[lane] = _Track(name, "" if parents else "life-buoy", "under" if parents else "plain")
        if event.kind == "case.opened":
            self.open[lane] = self._add(lane, event, tone="violet", point=False, dashed=True)
        elif event.kind != "case.resolved" or not self._close(lane, event, tone="green", text="settled"):
            self._add(lane, event)

    def reversal(self, event: EventLike) -> None:
        """Under what is undone, from its proposal to its end."""
        lane, word = self._sub(event.data, "Reversal"), str(event.data.get("result", ""))
        if event.kind == "reversal.proposed":
            self.open[lane] = self._add(lane, event, tone="amber", point=False, dashed=True)
        elif event.kind != "reversal.ended" or not self._close(lane, event, tone=tell(event).tone, text=word):
            self._add(lane, event)


def _seconds(span: _Span, event: EventLike) -> float:
    return (event.at - span.start).total_seconds()


def _take(builder: _Builder, event: EventLike) -> None:
    families = {
        "run": builder.run,
        "evidence": builder.evidence,
        "model": builder.model,
        "proposal": builder.proposal,
        "policy": builder.policy,
        "decision": builder.decision,
        "event": builder.event,
        "request": builder.request,
        "wait": builder.wait,
        "operation": builder.operation,
        "attempt": builder.attempt,
        "probe": builder.probe,
        "case": builder.case,
        "process": builder.case,
        "reversal": builder.reversal,
    }
    handler = families.get(event.kind.partition(".")[0])
    if handler is None:
        builder._add("other", event)
    else:
        handler(event)


def _in_order(tracks: dict[str, _Track]) -> list[tuple[str, _Track]]:
    """Lanes with something on them; those of an operation directly under it, in the order they came up."""
    filled = [(key, track) for key, track in tracks.items() if track.spans or track.level == "group"]
    top = [(key, track) for key, track in filled if track.level != "under"]
    ordered: list[tuple[str, _Track]] = []
    for key, track in top:
        ordered.append((key, track))
        ordered += [(k, t) for k, t in filled if t.level == "under" and k.startswith(f"{key}:")]
    return ordered


def _bars(*, spans: Sequence[_Span], scale: Scale, end: dt.datetime) -> tuple[Bar, ...]:
    edges = [(scale.at(span.start), scale.at(span.end or end)) for span in spans]
    bars: list[Bar] = []
    for index, (span, (left, right)) in enumerate(zip(spans, edges, strict=True)):
        width, needed = max(right - left, 0.0), len(span.text) * LETTER + PADDING
        point = width < POINT
        taken = left + max(width, POINT)
        after = min([edge for edge, _ in edges[index + 1 :] if edge >= left] or [100.0])
        before = bars[-1].x + max(bars[-1].width, POINT) if bars else 0.0
        if bars and bars[-1].side == "after":
            before += len(bars[-1].text) * LETTER + PADDING
        side = ""
        if span.text:
            fits = {"in": width >= needed, "after": after - taken >= needed, "before": left - before >= needed}
            side = next((name for name, room in fits.items() if room), "")
        bars.append(
            Bar(
                x=left,
                width=0.0 if point else width,
                tone=span.tone,
                text=span.text,
                side=side,
                label=span.label,
                dashed=span.dashed,
                seq=span.seqs[-1] if span.seqs else span.shows,
                seqs=tuple(span.seqs),
                point=point,
                unsent=span.unsent,
            )
        )
    return tuple(bars)


def lay_out(
    *, events: Iterable[EventLike], now: dt.datetime | None = None, titles: Mapping[str, str] | None = None
) -> Trace | None:
    """Lanes for events in order of their numbers; None without any. `now` draws what is still open up to that time
    (give None for a finished run); `titles` are names of tools for the lanes of operations."""
    listed = list(events)
    if not listed:
        return None
    builder = _Builder(first=listed[0].at, titles=titles or {})
    for event in listed:
        _take(builder, event)
    end = max([event.at for event in listed] + ([now] if now else []))
    scale = Scale(moments=[event.at for event in listed] + [end])
    lanes = tuple(
        Lane(
            key=key,
            name=track.name,
            icon=track.icon,
            level=track.level,
            bars=_bars(spans=sorted(track.spans, key=lambda span: span.start), scale=scale, end=end),
        )
        for key, track in _in_order(builder.tracks)
    )
    return Trace(lanes=lanes, cuts=scale.cuts, ticks=scale.ticks)
