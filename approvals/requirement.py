"""What people have to say for a yes: one stage or several, each with its groups, its number of people and conditions on
them, and the times that go with it. Pure."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from approvals import confirming

Clock = Literal["elapsed", "working"]
WhenLate = Literal["expire", "reject"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """What is set about a person who answers: their own limit covers the amount; their team; their region."""

    within_limit: bool = False
    team: str = ""
    region: str = ""

    def stored(self) -> dict[str, Any]:
        """Only what is asked of the person, as JSON."""
        wanted: dict[str, Any] = {"within_limit": self.within_limit, "team": self.team, "region": self.region}
        return {name: value for name, value in wanted.items() if value}


ANYBODY = Person()


@dataclass(frozen=True, slots=True, kw_only=True)
class StageNeed:
    """`quorum` distinct members of any of `groups` who meet `person`; `reject_at` who say no end it."""

    name: str
    groups: tuple[str, ...]
    quorum: int
    reject_at: int = 1
    person: Person = ANYBODY

    @property
    def asks_the_same(self) -> tuple[Any, ...]:
        """What two stages have in common that differ in numbers and name alone."""
        return self.groups, self.person


@dataclass(frozen=True, slots=True, kw_only=True)
class Escalation:
    """After so long without an answer, `group` is asked as well."""

    after: dt.timedelta
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """Who has to say yes, within a time, usable for a time after that.

    `group` and `quorum` are one stage; with `stages`, these count. A `quorum` of 0 asks only people added by name.
    `confirm` is what each yes takes. `in_order`: a stage is asked once those before it have said yes. `clock` is
    what the time to answer, reminders and escalations are counted in. `standing` is, by currency, the most of a
    standing approval that may answer, in minor units; None: only people, when they are asked.
    """

    group: str
    quorum: int
    respond_within: dt.timedelta
    valid_for: dt.timedelta
    confirm: confirming.Level = confirming.CLICK
    stages: tuple[StageNeed, ...] = ()
    in_order: bool = False
    clock: Clock = "elapsed"
    remind_after: dt.timedelta | None = None
    escalations: tuple[Escalation, ...] = ()
    when_late: WhenLate = "expire"
    standing: Mapping[str, int] | None = None

    @property
    def chain(self) -> tuple[StageNeed, ...]:
        """At least one stage, or none where nobody is needed but those whom people added."""
        if not self.quorum and not self.stages:
            return ()
        return self.stages or (StageNeed(name=self.group, groups=(self.group,), quorum=self.quorum),)


def of_one_group(*, stages: Sequence[StageNeed], group: str) -> bool:
    """Whether members of that group alone are asked, once, and whoever they are: only this is answered beforehand."""
    return [(one.groups, one.person) for one in stages] == [((group,), ANYBODY)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A stage that was asked, and how many people entitled still have said yes in it; `also` are the groups that an
    escalation asked as well, where some of them are entitled by these alone."""

    need: StageNeed
    yes: int
    also: tuple[str, ...] = ()


def enough(*, asked: Sequence[Answered], in_order: bool, wanted: Requirement) -> bool:
    """Whether the answers to the stages that were asked are also those that `wanted` asks for."""
    chain = wanted.chain
    if len(asked) != len(chain) or (len(chain) > 1 and wanted.in_order and not in_order):
        return False
    escalated = {step.group for step in wanted.escalations}
    return all(
        escalated.issuperset(one.also)
        and one.need.asks_the_same == need.asks_the_same
        and one.need.reject_at <= need.reject_at
        and one.yes >= max(one.need.quorum, need.quorum)
        for one, need in zip(asked, chain, strict=True)
    )
