"""After a correction: whoever was told something else is to be told. A run that drafts a reply is started, once."""

import datetime as dt

from django.db.models import CharField, Exists, OuterRef, Value
from django.db.models.functions import Cast, Concat

from agentops.starting import start_workflow
from reconciliation.models import Correction, Operation
from reconciliation.models.operation import OperationState
from runs import clock, one_by_one
from runs.models import Run
from runs.money import Money
from runs.tools.helpdesk.contract import DRAFT_REPLY

PREFIX = "correction:"
NOT_OLDER = dt.timedelta(days=30)  # what was put right before this existed, or long ago, starts nothing


def start_notices(*, limit: int) -> int:
    """Start a run for each correction whose customer had been written to; returns how many. The correction's own
    number is the start key, so it is one run, whoever starts it.

    Raises `one_by_one.NotAll`; those it names are tried again.
    """
    told = Operation.objects.filter(
        run=OuterRef("operation__run"), tool=DRAFT_REPLY.name, state=OperationState.SUCCEEDED
    )
    started = Run.objects.filter(start_key=Concat(Value(PREFIX), Cast(OuterRef("pk"), CharField())))
    due = Correction.objects.filter(Exists(told), ~Exists(started), at__gt=clock.now() - NOT_OLDER)
    due = due.exclude(operation__tool=DRAFT_REPLY.name).select_related("operation__run", "case", "corrected_by")
    return one_by_one.work_off(
        items=due.order_by("pk")[:limit], do=_start, name=lambda entry: f"the notice for {entry.case.label}"
    )


def _start(entry: Correction) -> None:
    start_workflow(
        name="correction_notice",
        data=_notice(entry),
        initiator=entry.corrected_by,
        start_key=f"{PREFIX}{entry.pk}",
        from_within=True,
    )


def _notice(entry: Correction) -> dict[str, str]:
    """What the reply says, from our record as it stands; the draft that was written before says on which ticket."""
    operation = entry.operation
    sent = Operation.objects.filter(run=operation.run_id, tool=DRAFT_REPLY.name, state=OperationState.SUCCEEDED).latest(
        "created_at"
    )
    before = entry.before.get("external_reference") or operation.identity
    body = f"Hello,\n\nwe have to correct what we wrote to you before. {_now(operation, before)}\n\nKind regards"
    subject = f"Correction {entry.case.label}: {sent.effect['subject']}"[:150]
    return {"case": entry.case.label, "ticket": sent.effect["ticket"], "subject": subject, "body": body}


def _now(operation: Operation, before: str) -> str:
    if operation.state != OperationState.SUCCEEDED:  # it may have been reversed by now
        return (
            f"What we told you about, {before}, does not stand. We are looking into what follows and will write again."
        )
    money = Money(operation.real_minor, operation.currency).display() if operation.real_minor else ""
    amount = f" Its amount is {money}." if money else ""
    return f"It is recorded as {operation.external_reference}.{amount}"
