"""What a workflow is: which facts to read, what may be chosen, what follows, and how an action is shown.

A workflow holds no state and writes nothing. The engine calls it with stored facts, so the same facts always give the
same answer, on any worker.
"""

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from runs.actions import Action
from runs.money import Money, Strict


class Fact(Protocol):
    """A piece of evidence as workflows see it: a fresh `Reading` or a stored `Evidence` alike."""

    @property
    def kind(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def locator(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def authoritative(self) -> bool: ...
    @property
    def content(self) -> dict[str, Any]: ...


Facts = Mapping[str, Fact]  # by kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a run is about, in words for lists: `title` a phrase, `subject` the number it has elsewhere."""

    title: str
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An action ready to be stored as a proposal. `rests_on` names the kinds of facts whose change voids a decision;
    `workings` is how the system worked the amount out (JSON-like, no floats); `step` what the action is for."""

    step: str
    action: Action
    rests_on: tuple[str, ...]
    workings: dict[str, Any] = field(default_factory=dict)
    rationale: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The choice is not acceptable; `reason` is written for whoever chose, who may choose again."""

    code: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOver:
    """A person has to go on; `code` is stable, `reason` a sentence for that person."""

    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class AskAgent:
    """Nothing follows by itself: the agent is asked."""


@dataclass(frozen=True, slots=True)
class Complete:
    """Everything meant is done; `outcome` says in a sentence what came of it."""

    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """`after` is elapsed time from the moment the wait begins."""

    after: dt.timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """`name` is one of the workflow's `events`."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedRun:
    """Another run's end; that run is started for this wait, once. `data` is its workflow's input."""

    workflow: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherRun:
    """The end of a run that exists already."""

    run_id: uuid.UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitFor:
    """The run waits, holding nothing, and then reads its facts again, with what came of it as the fact of kind `key`.

    Its content has `result`: passed (timer), came (with `payload`), ended (with `run`, `state`, `outcome`), or late
    when `within` was over first: then the workflow says what follows, as always. A run waits once for each key."""

    key: str
    on: Timer | Event | StartedRun | OtherRun
    within: dt.timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """An action of this run that the other side has recorded. `effect` is what was sent; `real_minor` the amount that
    was really recorded (None where there is none), which may be another. `by_evidence`: an admin settled it by
    evidence, so the other side has not confirmed it to us. `reversed`: it was undone since."""

    step: str
    tool: str
    effect: dict[str, str]
    reference: str
    at: dt.datetime
    real_minor: int | None
    by_evidence: bool
    reversed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A bound label and value of the decision page, as displayed; `key` is stable, for comparing two requests."""

    key: str
    label: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """How an action is put to a person: `ask` one sentence, `rows` everything bound, `lead` what will happen."""

    ask: str
    lead: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What narrows a tool for one run: `only` these values of policy variables, where the condition `when` holds, and
    for so long after the start. What is left out narrows nothing."""

    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    when: str = ""
    within: dt.timedelta | None = None


@runtime_checkable
class Narrowed(Protocol):
    """A workflow whose runs are granted less than its tools can do."""

    def grants(self, *, data: dict[str, Any]) -> Mapping[str, Grant]:
        """By tool, from the validated input alone. A tool that is not named is granted as it is."""
        ...


Judged = Draft | Refused | HandOver | Complete | WaitFor
Follow = Draft | AskAgent | HandOver | Complete | WaitFor


# of a run that a person closes as failed: what it did stands and is finished by people, or is proposed to be undone
Recovery = Literal["forward", "backward"]


class Workflow(Protocol):
    """A literal entry of `agentops.workflows.registry.WORKFLOWS`. Versions never change once runs have used them."""

    name: ClassVar[str]
    version: ClassVar[str]
    title: ClassVar[str]
    tools: ClassVar[tuple[str, ...]]  # the capabilities its runs are granted
    Input: ClassVar[type[Strict]]
    choices: ClassVar[tuple[type[Strict], ...]]  # what the agent may choose; empty for a plain workflow
    events: ClassVar[Mapping[str, type[Strict]]]  # what its runs can be told from outside, with each payload's shape
    asks_again_when_rejected: ClassVar[bool]
    recovery: ClassVar[Recovery]

    def subject(self, *, data: dict[str, Any]) -> Subject:
        """From the validated input alone, before anything is read."""
        ...

    def start_key(self, *, data: dict[str, Any]) -> str:
        """What makes a run of this input the same run, for starters that have no event id of their own."""
        ...

    def gather(self, *, data: dict[str, Any]) -> list[Any]:
        """Read every fact (list of `runs.tools.base.Reading`); no writes. Raises Unreachable or NoSuchThing."""
        ...

    def customer(self, *, facts: Facts) -> str:
        """Whose run it is, for lists and search; empty when nobody's."""
        ...

    def view(self, *, data: dict[str, Any], facts: Facts, refusals: Sequence[str]) -> dict[str, Any]:
        """What the model sees: JSON-like, untrusted texts marked as such and bounded."""
        ...

    def judge(self, *, choice: Strict, data: dict[str, Any], facts: Facts) -> Judged:
        """Validate the agent's choice against the facts; amounts are worked out here, never taken over."""
        ...

    def follow(self, *, data: dict[str, Any], facts: Facts, done: Sequence[Done]) -> Follow:
        """What comes next, given what is done so far (nothing, at first)."""
        ...

    def objection(self, *, action: Action, facts: Facts, identity: str) -> str:
        """Why this action must not be sent on these fresh facts although it was allowed, as a sentence; else empty.

        Asked before every call, also one that repeats a call whose outcome is not known: what carries the action's own
        `identity` among the facts is no objection, for the lookup by identity is what speaks about it."""
        ...

    def variables(self, *, action: Action, facts: Facts) -> dict[str, Any]:
        """The policy's variables (see `approvals.rules.VARIABLES`), from normalised action and facts."""
        ...

    def card(self, *, action: Action, facts: Facts) -> Card:
        """How this action is put to a person."""
        ...


@runtime_checkable
class TakesAnotherAmount(Protocol):
    """A workflow whose actions a person may propose with another amount while they are asked about."""

    def another_amount(self, *, action: Action, money: Money, facts: Facts) -> Draft | Refused:
        """The same action at `money`, which is in its currency, judged against the facts as strictly as the agent's."""
        ...
