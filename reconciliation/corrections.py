"""Putting a settled operation right by a new entry. What our record said stays in the entry; nothing is edited away.

Building blocks inside the caller's transaction: the run, the operation and its case are locked, names are taken.
"""

from typing import Any

from django.db import IntegrityError, transaction

from reconciliation import moves
from reconciliation.models import Case, Correction, Operation, Reversal
from reconciliation.models.correction import CORRECTABLE
from reconciliation.models.operation import KEY_TAKEN, OperationState
from runs import clock, record
from runs.models import Principal, Run

S = OperationState
_EDGES = {(S.SUCCEEDED, S.FAILED): "take_back", (S.FAILED, S.SUCCEEDED): "own_up"}
_KEPT = ("external_reference", "actual", "settled_by", "failure", "failure_code")


def correctable(operation: Operation) -> bool:
    return operation.state in CORRECTABLE


def successor(operation: Operation) -> Operation | None:
    """Who has the business key of an operation that has given it up."""
    if operation.state not in (S.FAILED, S.ABANDONED) and not operation.anew_allowed:
        return None
    taken = Operation.objects.filter(KEY_TAKEN, business_key=operation.business_key).exclude(pk=operation.pk)
    return taken.select_related("run").first()


def booked_as_undone(reversal: Operation) -> bool:
    """What this operation undid is recorded as undone, which is never taken back."""
    if reversal.reverses_id is None:
        return False
    undone = Operation.objects.get(pk=reversal.reverses_id)
    if undone.state == S.COMPENSATED:
        return undone.external_reference == reversal.reverses_reference or undone.other_reversed
    return undone.other_reversed and undone.as_settled("other_reference") == reversal.reverses_reference


def stood(operation: Operation) -> dict[str, Any]:
    """What our record says of a settled operation, to be kept."""
    at = operation.settled_at
    kept = {name: getattr(operation, name) for name in _KEPT}
    return {**kept, "real_minor": operation.real_minor, "settled_at": at.isoformat() if at else ""}


def correct(
    *,
    run: Run,
    operation: Operation,
    case: Case,
    to: OperationState,
    evidence: str,
    by: Principal,
    confirmed_by: Principal | None,
    **fields: Any,
) -> Correction | str:
    """Write the entry, take the edge that only an entry opens, and book the totals anew. Or why not, and nothing is
    changed: done_anew, another operation has done it in its place by now; reversal_booked, as in `booked_as_undone`.

    `fields` are what the record says from now on: external_reference, actual, failure, failure_code.
    """
    totals = moves.lock_reserved(operation=operation)
    booked = {one.pk: moves.booked(operation=operation, reservation=one) for one in totals}
    if to == S.FAILED and operation.reverses_id:
        list(Reversal.objects.select_for_update(of=("self",)).filter(run=run.pk))  # who books what it did holds it
        if booked_as_undone(operation):
            return "reversal_booked"
    try:
        with transaction.atomic():
            entry = _enter(operation, case, to, evidence, by, confirmed_by)
            if (edge := _EDGES.get((S(operation.state), to))) is not None:
                getattr(operation, edge)()
            blank: dict[str, Any] = {"external_reference": None, "actual": None, "failure": "", "failure_code": ""}
            now = clock.now()
            changed = {**blank, **fields, "settled_by": "person", "settled_at": now, "corrected_at": now}
            changed["other_reversed"] = False  # a second record that is named now is one that stands
            for name, value in {**changed, "corrected": entry.number}.items():
                setattr(operation, name, value)
            operation.save(update_fields=["state", "corrected", *changed])
    except IntegrityError as error:
        if "operation_business_key_once" not in str(error):
            raise
        return "done_anew"
    for one in totals:
        moves.book(operation=operation, reservation=one, before=booked[one.pk])
    record.append(
        run=run,
        kind="operation.corrected",
        actor=confirmed_by or by,
        operation=str(operation.pk),
        identity=operation.identity,
        case=case.label,
        source=entry.source,
        target=entry.target,
        was=entry.was,
        evidence=evidence,
        **({"proposed_by": str(by)} if confirmed_by else {}),
    )
    if run.is_over:  # what it came to is told everywhere in these words
        run.outcome = f"{run.outcome} {entry.words}".strip()
        run.save(update_fields=["outcome"])
    return entry


def _enter(
    operation: Operation, case: Case, to: OperationState, evidence: str, by: Principal, confirmed_by: Principal | None
) -> Correction:
    return Correction.objects.create(
        operation=operation,
        number=operation.corrected + 1,
        case=case,
        source=operation.state,
        target=to,
        before=stood(operation),
        evidence=evidence,
        corrected_by=by,
        confirmed_by=confirmed_by,
    )
