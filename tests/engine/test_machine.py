"""The histories of `history.py`, many of them; and proof that they notice when a rule is missing."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from agentops.steps import settling
from reconciliation import attempts, classification, findings, verdicts
from reconciliation.models import Operation
from reconciliation.services import execute, settle
from runs.tools.base import Repeat
from tests.architecture.test_edges import declared
from tests.engine.history import SEEN_EDGES, History

COMMON = {("authorised", "sending"), ("sending", "unknown"), ("sending", "succeeded"), ("unknown", "succeeded")}


def test_no_history_doubles_or_loses_an_effect(model: None) -> None:
    SEEN_EDGES.clear()
    run_state_machine_as_test(
        History,
        settings=settings(
            max_examples=20,
            stateful_step_count=20,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert COMMON <= SEEN_EDGES, "these histories hardly did anything"


# ---- every edge, by a history that is written out: chance would miss one now and then

R = classification.Result
AN_EDGE_EACH: list[tuple[Repeat, list[tuple[str, dict[str, Any]]]]] = [
    (Repeat.BY_IDENTITY, [("a_call_is_answered", {"lag": 0.0, "at_once": True})]),
    (Repeat.BY_IDENTITY, [("a_call_is_refused", {"result": R.REFUSED, "at_once": True})]),
    (Repeat.BY_IDENTITY, [("a_call_is_refused", {"result": R.OVERLOADED, "at_once": True}), ("it_is_given_up", {})]),
    (
        Repeat.ONCE,
        [
            ("a_calls_answer_is_lost", {"how": "made", "lag": 0.0, "at_once": True}),
            ("it_is_asked", {"reachable": True}),
        ],
    ),
    (
        Repeat.BY_IDENTITY,  # sent again
        [
            ("a_calls_answer_is_lost", {"how": "dropped", "lag": 0.0, "at_once": True}),
            ("it_is_asked", {"reachable": True}),
            ("a_call_is_answered", {"lag": 0.0, "at_once": True}),
        ],
    ),
    (
        Repeat.ONCE,  # proved undone
        [
            ("a_calls_answer_is_lost", {"how": "dropped", "lag": 0.0, "at_once": True}),
            ("it_is_asked", {"reachable": True, "after": 40}),
        ],
    ),
    (
        Repeat.ONCE,
        [("it_is_accepted_for_later", {}), ("a_late_call_arrives", {"lag": 0.0}), ("it_is_asked", {"reachable": True})],
    ),
    (Repeat.ONCE, [("it_is_accepted_for_later", {})]),  # and never done: a person settles it in the end
]


def test_every_edge_is_taken(model: None) -> None:
    SEEN_EDGES.clear()
    for repeat, steps in AN_EDGE_EACH:
        history = History()
        history.begin(repeat=repeat)
        for name, given in steps:
            getattr(history, name)(**given)
            history.check()
        history.teardown()
    by_people = {("succeeded", "failed"), ("failed", "succeeded")}  # a person's entry opens these, see tests/desk
    by_another = {("succeeded", "compensated")}  # an operation of another run, see tests/undoing
    assert declared("reconciliation", "Operation") - by_people - by_another == SEEN_EDGES


# ---- the same rules and invariants, in the histories that each rule is there for


def lost_and_not_yet_to_be_seen(history: History, repeat: Repeat) -> None:
    """The call worked, its answer was lost, and a lookup does not show the effect yet."""
    history.begin(repeat=repeat)
    history.a_calls_answer_is_lost(how="made", lag=0.9, at_once=True)
    history.it_is_asked(reachable=True)


def then_called_again(history: History, repeat: Repeat) -> None:
    """And whatever was opened since is called as well."""
    lost_and_not_yet_to_be_seen(history, repeat)
    if any(one.packet is None for one in history.senders):
        history.a_call_is_answered(lag=0.0, at_once=True)


def frozen_before_its_call(history: History, repeat: Repeat) -> None:
    """The worker looked at the clock, and was frozen before it called."""
    history.begin(repeat=repeat)
    history.a_sender_freezes_before_its_call()
    history.another_worker_takes_over()
    for _ in range(3):
        history.it_is_asked(reachable=True, after=40)


def refused_the_second_time(history: History, repeat: Repeat) -> None:
    """The first call worked and its answer was lost; the second, with the same key, is refused."""
    lost_and_not_yet_to_be_seen(history, repeat)
    history.a_call_is_refused(result=classification.Result.REFUSED, at_once=True)


def _always(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


def _nobody_wakes(*, operation: Operation) -> list[classification.Sent]:
    return [replace(one, can_wake=False) for one in SENT(operation=operation)]


def _the_last_answer_decides(*, earlier: Any, result: classification.Result, as_sent: bool) -> classification.Outcome:
    return AFTER(earlier=[], result=result, as_sent=as_sent)


SENT, AFTER = attempts.sent_attempts, classification.after_answer
ABSENCE = [(module, "absence_is_conclusive", _always(True)) for module in (settle, findings, classification)]
RULE = [
    (module, name, _always(classification.Resend.NEW_EPOCH))
    for module, name in ((settling, "resend"), (execute, "resend_rule"))
]
WAKING = [(module, "sent_attempts", _nobody_wakes) for module in (settle, settling, execute, verdicts)]
LAST = [(settle, "after_answer", _the_last_answer_decides)]
MISSING: dict[str, tuple[Callable[[History, Repeat], None], Repeat, list[Any], str]] = {
    "the resend rule": (then_called_again, Repeat.LOOK_UP_FIRST, RULE, "two effects of one operation"),
    "the absence bound": (lost_and_not_yet_to_be_seen, Repeat.ONCE, ABSENCE, "and yet there is an effect"),
    "the absence bound, sent again": (then_called_again, Repeat.LOOK_UP_FIRST, ABSENCE, "two effects of one operation"),
    "that a frozen sender may wake": (frozen_before_its_call, Repeat.ONCE, WAKING, "and yet one may come"),
    "that every attempt counts": (refused_the_second_time, Repeat.BY_IDENTITY, LAST, "and yet there is an effect"),
}


@pytest.mark.parametrize("rule", MISSING)
def test_a_rule_that_is_missing_is_noticed(model: None, monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    play, repeat, changes, told = MISSING[rule]
    whole = History()
    play(whole, repeat)
    whole.check()  # with the rule nothing is wrong, now and in the end
    whole.teardown()

    for target, name, value in changes:
        monkeypatch.setattr(target, name, value)
    broken = History()
    play(broken, repeat)
    with pytest.raises(AssertionError, match=told):
        broken.check()
