"""What a record of theirs settles. Building blocks inside the caller's transaction: the run and the operation are
locked.
"""

from reconciliation import moves, their_names
from reconciliation.case_opening import open_case, resolve_by_probe
from reconciliation.comparison import in_words
from reconciliation.models import Operation
from reconciliation.models.case import Case
from reconciliation.models.operation import OperationState
from runs.canonical import digest
from runs.models import Principal, Run
from runs.tools.base import Record

S = OperationState


def succeed(*, run: Run, operation: Operation, found: Record, by: str, why: str, actor: Principal) -> bool:
    """Settle by what the other side has recorded; one external reference settles one operation only. False, with a case
    opened, when the reference is taken."""
    if taken := their_names.take(operation=operation, names=(found.reference, *found.also)):
        why = f"{taken.name} already settles another operation ({taken.operation.identity})"
        doubt = f"taken:{taken.name}:{taken.operation_id}"
        open_case(run=run, operation=operation, kind=Case.Kind.DUPLICATE, doubts=[doubt], why=why, actor=actor)
        return False
    moves.move(
        run=run,
        operation=operation,
        to=S.SUCCEEDED,
        actor=actor,
        why=why,
        external_reference=found.reference,
        actual=found.raw,
        settled_by=by,
    )
    resolve_by_probe(run=run, operation=operation, evidence=why, actor=actor)
    return True


def disagree(*, run: Run, operation: Operation, found: Record, actor: Principal) -> None:
    """A record under our identity that is not what was sent settles nothing: a case asks a person."""
    differing = in_words(mismatch=found.mismatch, currency=operation.currency)
    why = f"{found.reference} carries our identity but is not what was sent: {differing}"
    doubt = f"unlike:{found.reference}:{digest(found.mismatch)}"
    open_case(run=run, operation=operation, kind=Case.Kind.DIFFERENT, doubts=[doubt], why=why, actor=actor)
