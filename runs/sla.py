"""What a service level agreement owes for one incident on one invoice. Pure and exact: fractions, never floats.

The rule: uptime is what is left of the invoice's period after the incident's downtime in it, counted in full minutes.
The lowest step of the plan's schedule that the uptime stays below gives a percentage of the invoice's total. The
credit is rounded half up to the currency's smallest unit.
"""

import datetime as dt
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from runs.money import Money

MINUTE = dt.timedelta(minutes=1)
_PERCENT = re.compile(r"(0|[1-9][0-9]{0,2})(\.[0-9]{1,6})?")


class SlaError(Exception):
    """No credit can be worked out; `code` is stable, the text says why in a sentence."""

    code = "sla"


class IncidentNotFinal(SlaError):
    code = "incident_not_final"


class OtherMonth(SlaError):
    code = "other_period"


class InvoiceZero(SlaError):
    code = "invoice_zero"


class NothingDue(SlaError):
    code = "nothing_due"


class ScheduleInvalid(SlaError):
    code = "schedule_invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """One step: an uptime below `below` percent gives `percent` of the invoice. Both as the schedule writes them."""

    below: str
    percent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A half-open span of time with a zone: `start` belongs to it, `end` does not."""

    start: dt.datetime
    end: dt.datetime

    def __post_init__(self) -> None:
        if self.start.tzinfo is None or self.end.tzinfo is None:
            raise ValueError("a period needs times with a zone")

    @property
    def minutes(self) -> int:
        return max(0, (self.end - self.start) // MINUTE)

    def overlap(self, other: "Period") -> "Period":
        start = max(self.start, other.start)
        return Period(start=start, end=max(start, min(self.end, other.end)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Workings:
    """How a credit came about; `uptime` is an exact percentage."""

    outage: Period
    downtime_minutes: int
    period_minutes: int
    uptime: Fraction
    tier: Tier
    tiers: tuple[Tier, ...]
    total: Money
    credit: Money

    def as_dict(self) -> dict[str, Any]:
        """For the decision page: `steps` (key, label, detail, system), `tiers` (below, percent, reached), `credit`,
        and `near` (a sentence, or empty) when a little more downtime would have given more. All texts but `reached`."""
        return {
            "steps": self._steps(),
            "tiers": [
                {"below": f"{tier.below} %", "percent": f"{tier.percent} %", "reached": tier == self.tier}
                for tier in self.tiers
            ],
            "credit": {"amount_minor": str(self.credit.minor), "currency": self.credit.currency},
            "near": self._near(),
        }

    def _steps(self) -> list[dict[str, str]]:
        uptime = percent_text(self.uptime, below=self.tier.below)
        formula = f"1 − {self.downtime_minutes} ÷ {self.period_minutes:,}"
        rows = (
            ("downtime", "Downtime", span_text(self.outage), f"{self.downtime_minutes:,} min"),
            ("period", "Minutes in the period", "", f"{self.period_minutes:,}"),
            ("uptime", "Uptime", formula, f"{uptime} %"),
            ("tier", "SLA step", f"uptime below {self.tier.below} %", f"{self.tier.percent} %"),
            ("total", "Invoice total", "", str(self.total)),
            ("credit", "Credit", f"{self.tier.percent} % of {self.total.display()}", str(self.credit)),
        )
        return [{"key": key, "label": label, "detail": detail, "system": system} for key, label, detail, system in rows]

    def _near(self) -> str:
        """A sentence when at most a tenth more downtime (or ten minutes) would reach the next step."""
        better = [tier for tier in self.tiers if Fraction(tier.below) < Fraction(self.tier.below)]
        if not better:
            return ""
        step = max(better, key=lambda tier: Fraction(tier.below))
        # uptime < below  ⇔  downtime > period × (1 − below/100): the first full minute beyond it
        needed = int(self.period_minutes * (100 - Fraction(step.below)) / 100) + 1 - self.downtime_minutes
        if needed > max(10, self.downtime_minutes // 10):
            return ""
        more = share(total=self.total, percent=step.percent)
        return f"{needed} more full minutes of downtime would make it {step.percent} % ({more.display()})."


def percent_text(value: Fraction, *, below: str = "101") -> str:
    """A percentage to three places, `99.521`: rounded half up, but cut where rounding would show it at `below` or more
    though it is less."""
    thousandths = int(value * 1000 + Fraction(1, 2))
    if value < Fraction(below) <= Fraction(thousandths, 1000):
        thousandths = int(value * 1000)
    return f"{thousandths // 1000}.{thousandths % 1000:03d}"


def span_text(span: Period) -> str:
    """`2026-10-22 13:14 to 16:48 UTC`, with both dates when they differ."""
    start, end = span.start.astimezone(dt.UTC), span.end.astimezone(dt.UTC)
    last = f"{end:%H:%M}" if start.date() == end.date() else f"{end:%Y-%m-%d %H:%M}"
    return f"{start:%Y-%m-%d %H:%M} to {last} UTC"


def share(*, total: Money, percent: str) -> Money:
    """That percentage of a total, rounded half up to the currency's smallest unit."""
    exact = Fraction(total.minor) * Fraction(percent) / 100
    return Money(int(exact + Fraction(1, 2)), total.currency)


def check_schedule(tiers: Sequence[Tier]) -> tuple[Tier, ...]:
    """The steps from the lowest uptime up. Raises ScheduleInvalid unless less uptime always gives at least as much."""
    if not tiers:
        raise ScheduleInvalid("The SLA schedule has no steps.")
    for tier in tiers:
        for text in (tier.below, tier.percent):
            if not isinstance(text, str) or not _PERCENT.fullmatch(text) or Fraction(text) > 100:
                raise ScheduleInvalid(f"The SLA schedule has {str(text)[:20]!r} where a percentage is needed.")
    ordered = tuple(sorted(tiers, key=lambda tier: Fraction(tier.below)))
    for worse, better in itertools.pairwise(ordered):
        if Fraction(worse.below) == Fraction(better.below):
            raise ScheduleInvalid(f"The SLA schedule has two steps at {worse.below} %.")
        if Fraction(worse.percent) < Fraction(better.percent):
            raise ScheduleInvalid("The SLA schedule gives less for less uptime.")
    return ordered


def work_out(*, outage: Period, final: bool, period: Period, tiers: Sequence[Tier], total: Money) -> Workings:
    """The credit for one outage in one invoice's period.

    `outage` is the incident from start to end, `final` whether its report is, `period` the invoice's, `tiers` the
    plan's schedule, `total` the invoice's total. Raises IncidentNotFinal, OtherMonth, InvoiceZero, NothingDue and
    ScheduleInvalid.
    """
    if not final:
        raise IncidentNotFinal("The incident report is not final, so its downtime may still change.")
    ordered = check_schedule(tiers)
    clipped = period.overlap(outage)
    if clipped.start >= clipped.end:
        raise OtherMonth("The incident lies outside the invoice's period.")
    if total.minor == 0:
        raise InvoiceZero("The invoice's total is zero, so there is nothing to credit.")
    downtime, minutes = clipped.minutes, period.minutes
    uptime = 100 - Fraction(100 * downtime, minutes) if minutes else Fraction(100)
    reached = [tier for tier in ordered if uptime < Fraction(tier.below)]
    if not reached:
        raise NothingDue(f"Uptime was {percent_text(uptime)} %, which the plan's SLA owes nothing for.")
    credit = share(total=total, percent=reached[0].percent)
    if credit.minor == 0:
        raise NothingDue(f"{reached[0].percent} % of {total} rounds to nothing.")
    return Workings(
        outage=clipped,
        downtime_minutes=downtime,
        period_minutes=minutes,
        uptime=uptime,
        tier=reached[0],
        tiers=ordered,
        total=total,
        credit=credit,
    )
