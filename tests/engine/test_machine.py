"""The histories of `history.py`, many of them; and proof that they would notice a missing rule."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from agentops.steps import settling
from agentops.steps.base import Next, Step
from approvals.services import policies
from reconciliation import attempts, classification
from reconciliation.models import Operation
from reconciliation.services import execute, settle
from runs import clock
from runs.services import principals
from tests.architecture.test_edges import declared
from tests.engine.history import SEEN_EDGES, TIME, TOOL, History

EXAMPLES = 80


@pytest.fixture
def model(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The product's clock is the model's, and its settling step opens attempts through the history at hand."""
    monkeypatch.setattr(clock, "now", TIME.now)

    def attempt(step: Step, proposal: Any, connector: Any, *, resend: classification.Resend) -> Next:
        connector._open(resend)
        return Next.GO_ON

    monkeypatch.setattr(settling, "attempt", attempt)
    document = {"rules": [{"id": "all", "effect": "allow", "text": "Everything is allowed", "when": "true"}]}
    policies.publish(
        slug="model", name="Model", tools=[TOOL], document=document, note="", publisher=principals.system()
    )


def play(examples: int) -> None:
    run_state_machine_as_test(
        History,
        settings=settings(
            max_examples=examples,
            stateful_step_count=20,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_no_history_doubles_or_loses_an_effect_and_every_edge_is_taken(model: None) -> None:
    SEEN_EDGES.clear()
    play(EXAMPLES)
    assert declared("reconciliation", "Operation") == SEEN_EDGES


def _nobody_wakes(*, operation: Operation) -> list[classification.Sent]:
    return [replace(one, can_wake=False) for one in attempts.sent_attempts(operation=operation)]


def _always(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


BROKEN: dict[str, list[tuple[Any, str, Any]]] = {
    "sent again without any rule": [
        (settling, "resend", _always(classification.Resend.NEW_EPOCH)),
        (execute, "resend_rule", _always(classification.Resend.NEW_EPOCH)),
    ],
    "absent as soon as nothing is found": [
        (settle, "absence_is_conclusive", _always(True)),
        (classification, "absence_is_conclusive", _always(True)),
    ],
    "no frozen sender ever wakes": [(one, "sent_attempts", _nobody_wakes) for one in (settle, settling, execute)],
}


@pytest.mark.parametrize("what", BROKEN)
def test_the_histories_find_out_when_a_rule_is_missing(model: None, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    for target, name, value in BROKEN[what]:
        monkeypatch.setattr(target, name, value)
    with pytest.raises(AssertionError):
        play(EXAMPLES * 5)
