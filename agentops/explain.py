"""All there is to know about one operation: meant, allowed, sent, answered, found, concluded, corrected, undone. Reads
only."""

import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Prefetch

from approvals.models import Vote
from reconciliation.models import Attempt, Case, Correction, Observation, Operation, ProposedVerdict, Reversal
from reconciliation.queries import Seen, in_a_row
from runs import record
from runs.models import Event

_RECORD_LINES = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """One reversal that was proposed, the operation that it became, and what people answered in its run."""

    reversal: Reversal
    operation: Operation | None
    votes: Sequence[Vote]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """`votes` are empty where the policy alone allowed it; `learned` merges what was said again and again; `events` are
    the run's lines of the record that name the operation, its first 500. `undone` are the reversals of it, `undoes` the
    one that it is itself, with the operation that it undoes."""

    operation: Operation
    votes: Sequence[Vote]
    attempts: Sequence[Attempt]
    learned: Sequence[Seen]
    cases: Sequence[Case]
    corrections: Sequence[Correction]
    undone: Sequence[Undone]
    undoes: Reversal | None
    events: Sequence[Event]

    @property
    def times(self) -> int:
        return sum(one.times for one in self.learned)


def found(*, operation_id: uuid.UUID) -> Operation | None:
    """The operation with all that `explain` needs, in a fixed number of queries."""
    wanted = Operation.objects.select_related(
        "run",
        "proposal__proposer",
        "proposal__model_call",
        "decision__policy_version__policy",
        "decision__request",
        "decision__standing__asked_by",
        "decision__standing__granted_by",
    ).prefetch_related(
        Prefetch("attempts", Attempt.objects.select_related("sender").order_by("number")),
        Prefetch("observations", Observation.objects.select_related("actor").order_by("at")),
        Prefetch("cases", Case.objects.select_related("resolved_by", "confirmed_by", "claimed_by").order_by("number")),
        Prefetch("cases__proposals", ProposedVerdict.objects.select_related("proposed_by").order_by("number")),
        Prefetch("reversals", Reversal.objects.select_related("run", "proposed_by", "case").order_by("created_at")),
        Prefetch(
            "corrections",
            Correction.objects.select_related("case", "corrected_by", "confirmed_by").order_by("number"),
        ),
    )
    return wanted.filter(pk=operation_id).first()


def explain(*, operation: Operation) -> Explained:
    """`operation` as `found` gives it."""
    request = operation.decision.request
    votes = request.votes.select_related("principal").order_by("at") if request is not None else []
    stream = record.stream_of(run_id=operation.run_id)
    events = Event.objects.filter(stream=stream, data__operation=str(operation.pk)).select_related("actor")
    return Explained(
        operation=operation,
        votes=list(votes),
        attempts=list(operation.attempts.all()),
        learned=in_a_row(operation.observations.all()),
        cases=list(operation.cases.all()),
        corrections=list(operation.corrections.all()),
        undone=_undone(operation),
        undoes=_undoes(operation),
        events=list(events.order_by("seq")[:_RECORD_LINES]),
    )


def _undone(operation: Operation) -> list[Undone]:
    reversals = list(operation.reversals.all())
    if not reversals:
        return []
    runs = [one.run_id for one in reversals if one.run_id is not None]
    made = {one.run_id: one for one in Operation.objects.filter(run__in=runs, reverses=operation).order_by("created_at")
            .select_related("decision__policy_version__policy", "decision__request")}  # fmt: skip
    votes: defaultdict[uuid.UUID, list[Vote]] = defaultdict(list)
    for one in Vote.objects.filter(request__run__in=runs).select_related("principal", "request").order_by("at"):
        votes[one.request.run_id].append(one)
    return [
        Undone(
            reversal=one,
            operation=made.get(one.run_id) if one.run_id else None,
            votes=votes[one.run_id] if one.run_id else [],
        )
        for one in reversals
    ]


def _undoes(operation: Operation) -> Reversal | None:
    if operation.reverses_id is None:
        return None
    found = Reversal.objects.select_related("operation__run", "proposed_by", "case")
    return found.filter(run=operation.run_id, operation=operation.reverses_id).first()
