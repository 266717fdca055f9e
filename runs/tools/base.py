"""The port to the outside: what a tool declares, what a sender may answer, what a lookup may say.

A tool is one effect on one system. Its contract is declared once and shown on pages; its connector sends and looks
up. A source only reads. Neither knows about runs, approvals or the database.
"""

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Protocol

from runs.money import Money, Strict

LONGEST_NAME = 200  # of what outsiders call a thing of theirs; such names are kept whole, never cut


class Repeat(StrEnum):
    """May an operation whose outcome is unknown be sent again?"""

    BY_IDENTITY = "repeatable by identity"  # the receiver answers the same wire key with the first result
    LOOK_UP_FIRST = "looked up first"  # only after a conclusive lookup found nothing
    ONCE = "once only"  # never; a person settles it


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How many calls the receiver takes: `calls` per `per`, evenly spaced, of which `burst` may come at once. Declare a
    little less than it allows: what we space evenly arrives a little unevenly."""

    calls: int
    per: dt.timedelta
    burst: int = 1

    def __post_init__(self) -> None:
        if self.calls < 1 or self.burst < 1 or self.per <= dt.timedelta(0):
            raise ValueError("a rate is at least one call in a positive time, and a burst is at least one call")

    @property
    def spacing(self) -> dt.timedelta:
        return self.per / self.calls

    def __str__(self) -> str:
        seconds = self.per.total_seconds()
        calls = "1 call" if self.calls == 1 else f"{self.calls} calls"
        return f"{calls} per {'second' if seconds == 1 else f'{seconds:g} s'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """An effect that stands, as it was sent and as the other side has it: `reference` is their name for it, `record`
    what they showed of it last (empty if they never did), `minor` the amount that was really recorded."""

    identity: str
    effect: dict[str, str]
    reference: str
    minor: int | None
    record: dict[str, Any]


class CannotReverse(Exception):
    """This very effect cannot be undone; the message says why, as a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compensation:
    """Backward recovery: the effect of the tool `tool` (one of the same system, declared as `only_reverses`) undoes
    this one. `effect` works its arguments out of what was made, or raises CannotReverse; it reads nothing."""

    tool: str
    effect: Callable[[Made], dict[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardOnly:
    """Nothing is undone here: what went wrong is put right by going on. `why` says so in a sentence."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """What a tool promises. Times are for the receiver: `retention` how long it honours a wire key, `settling` how
    long after a call a lookup may still miss its effect, `call_limit` the total time of one call.

    `rate`: what all workers together keep to. `resources`: names, in words of at most 250 characters, of what the
    effect touches ("account ACC-1"); two operations that name the same one are never in flight at once, not confirmed
    included. `reversal`: how an effect is undone by a new action of its own, which is proposed and approved like any
    other, or that it never is. `only_reverses`: this tool is one that undoes, and acts in no other run."""

    name: str
    version: str
    system: str
    title: str
    effect: type[Strict]
    repeat: Repeat
    retention: dt.timedelta
    settling: dt.timedelta
    call_limit: dt.timedelta
    lookup_is_conclusive: bool
    precondition: str  # what protects against a changed document, in words for the decision page
    undo: str  # whether and how it can be undone, in words
    touches: str  # what it changes, in words
    business_key: Callable[[dict[str, str]], str]  # one effect per such key, whatever is proposed
    money: Callable[[dict[str, str]], Money | None] = lambda _effect: None
    precondition_field: str = ""  # the effect's field that the receiver itself compares, and refuses when it moved on
    # within what time the outcome of what the receiver only took on is known; None: its answer is the outcome
    final_within: dt.timedelta | None = None
    max_attempts: int = 6
    max_probes: int = 8
    rate: Rate | None = None
    resources: Callable[[dict[str, str]], tuple[str, ...]] = lambda _effect: ()
    reversal: Compensation | ForwardOnly = ForwardOnly(why="Its tool declares no action that would undo it.")
    only_reverses: bool = False


# ---- what sending may say: each class says what is KNOWN about the effect


class ToolError(Exception):
    """Base; `detail` is for people, `raw` what came over the wire (bounded)."""

    def __init__(self, detail: str, *, raw: dict[str, Any] | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.raw = raw or {}


class NotSent(ToolError):
    """Nothing reached the other side: no connection was made."""


class Refused(ToolError):
    """The other side said no to THIS call, with proof that this call had no effect. `code` is stable."""

    def __init__(self, detail: str, *, code: str, raw: dict[str, Any] | None = None) -> None:
        super().__init__(detail, raw=raw)
        self.code = code


class Overloaded(ToolError):
    """Leave it alone: the call had no effect and the other side wants to be asked later."""

    def __init__(self, detail: str, *, retry_after: str | None = None, raw: dict[str, Any] | None = None) -> None:
        super().__init__(detail, raw=raw)
        self.retry_after = retry_after


class Ambiguous(ToolError):
    """It may have happened: no answer, a server error, an answer nobody can read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What the other side has recorded for an operation. `reference` is theirs, `also` what else they call the same
    record (an id beside a number); `mismatch` names what differs from what was sent (field → (sent, recorded)), empty
    when it is the very effect asked for. `void`: they have undone it since, so nothing of it stands. `pending`: they
    have only taken it on, and whether it stands is still to come."""

    reference: str
    identity: str
    also: tuple[str, ...] = ()
    at: dt.datetime | None = None
    void: bool = False
    pending: bool = False
    mismatch: dict[str, tuple[str, str]] = field(default_factory=dict)
    raw: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if any(len(one) > LONGEST_NAME for one in (self.reference, *self.also)):
            raise ValueError(f"a record is named by more than {LONGEST_NAME} characters")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """The answer to "what have you recorded under this identity?": all records found, over all pages."""

    records: tuple[Record, ...]
    pages: int
    raw: dict[str, Any] = field(default_factory=dict)


class Unreachable(Exception):
    """A read failed. It says nothing about what exists. `dependency` names the system in the registry and `problem`
    says how the call ended, where the system itself is what failed or asked for time."""

    def __init__(self, detail: str, *, dependency: str = "", problem: ToolError | None = None) -> None:
        super().__init__(detail)
        self.dependency = dependency
        self.problem = problem


class Tool(Protocol):
    """One effect. Connectors keep no state and retry nothing: retrying is the execution layer's."""

    contract: ClassVar[Contract]

    def send(self, *, effect: dict[str, str], identity: str, wire_key: str) -> Record:
        """Make the effect once. Raises NotSent, Refused, Overloaded or Ambiguous; all else is ambiguous."""
        ...

    def look_up(self, *, effect: dict[str, str], identity: str) -> Lookup:
        """Every record the system of record holds under the identity. Raises Unreachable."""
        ...


class Reverser(Tool, Protocol):
    """A tool that undoes. What it undoes is looked at before people are asked, and again just before the call."""

    def read(self, *, effect: dict[str, str]) -> "list[Reading]":
        """What the effect is about, as it is now. Raises Unreachable, NoSuchThing."""
        ...

    def objection(self, *, effect: dict[str, str], readings: "Mapping[str, Any]", identity: str) -> str:
        """Why it cannot be undone as things stand, as a sentence, or nothing. `readings` have `content`, by kind; what
        was done under this `identity` is no objection."""
        ...

    def told(self, *, effect: dict[str, str]) -> "Told":
        """How it is put to a person."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """`ask` one sentence in the imperative, `lead` what will happen, `rows` everything bound as (key, label, value);
    `about` names what is undone in a few words, `customer` whose it is."""

    ask: str
    lead: str
    about: str
    customer: str
    rows: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One thing that the other side has recorded, whoever caused it. `key` is its id there, `reference` what people
    call it; `identity` is empty where it carries none; `amount_minor` is zero or more. `void`: nothing of it stands."""

    key: str
    reference: str
    identity: str
    account: str
    amount_minor: int
    currency: str
    at: dt.datetime
    void: bool = False
    raw: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage:
    """`cursor` says where the next page begins; empty when this is the last."""

    lines: tuple[Listed, ...]
    cursor: str


class Ledger(Protocol):
    """All that a system has recorded of one sort, whoever caused it. `title` is what the sort is called, `tools` the
    tools whose effects are of that sort, `settling` how long a record may take to appear in the list."""

    title: ClassVar[str]
    tools: ClassVar[tuple[str, ...]]
    settling: ClassVar[dt.timedelta]

    def list_recorded(self, *, since: dt.datetime, until: dt.datetime, cursor: str) -> ListPage:
        """One page of what was recorded from `since` to just before `until`, beginning at `cursor` (empty: at the
        start). One call. Raises Unreachable."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One thing read from a source: `version` is the source's own, `content` JSON-like data, `bound` the part of it
    whose change makes a decision out of date (defaults to all of the content)."""

    kind: str
    source: str
    locator: str
    version: str
    title: str
    summary: str
    authoritative: bool
    content: dict[str, Any]
    bound: dict[str, Any] | None = None
    untrusted: bool = False

    def __post_init__(self) -> None:
        if any(len(one) > LONGEST_NAME for one in (self.locator, self.version)):
            raise ValueError(f"what was read is named by more than {LONGEST_NAME} characters")


class NoSuchThing(Exception):
    """A source answered, and the thing asked for does not exist. `what` names it for people."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} does not exist")
        self.what = what
