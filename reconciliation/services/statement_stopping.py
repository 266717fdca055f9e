"""Stopping a statement before it is finished, and continuing it. What was read and judged stays; whatever a worker has
in hand at that moment is dropped and done again later. What is not whole never says that something is missing."""

from django.db import connection, transaction

from reconciliation.models import Statement
from reconciliation.models.case import SETTLE
from reconciliation.services.statements import TOPIC, StatementResult
from runs import clock, record, rights
from runs.models import Principal
from runs.nudging import nudge_relay
from runs.texts import typed

GOES_ON = frozenset({"reading", "matching", "comparing"})


def stop(*, number: int, reason: str, principal: Principal) -> StatementResult:
    """Let no worker go on with it. Refused with reason_needed, no_right, not_going (it is finished, was stopped before,
    or waits for its columns; `detail` has its stage and who stopped it)."""
    reason = typed(text=reason)
    if not reason:
        return StatementResult(code="reason_needed")
    with transaction.atomic(durable=True):
        if not rights.entitled_held(principal=principal, permission=SETTLE):
            return StatementResult(code=rights.NO_RIGHT)
        found = Statement.objects.select_for_update(of=("self",)).select_related("stopped_by").get(pk=number)
        if found.stage not in GOES_ON:
            return StatementResult(
                code="not_going", statement=found, detail={"stage": found.stage, "by": str(found.stopped_by)}
            )
        part, lines = found.stage, found.lines.count()
        found.stopped_at, found.stopped_by, found.stopped_because = clock.now(), principal, reason
        found.due_at = None
        found.save(update_fields=["stopped_at", "stopped_by", "stopped_because", "due_at"])
        record.append_system(
            topic=TOPIC, kind="statement.stopped", actor=principal, statement=found.label, reason=reason, part=part,
            pages=found.pages, lines=lines,
        )  # fmt: skip
        return StatementResult(code="ok", statement=found)


def held_going(*, statement: Statement) -> bool:
    """Whether it goes on. Its row is held FOR SHARE until the transaction ends, so whoever stops it meanwhile waits,
    and once they have committed nothing of it is written."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT stopped_at IS NULL FROM reconciliation_statement WHERE number = %s FOR SHARE", [statement.pk]
        )
        row = cursor.fetchone()
    return row is not None and row[0]


def go_on(*, number: int, principal: Principal) -> StatementResult:
    """Have a worker go on where it was stopped. Refused with no_right, not_stopped."""
    with transaction.atomic(durable=True):
        if not rights.entitled_held(principal=principal, permission=SETTLE):
            return StatementResult(code=rights.NO_RIGHT)
        found = Statement.objects.select_for_update(of=("self",)).get(pk=number)
        if found.stage != "stopped":
            return StatementResult(code="not_stopped", statement=found)
        found.stopped_at, found.due_at, found.problem, found.failures = None, clock.now(), "", 0
        found.save(update_fields=["stopped_at", "due_at", "problem", "failures"])
        record.append_system(
            topic=TOPIC, kind="statement.continued", actor=principal, statement=found.label, part=found.part
        )
        nudge_relay()
        return StatementResult(code="ok", statement=found)
