"""After a correction: whoever was told something else is to be told. A run that drafts a reply is started, once."""

import datetime as dt
import logging

from django.db.models import CharField, Exists, OuterRef, Value
from django.db.models.functions import Cast, Concat

from agentops.busy import is_busy, is_gone
from agentops.starting import start_workflow
from reconciliation.models import Correction, Operation
from reconciliation.models.operation import OperationState
from runs import clock
from runs.models import Run
from runs.money import Money
from runs.tools.helpdesk.contract import DRAFT_REPLY

log = logging.getLogger(__name__)
PREFIX = "correction:"
NOT_OLDER = dt.timedelta(days=30)  # what was put right before this existed, or long ago, starts nothing


class NotStarted(Exception):
    """Some could not be started; all the others were."""


def start_notices(*, limit: int) -> int:
    """Start a run for each correction whose customer had been written to; returns how many. The correction's own
    number is the start key, so it is one run, whoever starts it.

    Raises NotStarted, after the rest, for those that failed in a way that nobody foresaw; they are tried again.
    """
    told = Operation.objects.filter(run=OuterRef("operation__run"), tool=DRAFT_REPLY.name, state="succeeded")
    started = Run.objects.filter(start_key=Concat(Value(PREFIX), Cast(OuterRef("pk"), CharField())))
    due = Correction.objects.filter(Exists(told), ~Exists(started), at__gt=clock.now() - NOT_OLDER)
    due = due.exclude(operation__tool=DRAFT_REPLY.name).select_related("operation__run", "case", "corrected_by")
    done, failed = 0, []
    for entry in due.order_by("pk")[:limit]:
        try:
            _start(entry)
        except Exception as problem:
            if is_gone(problem=problem):
                raise
            if not is_busy(problem=problem):
                log.exception("no notice could be started for %s", entry)
                failed.append(f"{entry.case.label} ({problem})")
            continue
        done += 1
    if failed:
        raise NotStarted(f"{len(failed)} of {done + len(failed)}, the first of them for {failed[0]}")
    return done


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
    sent = Operation.objects.filter(run=operation.run_id, tool=DRAFT_REPLY.name, state="succeeded").latest("created_at")
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
