"""Reads for the desk: what could not be settled by machine, and what is still being asked about."""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Min, OuterRef, QuerySet, Subquery

from reconciliation.models import Attempt, Case, Correction, Observation, Operation, ProposedVerdict
from reconciliation.models.case import ABOUT_OUR_RECORD, NOTED_SINCE, UNRESOLVED, CaseState
from reconciliation.models.operation import SETTLED, UNCONFIRMED
from reconciliation.risk import Risk, at_risk, in_all
from runs.money import Money

QUEUE_LIMIT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """`cases` are open or claimed, `kinds` all that are open as (key, words, how many), `oldest` when the first of all
    was opened; `asking` are operations without a case that the system itself still asks about."""

    cases: list[Case]
    kinds: list[tuple[str, str, int]]
    oldest: dt.datetime | None
    asking: list[Operation]
    risks: list[Risk]

    @property
    def open(self) -> int:
        """How many cases are open, of whatever kind."""
        return sum(number for _, _, number in self.kinds)

    @property
    def at_risk(self) -> list[Money]:
        """One sum for each currency: operations that are not confirmed or in dispute, each counted once."""
        return in_all(self.risks)


def _last_probe(reference: str) -> dict[str, Any]:
    found = Observation.objects.filter(operation=OuterRef(reference), source="probe").order_by("-at")
    return {"last_finding": Subquery(found.values("finding")[:1]), "last_asked": Subquery(found.values("at")[:1])}


def open_cases() -> QuerySet[Case]:
    proposer = ProposedVerdict.objects.filter(case=OuterRef("pk")).order_by("-number")
    found = Case.objects.filter(UNRESOLVED).annotate(
        **_last_probe("operation"), proposer=Subquery(proposer.values("proposed_by__label")[:1])
    )
    return found.select_related("operation__run", "claimed_by")


def desk(*, sort: str = "age", kind: str = "") -> Desk:
    """Open cases, of that kind alone if one is given, and unsettled operations, the oldest first (`sort` age) or the
    largest first within each currency (`amount`)."""
    order = ("operation__currency", "-operation__amount_minor", "opened_at") if sort == "amount" else ("opened_at",)
    wanted = open_cases().filter(kind=kind) if kind else open_cases()
    cases = list(wanted.order_by(*order, "number")[:QUEUE_LIMIT])
    counted = Case.objects.filter(UNRESOLVED).order_by().values_list("kind")
    numbers = dict(counted.annotate(number=Count("pk")))
    kinds = [
        (key, str(words), numbers.get(key, 0)) for key, words in Case.Kind.choices if key in numbers or key == kind
    ]
    asking = Operation.objects.filter(state__in=UNCONFIRMED).exclude(
        cases__state__in=[CaseState.OPEN, CaseState.CLAIMED]
    )
    asking = asking.annotate(**_last_probe("pk")).select_related("run").order_by("unknown_since", "created_at")
    oldest = Case.objects.filter(UNRESOLVED).aggregate(at=Min("opened_at"))["at"]
    return Desk(cases=cases, kinds=kinds, oldest=oldest, asking=list(asking[:QUEUE_LIMIT]), risks=at_risk())


def proposal(*, case: Case) -> ProposedVerdict | None:
    """The verdict that waits in an open case for another person's confirmation."""
    if case.state == CaseState.RESOLVED:
        return None
    return case.proposals.select_related("proposed_by").order_by("-number").first()


def disputes() -> QuerySet[Case]:
    """Cases about operations that are settled, and not as the other side shows them: open, or noted and put right
    outside. Until a correction is booked our record alone does not tell the truth about these."""
    standing = UNRESOLVED | NOTED_SINCE
    return Case.objects.filter(standing, ABOUT_OUR_RECORD, operation__state__in=SETTLED).select_related(
        "operation", "resolved_by", "confirmed_by"
    )


def dispute_about(*, operation: Operation) -> Case | None:
    """The same of one operation, from its cases as they were prefetched."""
    if not operation.is_settled:
        return None
    at = operation.corrected_at
    for one in operation.cases.all():
        noted = one.verdict == "noted" and (at is None or one.resolved_at is None or one.resolved_at > at)
        if one.kind != Case.Kind.NOT_UNDONE and (one.state != CaseState.RESOLVED or noted):
            return one
    return None


def corrections() -> QuerySet[Correction]:
    """What was put right in our own record, the first first."""
    found = Correction.objects.select_related("operation", "case", "corrected_by", "confirmed_by")
    return found.order_by("at", "number")


def settled_counts(*, since: Any) -> dict[str, int]:
    """How many cases were settled since then, by a probe and by people."""
    found = Case.objects.filter(state=CaseState.RESOLVED, resolved_at__gte=since).values_list("verdict")
    by_verdict = dict(found.annotate(number=Count("pk")))
    probe = by_verdict.pop(Case.Verdict.BY_PROBE, 0)
    return {"probe": probe, "people": sum(by_verdict.values())}


def newest_lookup(observations: Iterable[Observation]) -> Observation | None:
    """The last time the other side was asked, whatever it answered; `observations` oldest first."""
    probes = [one for one in observations if one.source == Observation.Source.PROBE]
    return probes[-1] if probes else None


def newest_found(observations: Iterable[Observation]) -> Observation | None:
    """The last time the other side showed a record."""
    shown = [one for one in observations if isinstance(one.raw, dict) and one.raw.get("records")]
    return shown[-1] if shown else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The same observation made `times` in a row: `first` and `last` say when."""

    first: Observation
    last: Observation
    times: int


def in_a_row(observations: Iterable[Observation]) -> list[Seen]:
    """Consecutive observations that say the same, raw record included, as one; `observations` oldest first."""
    merged: list[Seen] = []
    for one in observations:
        before = merged[-1] if merged else None
        if before is not None and _said(before.last) == _said(one):
            merged[-1] = Seen(first=before.first, last=one, times=before.times + 1)
        else:
            merged.append(Seen(first=one, last=one, times=1))
    return merged


def _said(one: Observation) -> tuple[Any, ...]:
    return one.source, one.finding, one.conclusive, one.summary, one.raw


def answered_otherwise(*, attempts: Iterable[Attempt], observations: Iterable[Observation]) -> set[int]:
    """Numbers of the attempts whose answer named a record that is not as sent."""
    at = {
        one.asked_at
        for one in observations
        if one.source == Observation.Source.SENDER and one.finding == Observation.Finding.DIFFERENT
    }
    return {one.number for one in attempts if one.opened_at in at}
