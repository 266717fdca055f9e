"""What billing's signed events change: they make somebody look. They settle nothing by themselves.

An event about a credit note with our identity has its operation looked up, whatever state that is in, as soon as
nobody is in the middle of it; one about an invoice has the facts read again by every run that is asking for approval
about that customer.
"""

import logging
from typing import Any

from django.db import transaction

from approvals.models import ApprovalRequest
from approvals.models.request import RequestState
from reconciliation import late
from reconciliation.models import Operation
from reconciliation.models.operation import OperationState
from runs import clock, record, transitions
from runs.models import ExternalEvent, Run
from runs.money import MAX_MINOR, MoneyError, currency_code
from runs.one_by_one import is_busy, is_gone
from runs.services import principals

log = logging.getLogger(__name__)


def process_events(*, limit: int) -> int:
    """Work off what was received, oldest first; a durable transaction for each event, or for each run it concerns.

    One whose run somebody else has locked is left for the next time.
    """
    waiting = ExternalEvent.objects.filter(processed_at__isnull=True).order_by("received_at")
    ids = list(waiting.values_list("pk", flat=True)[:limit])
    done = 0
    for pk in ids:
        try:
            _process(pk)
        except Exception as problem:  # one event that nobody foresaw must not hold up the others
            if is_gone(problem=problem):
                raise
            if is_busy(problem=problem):
                continue
            log.exception("event %s could not be worked off", pk)
            _set_aside(pk, f"failed: {type(problem).__name__}")
        done += 1
    return done


def _set_aside(pk: Any, result: str) -> None:
    """Keep the event, with what came of it, out of the way of the rest."""
    with transaction.atomic(durable=True):
        ExternalEvent.objects.filter(pk=pk, processed_at=None).update(processed_at=clock.now(), result=result[:200])


def _process(pk: Any) -> None:
    event = ExternalEvent.objects.filter(pk=pk, processed_at=None).first()
    if event is not None and event.kind.startswith("invoice."):
        _set_aside(pk, _about_invoice(_object(event.payload)))
        return
    with transaction.atomic(durable=True):
        event = ExternalEvent.objects.select_for_update(skip_locked=True).filter(pk=pk, processed_at=None).first()
        if event is None:
            return
        thing = _object(event.payload)
        about_credit = event.kind.startswith("credit_note.")
        result = _about_credit(thing, kind=event.kind) if about_credit else "of no concern here"
        event.processed_at, event.result = clock.now(), result[:200]
        event.save(update_fields=["processed_at", "result"])


def _object(payload: Any) -> dict[str, Any]:
    """The object an event is about, or nothing where the payload is not shaped like one."""
    data = payload.get("data") if isinstance(payload, dict) else None
    thing = data.get("object") if isinstance(data, dict) else None
    return thing if isinstance(thing, dict) else {}


def unfit_amount(*, kind: str, payload: dict[str, Any]) -> tuple[str, str] | None:
    """The field of an event about a credit note that is no amount of money, and what it would have to be. None of its
    amounts is ever used; one that cannot be true says that the event is not what it seems."""
    thing = _object(payload)
    if not kind.startswith("credit_note."):
        return None
    amount, currency = thing.get("amount"), thing.get("currency")
    if "amount" in thing and (type(amount) is not int or not 0 < amount <= MAX_MINOR):
        return "data.object.amount", f"must be a whole number of minor units from 1 to {MAX_MINOR}"
    if "currency" in thing:
        try:
            currency_code(currency)
        except MoneyError as problem:
            return "data.object.currency", str(problem)
    return None


def _about_credit(thing: dict[str, Any], *, kind: str) -> str:
    metadata = thing.get("metadata")
    identity = metadata.get("operation_identity") if isinstance(metadata, dict) else None
    operation = Operation.objects.filter(identity=identity).first() if isinstance(identity, str) else None
    if operation is None:
        return "no operation of ours"
    run = Run.objects.select_for_update(of=("self",), nowait=True).get(pk=operation.run_id)
    operation = Operation.objects.select_for_update(of=("self",)).get(pk=operation.pk)
    record.append(
        run=run, kind="event.received", actor=principals.system(), operation=str(operation.pk), about="credit note"
    )
    if _is_known(operation, thing, kind):
        return "what it tells is recorded already"
    late.want_look(operation=operation, since=clock.now())
    transitions.wake(run=run)
    return "billing is asked about the operation"


def _is_known(operation: Operation, thing: dict[str, Any], kind: str) -> bool:
    """That the very credit was made which the operation is confirmed by: every one of ours is told so."""
    reference = str(thing.get("number") or thing.get("id") or "")
    made = kind == "credit_note.created" and thing.get("status") == "issued"
    return made and operation.state == OperationState.SUCCEEDED and operation.external_reference == reference


def _about_invoice(thing: dict[str, Any]) -> str:
    """One run a transaction, so that no two are ever locked at once; done again after a crash it does the same."""
    customer = thing.get("customer")
    if not isinstance(customer, str):
        return "names no customer"
    asking = ApprovalRequest.objects.filter(state=RequestState.OPEN, proposal__effect__customer=customer)
    run_ids = sorted(asking.values_list("run_id", flat=True))
    for run_id in run_ids:
        with transaction.atomic(durable=True):
            transitions.want_facts(run=Run.objects.select_for_update(of=("self",), nowait=True).get(pk=run_id))
    return f"{len(run_ids)} request(s) look at their facts again"
