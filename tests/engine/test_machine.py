"""The histories of `history.py`, many of them; and proof that they notice when a rule is missing."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from agentops.steps import settling
from reconciliation import attempts, classification, findings, verdicts
from reconciliation.models import Operation
from reconciliation.services import answers, execute, lookups
from runs.tools.base import Contract, Repeat
from tests.architecture.test_edges import declared
from tests.engine.afterwards import WholeLife
from tests.engine.history import OPENINGS, SEEN_EDGES, History

EVERY_EDGE = declared("reconciliation", "Operation")
OFTEN = 50
PART = 30  # histories
PARTS = 12  # at the most; about half are enough


def play(seed: int, histories: int = PART) -> None:
    """So many random histories, the same ones for the same seed."""
    run_state_machine_as_test(
        hypothesis.seed(seed)(WholeLife),
        settings=settings(
            max_examples=histories,
            stateful_step_count=12,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_no_history_doubles_or_loses_an_effect(model: None) -> None:
    """However it goes; and each edge of the machine was taken often enough for that to mean something."""
    SEEN_EDGES.clear()
    for seed in range(PARTS):
        play(seed)
        if all(SEEN_EDGES[edge] >= OFTEN for edge in EVERY_EDGE):
            break
    print("taken:", {f"{source} to {target}": n for (source, target), n in sorted(SEEN_EDGES.items())})
    assert set(SEEN_EDGES) == EVERY_EDGE
    assert not {edge: SEEN_EDGES[edge] for edge in EVERY_EDGE if SEEN_EDGES[edge] < OFTEN}


# ---- every edge, by a history that is written out: chance would miss one now and then

AN_EDGE_EACH: list[tuple[Repeat, str]] = [
    *[(Repeat.BY_IDENTITY, opening) for opening in OPENINGS],
    (Repeat.ONCE, "never came"),  # proved undone
]


def test_every_edge_is_taken(model: None) -> None:
    SEEN_EDGES.clear()
    for repeat, opening in AN_EDGE_EACH:
        history = WholeLife()
        history.begin(repeat=repeat, opening=opening)
        history.check()
        history.teardown()
    assert set(SEEN_EDGES) == EVERY_EDGE


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


def _whatever_was_found(*, contract: Contract, attempts: Any, **_: Any) -> classification.Resend:
    return classification.Resend.NEW_EPOCH if len(attempts) < contract.max_attempts else classification.Resend.NO


def _nobody_wakes(*, operation: Operation) -> list[classification.Sent]:
    return [replace(one, can_wake=False) for one in SENT(operation=operation)]


def _the_last_answer_decides(*, earlier: Any, result: classification.Result, as_sent: bool) -> classification.Outcome:
    return AFTER(earlier=[], result=result, as_sent=as_sent)


SENT, AFTER = attempts.sent_attempts, classification.after_answer
ABSENCE = [(module, "absence_is_conclusive", _always(True)) for module in (lookups, findings, classification)]
RULE = [(module, name, _whatever_was_found) for module, name in ((settling, "resend"), (execute, "resend_rule"))]
WAKING = [(module, "sent_attempts", _nobody_wakes) for module in (lookups, settling, execute, verdicts)]
LAST = [(answers, "after_answer", _the_last_answer_decides)]
DOUBLE_OR_LOST = re.compile("two effects of one operation|and yet there is an effect|and yet one may come")
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


@pytest.mark.parametrize("changes", [RULE, ABSENCE], ids=["the resend rule", "the absence bound"])
def test_chance_notices_too(model: None, monkeypatch: pytest.MonkeyPatch, changes: list[Any]) -> None:
    """The random histories, as they are run above, find it as well when one of the two rules is missing."""
    for target, name, value in changes:
        monkeypatch.setattr(target, name, value)
    with pytest.raises(AssertionError, match=DOUBLE_OR_LOST):
        for seed in range(5 * PARTS):
            play(seed, histories=5)
