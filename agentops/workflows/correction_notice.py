"""Correction notice: what the customer was told turned out wrong, so a reply that says so is drafted. No model takes
part; a person at the help desk reads and sends the draft."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import StringConstraints

from agentops.workflows.base import Card, Complete, Done, Draft, Facts, Follow, Judged, Recovery, Refused, Subject
from agentops.workflows.service_credit_cards import reply_card
from runs.actions import Action
from runs.money import Strict
from runs.tools.base import Reading
from runs.tools.helpdesk.contract import DRAFT_REPLY, Id
from runs.tools.helpdesk.sources import read_ticket
from runs.tools.registry import connection


class CorrectionNoticeInput(Strict):
    case: Annotated[str, StringConstraints(pattern=r"^RC-[0-9]{1,18}$")]
    ticket: Id
    subject: Annotated[str, StringConstraints(min_length=1, max_length=150)]
    body: Annotated[str, StringConstraints(min_length=1, max_length=10_000)]


class CorrectionNotice:
    """See `agentops.workflows.base.Workflow`."""

    name: ClassVar[str] = "correction_notice"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Correction notice"
    tools: ClassVar[tuple[str, ...]] = (DRAFT_REPLY.name,)
    Input: ClassVar[type[Strict]] = CorrectionNoticeInput
    choices: ClassVar[tuple[type[Strict], ...]] = ()
    events: ClassVar[Mapping[str, type[Strict]]] = {}
    asks_again_when_rejected: ClassVar[bool] = False
    recovery: ClassVar[Recovery] = "forward"

    def subject(self, *, data: dict[str, Any]) -> Subject:
        """See Workflow."""
        return Subject(title=f"Correction {data['case']} for ticket {data['ticket']}", subject=data["ticket"])

    def start_key(self, *, data: dict[str, Any]) -> str:
        """One run for each correction's case."""
        return f"{self.name}/{data['case']}"

    def gather(self, *, data: dict[str, Any]) -> list[Reading]:
        """The ticket, which has to exist."""
        return [read_ticket(connection=connection("helpdesk"), ticket=data["ticket"])]

    def customer(self, *, facts: Facts) -> str:
        """The account's number: no more is read here."""
        return str(facts["ticket"].content["account"]) if "ticket" in facts else ""

    def view(self, *, data: dict[str, Any], facts: Facts, refusals: Sequence[str]) -> dict[str, Any]:
        """Nothing: no model is asked."""
        return {}

    def judge(self, *, choice: Strict, data: dict[str, Any], facts: Facts) -> Judged:
        """No choice is offered, so none is acceptable."""
        return Refused(code="not_a_choice", reason="Nothing is to be chosen here.")

    def follow(self, *, data: dict[str, Any], facts: Facts, done: Sequence[Done]) -> Follow:
        """The draft, and then the end."""
        if done:
            return Complete(f"Reply {done[-1].reference} about {data['case']} is drafted on ticket {data['ticket']}")
        reply = {name: data[name] for name in ("ticket", "subject", "body")}
        return Draft(step="draft_reply", action=Action(DRAFT_REPLY.name, DRAFT_REPLY.version, reply), rests_on=())

    def objection(self, *, action: Action, facts: Facts, identity: str) -> str:
        """Nothing speaks against a draft."""
        return ""

    def variables(self, *, action: Action, facts: Facts) -> dict[str, Any]:
        """See Workflow."""
        known: dict[str, Any] = {"tool": action.tool, "workflow": self.name, "step": "draft_reply"}
        known["ticket"] = action.effect["ticket"]
        if "ticket" in facts:
            known["account"] = facts["ticket"].content["account"]
        return known

    def card(self, *, action: Action, facts: Facts) -> Card:
        """See Workflow."""
        return reply_card(action=action)
