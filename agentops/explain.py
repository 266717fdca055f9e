"""All there is to know about one operation: meant, allowed, sent, answered, found, concluded, corrected. Reads only."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Prefetch

from approvals.models import Vote
from reconciliation.models import Attempt, Case, Correction, Observation, Operation
from reconciliation.queries import Seen, in_a_row
from runs import queries
from runs.models import Event

_RECORD_LINES = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """`votes` are empty where the policy alone allowed it; `learned` merges what was said again and again; `events` are
    the run's lines of the record that name the operation, its first 500."""

    operation: Operation
    votes: Sequence[Vote]
    attempts: Sequence[Attempt]
    learned: Sequence[Seen]
    cases: Sequence[Case]
    corrections: Sequence[Correction]
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
    stream = queries.stream(operation.run_id)
    events = Event.objects.filter(stream=stream, data__operation=str(operation.pk)).select_related("actor")
    return Explained(
        operation=operation,
        votes=list(votes),
        attempts=list(operation.attempts.all()),
        learned=in_a_row(operation.observations.all()),
        cases=list(operation.cases.all()),
        corrections=list(operation.corrections.all()),
        events=list(events.order_by("seq")[:_RECORD_LINES]),
    )
