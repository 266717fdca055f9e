"""What became of a request, in one look and one sentence: the same on the inbox, the decision page and in messages."""

from collections.abc import Iterable
from dataclasses import dataclass

from approvals.models import ApprovalRequest
from approvals.models.request import RequestState
from reconciliation.models import Operation
from reconciliation.models.operation import OperationState
from reconciliation.queries import dispute_about
from runs import words
from runs.money import Money
from runs.words import Look

O = OperationState  # noqa: E741  # the file is about little else
R = RequestState


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`settled` says that nothing more will happen by itself, so a page need not look again."""

    look: Look
    sentence: str
    settled: bool
    operation: Operation | None = None


def operations_of(*, requests: Iterable[ApprovalRequest]) -> dict[object, Operation]:
    """Operations by their proposal's id, with their cases, in two queries."""
    ids = [request.proposal_id for request in requests]
    found = Operation.objects.filter(proposal_id__in=ids).prefetch_related("cases__resolved_by", "cases__confirmed_by")
    return {operation.proposal_id: operation for operation in found}


def outcome(*, request: ApprovalRequest, operation: Operation | None) -> Outcome:
    """Truthful words: an approval is not an effect, and not confirmed is neither done nor failed."""
    if operation is not None:
        dispute = dispute_about(operation=operation)
        return Outcome(
            look=words.look(kind="dispute", state=dispute.verdict or "open")
            if dispute
            else words.look(kind="operation", state=operation.state),
            sentence=_of_operation(operation),
            settled=operation.is_settled,
            operation=operation,
        )
    if request.state == R.APPROVED:
        return Outcome(
            look=words.look(kind="operation", state=O.AUTHORISED),
            sentence="Approved, waiting to run. Nothing has been sent yet.",
            settled=False,
        )
    return Outcome(
        look=words.look(kind="request", state=request.state),
        sentence=_NOTHING_SENT.get(R(request.state), "") or "Waiting for an answer.",
        settled=request.state not in (R.OPEN, R.SPENT),
    )


_NOTHING_SENT: dict[RequestState, str] = {
    R.SPENT: "Approved. Its operation is being prepared.",
    R.REJECTED: "Rejected. Nothing was sent.",
    R.EXPIRED: "Nobody answered in time, or the approval was not used in time. Nothing was sent.",
    R.SUPERSEDED: "Replaced before it was decided. Nothing was sent.",
    R.WITHDRAWN: "Withdrawn before it was decided. Nothing was sent.",
    R.SENT_BACK: "Sent back before it was decided. Nothing was sent.",
    R.STALE: "The facts changed after the approval, so it no longer counted. Nothing was sent.",
    R.REVOKED: "The approval no longer counted when it was to be used. Nothing was sent.",
}


def standing_sentence(*, operation: Operation) -> str:
    """What stands of an operation, in a sentence or two; its cases are prefetched."""
    return _of_operation(operation)


def _of_operation(operation: Operation) -> str:
    if dispute := dispute_about(operation=operation):
        return dispute.dispute
    reference = f" as {operation.external_reference}" if operation.external_reference else ""
    if operation.corrected:
        entry = operation.corrections.select_related("case", "corrected_by", "confirmed_by").latest("number")
        return f"{entry.words} It was reversed later." if operation.state == O.COMPENSATED else entry.words
    twice = f" {operation.other_reference} is a second one, to be reversed there." if operation.other_reference else ""
    proved = "An admin settled that it was not done." if operation.settled_by == "person" else "Proved not done."
    other_side = words.system(operation.system, begins=True)
    return {
        O.AUTHORISED: "Approved, waiting to run. Nothing is on its way right now.",
        O.SENDING: "Being carried out now.",
        O.SUCCEEDED: f"{_carried_out(operation, reference)}{twice}",
        O.FAILED: f"{proved} {operation.failure}".strip(),
        O.ACCEPTED: f"{other_side} has accepted it{reference}; the outcome is not final.",
        O.UNKNOWN: f"It may or may not have happened. {other_side} is being asked; nothing is sent again meanwhile.",
        O.ABANDONED: "Given up before anything was sent.",
        O.COMPENSATED: f"Carried out{reference} and reversed later.",
    }[O(operation.state)]


def _carried_out(operation: Operation, reference: str) -> str:
    if not operation.by_evidence:
        return f"Carried out: {words.system(operation.system)} has recorded it{reference}."
    real, sent = operation.real_minor, operation.amount_minor
    other = ""
    if real is not None and sent is not None and real != sent:
        other = f", at {Money(real, operation.currency)} instead of {Money(sent, operation.currency)}"
    return f"Carried out{reference}{other}: an admin settled it by evidence."
