"""A workflow that credits several incidents one after the other, and then ends, or cannot go on."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import ConfigDict

from agentops.workflows.base import (
    Card,
    Done,
    Draft,
    Facts,
    Follow,
    HandOver,
    Judged,
    Recovery,
    Refused,
    Subject,
)
from agentops.workflows.service_credit_cards import credit_card
from runs.actions import Action
from runs.money import Strict
from runs.tools.base import Reading
from runs.tools.billing.contract import CREATE_CREDIT


class PairInput(Strict):
    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str
    effects: list[dict[str, str]]


class Pair:
    """See Workflow. Its input lists the credits; when they are made a person is needed."""

    name: ClassVar[str] = "pair"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Several credits"
    tools: ClassVar[tuple[str, ...]] = (CREATE_CREDIT.name,)
    Input: ClassVar[type[Strict]] = PairInput
    choices: ClassVar[tuple[type[Strict], ...]] = ()
    events: ClassVar[Mapping[str, type[Strict]]] = {}
    asks_again_when_rejected: ClassVar[bool] = False

    def __init__(self, recovery: Recovery) -> None:
        self.recovery: Recovery = recovery  # type: ignore[misc]  # two of them are made

    def subject(self, *, data: dict[str, Any]) -> Subject:
        return Subject(title=data["name"], subject=data["name"])

    def start_key(self, *, data: dict[str, Any]) -> str:
        return str(data["name"])

    def gather(self, *, data: dict[str, Any]) -> list[Reading]:
        return []

    def customer(self, *, facts: Facts) -> str:
        return ""

    def view(self, *, data: dict[str, Any], facts: Facts, refusals: Sequence[str]) -> dict[str, Any]:
        return {}

    def judge(self, *, choice: Strict, data: dict[str, Any], facts: Facts) -> Judged:
        return Refused(code="not_a_choice", reason="Nothing is to be chosen here.")

    def follow(self, *, data: dict[str, Any], facts: Facts, done: Sequence[Done]) -> Follow:
        made = len(done)
        if made == len(data["effects"]):
            return HandOver(code="ticket_gone", reason="what follows cannot be done")
        action = Action(CREATE_CREDIT.name, CREATE_CREDIT.version, data["effects"][made])
        return Draft(step=f"credit {made + 1}", action=action, rests_on=())

    def objection(self, *, action: Action, facts: Facts, identity: str) -> str:
        return ""

    def variables(self, *, action: Action, facts: Facts) -> dict[str, Any]:
        known = {"tool": action.tool, "workflow": self.name, "step": "credit", "month": "2026-10"}
        for name in ("account", "currency", "incident", "ticket"):
            known[name] = action.effect[name]
        amount = int(action.effect["amount_minor"])
        return {**known, "amount_minor": amount, "account_standing": "good", "incident_final": True}

    def card(self, *, action: Action, facts: Facts) -> Card:
        return credit_card(action=action, facts=facts)
