"""Workflows that only tests and the documents know, put where the product looks for its own."""

import datetime as dt
import sys
import types
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import ConfigDict

from agentops.workflows.base import (
    Card,
    Complete,
    Done,
    Event,
    Facts,
    Follow,
    Judged,
    OtherRun,
    Recovery,
    Refused,
    StartedRun,
    Subject,
    Timer,
    WaitFor,
)
from agentops.workflows.registry import WORKFLOWS
from runs.actions import Action
from runs.money import Strict
from runs.tools.base import Reading
from runs.tools.registry import TOOLS
from tests.docs.examples import DOCUMENTS, blocks
from tests.engine.quick import short


class ScriptedInput(Strict):
    """`waits` are WaitFor's parts as plain data: key, one of timer, event, start or run, and within; times in ms."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str
    waits: list[dict[str, Any]]


class Paid(Strict):
    amount_minor: str
    note: str = ""


class Scripted:
    """Waits for what its input lists, one after the other, and ends with what came of each."""

    name: ClassVar[str] = "scripted"
    title: ClassVar[str] = "Scripted"
    tools: ClassVar[tuple[str, ...]] = ()
    Input: ClassVar[type[Strict]] = ScriptedInput
    choices: ClassVar[tuple[type[Strict], ...]] = ()
    events: ClassVar[Mapping[str, type[Strict]]] = {"paid": Paid}
    asks_again_when_rejected: ClassVar[bool] = False
    recovery: ClassVar[Recovery] = "forward"

    def __init__(self, version: str) -> None:
        self.version = version

    def subject(self, *, data: dict[str, Any]) -> Subject:
        return Subject(title=f"Scripted {data['name']}", subject=data["name"])

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
        for one in data["waits"]:
            if one["key"] not in facts or one.get("again"):
                within = None if "within" not in one else dt.timedelta(milliseconds=one["within"])
                return WaitFor(key=one["key"], on=_what(one), within=within)
        told = ", ".join(f"{one['key']} {facts[one['key']].content['result']}" for one in data["waits"])
        return Complete(f"v{self.version}: {told or 'nothing'}")

    def objection(self, *, action: Action, facts: Facts, identity: str) -> str:
        return ""

    def variables(self, *, action: Action, facts: Facts) -> dict[str, Any]:
        return {}

    def card(self, *, action: Action, facts: Facts) -> Card:
        return Card(ask="", lead="", rows=())


def _what(one: dict[str, Any]) -> Timer | Event | StartedRun | OtherRun:
    if "timer" in one:
        return Timer(after=dt.timedelta(milliseconds=one["timer"]))
    if "event" in one:
        return Event(name=one["event"])
    if "start" in one:
        return StartedRun(workflow="scripted", data=one["start"])
    return OtherRun(run_id=uuid.UUID(one["run"]))


def documented() -> dict[str, Any]:
    """The documents' modules, imported as if they stood where the documents put them; by name."""
    found = {}
    for block in (one for document in DOCUMENTS for one in blocks(document) if not one.below):
        name = block.path.removesuffix(".py").replace("/", ".")
        if name not in sys.modules:
            sys.modules[name] = module = types.ModuleType(name)
            exec(compile(block.text, block.path, "exec"), module.__dict__)  # our own documents
        found[name] = sys.modules[name]
    return found


def entries() -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Tools and workflows by name, as the registries hold them."""
    modules = documented()
    comment = modules["runs.tools.helpdesk.comment"].AddComment
    comment.contract = replace(comment.contract, **short())
    return {comment.contract.name: comment}, {
        "status_note": {"1": modules["agentops.workflows.status_note"].StatusNote()},
        "follow_up": {"1": modules["agentops.workflows.follow_up"].FollowUp()},
        "scripted": {"1": Scripted("1"), "2": Scripted("2")},
    }


def learn(*, scripted: Sequence[str] = ("1", "2")) -> None:
    """Know all of them for good, of `scripted` these versions: in a process that ends with its work."""
    tools, workflows = entries()
    TOOLS.update(tools)
    WORKFLOWS.update(workflows)
    WORKFLOWS["scripted"] = {version: workflows["scripted"][version] for version in scripted}
