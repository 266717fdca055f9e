"""A trial in figures: how many proposals and how much money would go which way, and what that asks of people."""

import statistics
from dataclasses import dataclass, field

from agentops.policy_trial import COLUMNS, Effect, Outcome, Trial, Tried
from approvals import rights
from approvals.models import Decision

EFFECTS: tuple[tuple[Effect, str], ...] = (
    ("allow", "Automatic"),
    ("ask", "Asked of people"),
    ("deny", "Refused"),
    ("none", "Not judged"),
)
MEASURED = 200  # the newest decisions that the median is taken from


@dataclass(slots=True)
class Cell:
    """How many, and how much of each currency in minor units."""

    count: int = 0
    money: dict[str, int] = field(default_factory=dict)

    def add(self, tried: Tried) -> None:
        self.count += 1
        one = tried.proposal
        if one.amount_minor:
            self.money[one.currency] = self.money.get(one.currency, 0) + one.amount_minor

    def sums(self) -> list[tuple[str, int]]:
        return sorted(self.money.items())


@dataclass(frozen=True, slots=True)
class Line:
    """One way to go: what happened, what the version in force says now, what the document would say."""

    effect: Effect
    word: str
    happened: Cell
    in_force: Cell
    would: Cell

    def columns(self) -> tuple[tuple[str, Cell], ...]:
        return tuple(zip(COLUMNS, (self.happened, self.in_force, self.would), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupWork:
    """What is asked of a group, beside what it has answered beforehand. `seconds` is the median from asked to decided
    in `measured` real decisions, or None; `answers` is how many people have to answer in all."""

    group: str
    voters: int
    happened: int
    in_force: int
    would: int
    answers: int
    seconds: float | None
    measured: int

    @property
    def total(self) -> float | None:
        """Seconds between asked and decided, in sum, under the document."""
        return None if self.seconds is None else self.seconds * self.would


def lines(*, trial: Trial) -> list[Line]:
    """One line a way to go, the last only where something was never judged."""
    found = {effect: Line(effect, word, Cell(), Cell(), Cell()) for effect, word in EFFECTS}
    for one in trial.tried:
        found[one.happened.effect].happened.add(one)
        found[one.in_force.effect].in_force.add(one)
        found[one.would.effect].would.add(one)
    return [line for line in found.values() if line.effect != "none" or line.happened.count]


def groups(*, trial: Trial) -> list[GroupWork]:
    """Every group that was asked or would be, by name."""
    outcomes = [outcome for one in trial.tried for outcome in (one.happened, one.in_force, one.would)]
    asked = {groups for outcome in outcomes for groups, _ in outcome.asked}
    return [_work(groups, trial) for groups in sorted(asked)]


def _work(groups: tuple[str, ...], trial: Trial) -> GroupWork:
    def asked(outcomes: list[Outcome]) -> list[int]:
        """How many answers each stage that asks them needs, where nobody had answered beforehand."""
        return [quorum for one in outcomes if not one.beforehand for names, quorum in one.asked if names == groups]

    would = asked([one.would for one in trial.tried])
    times = _times(groups)
    return GroupWork(
        group=" or ".join(groups),
        voters=rights.holders(groups=groups),
        happened=len(asked([one.happened for one in trial.tried])),
        in_force=len(asked([one.in_force for one in trial.tried])),
        would=len(would),
        answers=sum(would),
        seconds=statistics.median(times) if times else None,
        measured=len(times),
    )


def _times(groups: tuple[str, ...]) -> list[float]:
    """Seconds from asked to decided, of the newest decisions that asked them first."""
    rows = Decision.objects.filter(kind=Decision.Kind.PEOPLE, request__group__in=groups).order_by("-decided_at")
    pairs = rows.values_list("request__created_at", "decided_at")[:MEASURED]
    return [(decided - asked).total_seconds() for asked, decided in pairs if asked is not None]
