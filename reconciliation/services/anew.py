"""Allowing that what was undone is done anew. An undone operation keeps its business key, so that no agent pays
again by itself what people have taken back; a person gives it up, once, with a reason. Nothing is proposed or sent by
this."""

import uuid
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db import transaction

from reconciliation import moves
from reconciliation.models import Case, Operation, Reversal
from reconciliation.models.case import ABOUT_OUR_RECORD, SETTLE, UNRESOLVED
from reconciliation.models.operation import OperationState
from reconciliation.verdicts import beyond_one, stake
from runs import record, rights
from runs.models import Principal
from runs.texts import typed


@dataclass(frozen=True, slots=True, kw_only=True)
class AnewResult:
    """`code` is ok, or the refusal: reason_needed, no_right (recorded in the run's stream), not_reversed, already,
    in_dispute (what stands of it is not sure), takes_another (above what one person settles alone it takes somebody
    else than who had it undone)."""

    code: str
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.code == "ok"


def allow(*, operation_id: uuid.UUID, principal: Principal, reason: str) -> AnewResult:
    """Give up the business key of an operation that was undone: the same may be proposed again, and the policy says
    whether it needs people. Raises Operation.DoesNotExist."""
    reason = typed(text=reason)
    if not reason:
        return AnewResult(code="reason_needed")
    with transaction.atomic(durable=True):
        run, operation = moves.lock(operation_id=operation_id)
        about = {"act": "operation.anew", "operation": str(operation.pk)}
        if code := rights.objection(run=run, principal=principal, permission=SETTLE, **about):
            return AnewResult(code=code)
        if operation.state != OperationState.COMPENSATED:
            return AnewResult(code="not_reversed", detail={"state": operation.get_state_display().lower()})
        if operation.anew_allowed:
            return AnewResult(code="already")
        case = Case.objects.filter(ABOUT_OUR_RECORD, UNRESOLVED, operation=operation).first()
        if case is not None:
            return AnewResult(code="in_dispute", detail={"case": case.label})
        limits, most = settings.SETTLE_ALONE_UP_TO, stake(operation=operation)
        is_large = beyond_one(operation=operation, minor=most, alone_up_to=limits)
        if is_large and _had_it_undone(operation, principal):
            return AnewResult(code="takes_another")
        operation.anew_allowed = True
        operation.save(update_fields=["anew_allowed"])
        record.append(
            run=run, kind="operation.anew_allowed", actor=principal, operation=str(operation.pk),
            reference=operation.external_reference, business_key=operation.business_key, reason=reason,
        )  # fmt: skip
        return AnewResult(code="ok")


def _had_it_undone(operation: Operation, principal: Principal) -> bool:
    """A reversal of theirs was done; also one that had ended otherwise, and was found done later."""
    done = operation.reversed_by.filter(state=OperationState.SUCCEEDED).values("run")
    return Reversal.objects.filter(operation=operation, run__in=done, proposed_by=principal).exists()
