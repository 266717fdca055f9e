"""The plain workflow: read a fact, propose, ask a person, carry it out, finish. Its parts do nothing, in no time."""

import datetime as dt
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar

from agentops.workflows.base import (
    AskAgent,
    Card,
    Complete,
    Done,
    Draft,
    Facts,
    HandOver,
    Recovery,
    Refused,
    Row,
    Subject,
)
from agentops.workflows.registry import WORKFLOWS
from approvals.seed_policies import SeedPolicy
from runs.actions import Action
from runs.money import Strict
from runs.tools.base import Contract, Lookup, Reading, Record, Repeat
from runs.tools.http import Connection
from runs.tools.registry import LEDGERS, SYSTEMS, TOOLS

NAME = "plain"
NOTE = "x" * 100


class NoteEffect(Strict):
    item: str
    note: str


NOTE_CONTRACT = Contract(
    name="plain.note",
    version="1",
    system="plain",
    title="Keep a note",
    effect=NoteEffect,
    repeat=Repeat.BY_IDENTITY,
    retention=dt.timedelta(days=1),
    settling=dt.timedelta(seconds=1),
    call_limit=dt.timedelta(seconds=5),
    lookup_is_conclusive=True,
    precondition="Nothing is protected.",
    undo="There is nothing to undo.",
    touches="nothing",
    business_key=lambda effect: f"note/{effect['item']}",
)


class KeepNote:
    """Succeeds at once."""

    contract: ClassVar[Contract] = NOTE_CONTRACT

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def send(self, *, effect: dict[str, str], identity: str, wire_key: str) -> Record:
        """See `runs.tools.base.Tool`."""
        return Record(reference=identity.rpartition("/")[2], identity=identity)

    def look_up(self, *, effect: dict[str, str], identity: str) -> Lookup:
        """Never asked, since every call is answered."""
        return Lookup(records=(), pages=1)


class PlainInput(Strict):
    item: str


class Plain:
    """See `agentops.workflows.base.Workflow`."""

    name: ClassVar[str] = NAME
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Plain work"
    tools: ClassVar[tuple[str, ...]] = (NOTE_CONTRACT.name,)
    Input: ClassVar[type[Strict]] = PlainInput
    choices: ClassVar[tuple[type[Strict], ...]] = ()
    events: ClassVar[Mapping[str, type[Strict]]] = {}
    asks_again_when_rejected: ClassVar[bool] = False
    recovery: ClassVar[Recovery] = "forward"

    def subject(self, *, data: dict[str, Any]) -> Subject:
        """See Workflow."""
        return Subject(title=f"Plain work on {data['item']}", subject=data["item"])

    def start_key(self, *, data: dict[str, Any]) -> str:
        """See Workflow."""
        return str(data["item"])

    def gather(self, *, data: dict[str, Any]) -> list[Reading]:
        """One small fact."""
        return [
            Reading(
                kind="item",
                source="plain",
                locator=data["item"],
                version="1",
                title=f"Item {data['item']}",
                summary="As it always is",
                authoritative=True,
                untrusted=False,
                content={"item": data["item"], "note": NOTE},
            )
        ]

    def customer(self, *, facts: Facts) -> str:
        """Nobody's."""
        return ""

    def view(self, *, data: dict[str, Any], facts: Facts, refusals: Sequence[str]) -> dict[str, Any]:
        """No model is asked."""
        return {}

    def judge(self, *, choice: Strict, data: dict[str, Any], facts: Facts) -> Draft | Refused | HandOver | Complete:
        """No choice is offered."""
        return Refused(code="not_a_choice", reason="Nothing is to be chosen here.")

    def follow(
        self, *, data: dict[str, Any], facts: Facts, done: Sequence[Done]
    ) -> Draft | AskAgent | HandOver | Complete:
        """The note, then the end."""
        if done:
            return Complete("The note is kept")
        action = Action(NOTE_CONTRACT.name, NOTE_CONTRACT.version, {"item": data["item"], "note": NOTE})
        return Draft(step="note", action=action, rests_on=("item",))

    def objection(self, *, action: Action, facts: Facts, identity: str) -> str:
        """Nothing speaks against it."""
        return ""

    def variables(self, *, action: Action, facts: Facts) -> dict[str, Any]:
        """See Workflow."""
        return {"tool": action.tool, "workflow": self.name, "step": "note"}

    def card(self, *, action: Action, facts: Facts) -> Card:
        """See Workflow."""
        rows = tuple(Row(key=key, label=key.title(), value=value) for key, value in action.effect.items())
        return Card(ask=f"Keep a note on {action.effect['item']}", lead="Nothing happens.", rows=rows)


POLICY = SeedPolicy(
    slug="plain",
    name="Plain work",
    tools=(NOTE_CONTRACT.name,),
    document={
        "rules": [
            {
                "id": "manager",
                "effect": "ask",
                "text": "Notes need a manager",
                "when": "true",
                "ask": {"group": "manager", "quorum": 1, "respond_within_minutes": 10080, "valid_for_minutes": 60},
            }
        ]
    },
    note="For measuring.",
)


def register() -> None:
    WORKFLOWS[NAME] = {"1": Plain()}
    TOOLS[NOTE_CONTRACT.name] = KeepNote
    SYSTEMS["plain"] = SYSTEMS["billing"]
    LEDGERS["plain"] = import_module("agentops.bench.listed").Notes
