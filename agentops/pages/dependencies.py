"""What the product depends on outside, as all workers see it: does it answer, since when not and why, and who waits."""

import datetime as dt
from dataclasses import dataclass

from django.db.models import Count

from reconciliation.models import Dependency
from runs.models import Run
from runs.tools.registry import SYSTEMS, TOOLS


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A system's reads and lookups, or a tool's calls. `until`: when it is called next, while it is not called now."""

    name: str
    title: str
    what: str
    word: str
    colour: str
    icon: str
    since: dt.datetime | None = None
    until: dt.datetime | None = None
    asking: bool = False
    why: str = ""
    why_at: dt.datetime | None = None
    waiting: int = 0
    rate: str = ""

    @property
    def is_down(self) -> bool:
        return self.since is not None


def lines(*, now: dt.datetime) -> list[Line]:
    """Every system and every tool of the registry, what is down first."""
    rows = {one.name: one for one in Dependency.objects.all()}
    live = Run.objects.filter(finished_at__isnull=True, lease_until__isnull=True).exclude(waits_on="")
    waiting = dict(live.values_list("waits_on").annotate(n=Count("pk")))
    found = [
        _line(name, SYSTEMS[name].title, "reads and lookups", "", rows.get(name), waiting.get(name, 0), now)
        for name in sorted(SYSTEMS)
    ]
    for name in sorted(TOOLS):
        promised = TOOLS[name].contract
        rate = str(promised.rate) if promised.rate else ""
        found.append(_line(name, promised.title, "calls", rate, rows.get(name), waiting.get(name, 0), now))
    return sorted(found, key=lambda one: not one.is_down)


def _line(
    name: str, title: str, what: str, rate: str, row: Dependency | None, waiting: int, now: dt.datetime
) -> Line:  # fmt: skip
    word, colour, icon = "Answers", "green", "check"
    since = until = why_at = None
    why, asking = "", False
    if row is not None and row.failures:
        why, why_at = row.last_failure, row.last_failure_at
        word, colour, icon = f"Failed {row.failures} times in a row", "amber", "activity"
        word = "Failed last" if row.failures == 1 else word
    if row is not None and row.not_before is not None and row.not_before > now:
        word, colour, icon, until = "Asked to be left alone", "amber", "hourglass", row.not_before
    if row is not None and row.open_since is not None:
        word, colour, icon, since, until = "Does not answer", "red", "x", row.open_since, row.ask_at
        asking = row.trial_until is not None and row.trial_until > now
    return Line(
        name=name, title=title, what=what, word=word, colour=colour, icon=icon, since=since, until=until, asking=asking,
        why=why, why_at=why_at, waiting=waiting, rate=rate,
    )  # fmt: skip


def trouble(*, now: dt.datetime) -> str:
    """For health: what does not answer, without the other side's own words; empty when all do."""
    down = [one for one in lines(now=now) if one.is_down]
    if not down:
        return ""
    told = [f"{one.name} ({one.waiting} waiting)" for one in down]
    return f"no answer from {', '.join(told)}; nothing is lost, the overview says why and when it is asked next"
