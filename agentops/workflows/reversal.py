"""Reversal: one thing that a run of ours did is undone, by the action that its tool declares for it.

It is a plain workflow: what is to be done was worked out when it was proposed, and no model is asked. Its runs are
started by `agentops.undoing` alone.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import StringConstraints

from agentops.workflows.base import Card, Complete, Done, Draft, Facts, HandOver, Recovery, Refused, Row, Subject
from runs.actions import Action
from runs.money import Strict
from runs.tools.base import Reading
from runs.tools.registry import TOOLS, contract, reverser

STEP = "reversal"
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class ReversalInput(Strict):
    """`reversal` is the row that was proposed, `reference` what the other side calls what is undone, `effect` what the
    undoing tool is to be sent."""

    reversal: Name
    reference: Name
    tool: Name
    effect: dict[str, str]
    reason: str


class Reversal:
    """See `agentops.workflows.base.Workflow`."""

    name: ClassVar[str] = "reversal"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Reversal"
    tools: ClassVar[tuple[str, ...]] = tuple(name for name, one in TOOLS.items() if one.contract.only_reverses)
    Input: ClassVar[type[Strict]] = ReversalInput
    choices: ClassVar[tuple[type[Strict], ...]] = ()
    events: ClassVar[Mapping[str, type[Strict]]] = {}
    asks_again_when_rejected: ClassVar[bool] = False
    recovery: ClassVar[Recovery] = "forward"

    def subject(self, *, data: dict[str, Any]) -> Subject:
        """See Workflow."""
        about = reverser(data["tool"]).told(effect=data["effect"])
        return Subject(title=f"Reversal of {about.about} of {about.customer}"[:300], subject=data["reference"])

    def start_key(self, *, data: dict[str, Any]) -> str:
        """One run a proposal."""
        return str(data["reversal"])

    def gather(self, *, data: dict[str, Any]) -> list[Reading]:
        """What is to be undone, as it is now."""
        return reverser(data["tool"]).read(effect=data["effect"])

    def customer(self, *, facts: Facts) -> str:
        """Whose it is, as the action that is undone named them."""
        return next((str(one.content["account_name"]) for one in facts.values() if "account_name" in one.content), "")

    def view(self, *, data: dict[str, Any], facts: Facts, refusals: Sequence[str]) -> dict[str, Any]:
        """No model is asked."""
        return {}

    def judge(self, *, choice: Strict, data: dict[str, Any], facts: Facts) -> Refused:
        """No model is asked."""
        return Refused(code="not_a_choice", reason="There is nothing to choose in a reversal.")

    def follow(self, *, data: dict[str, Any], facts: Facts, done: Sequence[Done]) -> Draft | HandOver | Complete:
        """Undo it, unless it cannot be undone as things stand, which is a person's."""
        if done:
            known = "settled by an admin's evidence" if done[0].by_evidence else "confirmed by the other side"
            return Complete(f"{data['reference']} is reversed, {known}")
        tool = data["tool"]
        if why := reverser(tool).objection(effect=data["effect"], readings=facts, identity=""):
            return HandOver(code="not_reversible", reason=f"{why}; nothing was done")
        return Draft(
            step=STEP,
            action=Action(tool, contract(tool).version, data["effect"]),
            rests_on=tuple(sorted(facts)),
            rationale=data["reason"],
        )

    def objection(self, *, action: Action, facts: Facts, identity: str) -> str:
        """It may have been undone by somebody else meanwhile, or can no longer be."""
        return reverser(action.tool).objection(effect=action.effect, readings=facts, identity=identity)

    def variables(self, *, action: Action, facts: Facts) -> dict[str, Any]:
        """See Workflow."""
        known = ("account", "incident", "ticket", "currency")
        found: dict[str, Any] = {name: action.effect[name] for name in known if name in action.effect}
        if "amount_minor" in action.effect:
            found["amount_minor"] = int(action.effect["amount_minor"])
        return {**found, "tool": action.tool, "workflow": self.name, "step": STEP}

    def card(self, *, action: Action, facts: Facts) -> Card:
        """See Workflow."""
        told = reverser(action.tool).told(effect=action.effect)
        rows = tuple(Row(key=key, label=label, value=value) for key, label, value in told.rows)
        return Card(ask=told.ask, lead=told.lead, rows=rows)
