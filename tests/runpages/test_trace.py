"""The lanes: every event is on them once, positions keep the order of time, whatever the record looks like."""

import datetime as dt
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agentops.pages import story, strip, trace
from agentops.pages.timescale import WIDTH, Scale

START = dt.datetime(2026, 11, 17, 9, 2, 10, tzinfo=dt.UTC)
STATES = ["gathering", "deciding", "authorising", "awaiting_approval", "executing", "outcome_unknown", "completed"]
KINDS = [*story._TOLD, "operation.observed", "never.heard.of.it", "odd"]


@dataclass(frozen=True)
class Happened:
    seq: int
    at: dt.datetime
    kind: str
    data: dict[str, Any] = field(default_factory=dict)
    actor: str = "System"


def told(*rows: tuple[float, str, dict[str, Any]]) -> list[Happened]:
    return [Happened(n, START + dt.timedelta(seconds=s), kind, data) for n, (s, kind, data) in enumerate(rows, 1)]


seconds = st.one_of(st.just(0.0), st.floats(0.001, 5), st.floats(5, 40_000))
facts = st.fixed_dictionaries(
    {},
    optional={
        "operation": st.sampled_from(["o1", "o2"]),
        "request": st.sampled_from(["r1", "r2"]),
        "number": st.integers(1, 3),
        "case": st.sampled_from(["RC-1", 2]),
        "source": st.sampled_from(STATES),
        "target": st.sampled_from([*STATES, "succeeded", "unknown", "odd"]),
        "result": st.sampled_from(["done", "ambiguous", "odd"]),
        "finding": st.sampled_from(["found", "absent", "odd"]),
        "amount_minor": st.one_of(st.none(), st.integers(1, 10**12), st.just("many")),
        "currency": st.sampled_from(["USD", "JPY", "XXX", ""]),
        "pieces": st.one_of(st.lists(st.just({"title": "x", "version": "1"})), st.just([1, "two"])),
        "rules": st.lists(st.one_of(st.just("a"), st.just({"text": "b"}))),
    },
)
records = st.lists(st.tuples(seconds, st.sampled_from(KINDS), facts), min_size=1, max_size=60)


def built(rows: list[tuple[float, str, dict[str, Any]]]) -> list[Happened]:
    at, events = START, []
    for number, (step, kind, data) in enumerate(rows, 1):
        at += dt.timedelta(seconds=step)
        events.append(Happened(number, at, kind, data))
    return events


@settings(max_examples=150, deadline=None)
@given(rows=records, live=st.booleans())
def test_every_event_is_on_the_lanes_once_and_inside(rows: list[Any], live: bool) -> None:
    events = built(rows)
    now = events[-1].at + dt.timedelta(seconds=7) if live else None
    laid = trace.lay_out(events=events, now=now)
    assert laid is not None
    found = sorted(seq for lane in laid.lanes for bar in lane.bars for seq in bar.seqs)
    assert found == [event.seq for event in events]
    for lane in laid.lanes:
        assert lane.bars or lane.level == "group", f"an empty lane: {lane.name}"
        starts = [bar.x for bar in lane.bars]
        assert starts == sorted(starts)
        for bar in lane.bars:
            assert 0 <= bar.x <= WIDTH and bar.width >= 0 and bar.x + bar.width <= WIDTH + 1e-6
            assert 1 <= bar.seq <= len(events) and bar.label


@settings(max_examples=150, deadline=None)
@given(steps=st.lists(st.one_of(st.floats(0.001, 3), st.floats(100, 90_000)), min_size=1, max_size=80))
def test_the_axis_keeps_the_order_and_hides_no_time_silently(steps: list[float]) -> None:
    moments = [START]
    for step in steps:
        moments.append(moments[-1] + dt.timedelta(seconds=step))
    scale = Scale(moments=moments)
    xs = [scale.at(moment) for moment in moments]
    assert xs == sorted(xs) and xs[0] == 0 and abs(xs[-1] - WIDTH) < 1e-6
    assert len(set(xs)) == len(set(moments)), "two moments on one spot"
    for cut in scale.cuts:
        assert cut.seconds >= 2 and any(abs(cut.x - x) < 1e-9 for x in xs)
    middle = moments[0] + (moments[-1] - moments[0]) / 2
    assert xs[0] <= scale.at(middle) <= xs[-1]


def test_hours_of_waiting_are_folded_and_said() -> None:
    events = told(
        (0, "run.started", {}), (1, "run.state", {"target": "awaiting_approval"}),
        (14_461, "run.state", {"source": "awaiting_approval", "target": "executing"}), (14_466, "run.note", {}),
    )  # fmt: skip
    laid = trace.lay_out(events=events)
    assert laid is not None and [round(cut.seconds) for cut in laid.cuts] == [14_460]
    assert laid.cuts[0].width < 10


def test_a_window_in_the_middle_shows_what_the_run_was_before() -> None:
    events = told((0, "run.note", {}), (5, "run.state", {"source": "deciding", "target": "authorising"}))
    laid = trace.lay_out(events=events)
    assert laid is not None
    state = next(lane for lane in laid.lanes if lane.key == "state")
    assert state.bars[0].label == "Deciding"
    assert state.bars[0].seqs == () and state.bars[1].seqs == (2,)


def test_an_unknown_outcome_is_violet_and_never_red_or_green() -> None:
    events = told(
        (0, "operation.created", {"operation": "o", "tool": "billing.create_credit"}),
        (1, "attempt.opened", {"operation": "o", "number": 1}),
        (2, "operation.state", {"operation": "o", "source": "sending", "target": "unknown"}),
        (2, "attempt.closed", {"operation": "o", "number": 1, "result": "ambiguous"}),
    )
    laid = trace.lay_out(events=events)
    assert laid is not None
    tones = {lane.name: lane.bars[-1].tone for lane in laid.lanes}
    assert tones == {"Create credit": "violet", "Attempt 1": "violet"}
    assert [story.tell(event).tone for event in events[2:]] == ["violet", "violet"]


def test_what_was_never_sent_has_its_own_mark_and_what_was_read_has_not() -> None:
    opened = {"operation": "o", "number": 1}
    for result, unsent in (("not_sent", True), ("done", False)):
        laid = trace.lay_out(
            events=told(
                (0, "evidence.read", {"pieces": [{"title": "x", "version": "1"}]}),
                (1, "run.cancelled", {}),
                (2, "attempt.opened", opened),
                (3, "attempt.closed", {**opened, "result": result}),
            )
        )
        assert laid is not None and laid.any_unsent is unsent
        marked = [lane.name for lane in laid.lanes for bar in lane.bars if bar.unsent]
        assert marked == (["Attempt 1"] if unsent else [])


def test_a_long_text_is_cut_with_its_length_and_an_amount_never() -> None:
    event = Happened(1, START, "run.note", {"text": "x" * 50_000})
    said = story.tell(event)
    assert len(said.text) < 400 and "50,000 letters" in said.text
    money = story.tell(Happened(2, START, "proposal.made", {"amount_minor": 10**14, "currency": "USD", "tool": "a.b"}))
    assert "$1,000,000,000,000.00 USD" in money.lead


def test_who_did_it_is_told_for_people_only() -> None:
    class Person(str):
        kind = "person"

    by_maya = Happened(1, START, "request.approved", {"request": "r"}, Person("Maya"))
    assert story.tell(by_maya).text == "by Maya"
    assert story.tell(Happened(1, START, "request.expired", {"why": "nobody answered"})).text == "nobody answered"


def test_the_strip_counts_visits_and_time() -> None:
    events = told(
        (0, "run.started", {}), (2, "run.state", {"target": "gathering"}), (5, "run.state", {"target": "deciding"}),
        (6, "run.state", {"target": "gathering"}), (10, "run.state", {"target": "outcome_unknown"}),
    )  # fmt: skip
    now = START + dt.timedelta(seconds=70)
    nodes = {one.state: one for one in strip.nodes(events=events, current="outcome_unknown", now=now)}
    assert nodes["gathering"].said == "7 s · 2 times" and nodes["gathering"].tone == "green"
    assert nodes["outcome_unknown"].said == "1 min so far" and nodes["outcome_unknown"].current
    assert nodes["outcome_unknown"].tone == "violet" and nodes["executing"].tone == ""
