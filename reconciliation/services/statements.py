"""Statements as people ask for them: reading a period, taking a file in, saying what its columns mean, noting what is
nobody's here. Each is one durable transaction; the lines themselves are read by a worker (`statement_reading`)."""

import datetime as dt
import hashlib
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from reconciliation import csvfile
from reconciliation.columns import Columns
from reconciliation.models import Difference, Statement, StatementFile
from reconciliation.models.case import SETTLE
from runs import clock, record, rights
from runs.models import Principal
from runs.nudging import nudge_relay
from runs.texts import one_line
from runs.tools.registry import LEDGERS, ledger

LONGEST = dt.timedelta(days=400)
TOPIC = "statements"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementResult:
    """`code` is ok, or the refusal: no_right; of a period: no_ledger, period_empty, period_too_long, period_not_over
    (`detail` has the seconds to wait); of a file: empty_file, too_large, not_text, no_header, too_many_lines; of
    columns: not_waiting, unlike_columns; of stopping and continuing: reason_needed, not_going, not_stopped; of a note:
    evidence_needed, noted_before (`detail` says by whom)."""

    code: str
    statement: Statement | None = None
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.code == "ok"


def start_reading(*, system: str, since: dt.datetime, until: dt.datetime, principal: Principal) -> StatementResult:
    """Ask for all that the system recorded from `since` to just before `until`. The period must be over, so that the
    list is complete."""
    if system not in LEDGERS:
        return StatementResult(code="no_ledger")
    if until <= since:
        return StatementResult(code="period_empty")
    if until - since > LONGEST:
        return StatementResult(code="period_too_long")
    left = until + ledger(system).settling - clock.now()
    if left > dt.timedelta(0):
        return StatementResult(code="period_not_over", detail={"seconds": round(left.total_seconds() + 0.5)})
    with transaction.atomic(durable=True):
        if not rights.entitled_held(principal=principal, permission=SETTLE):
            return StatementResult(code=rights.NO_RIGHT)
        made = Statement.objects.create(
            system=system, source=Statement.Source.READ, since=since, until=until, asked_by=principal,
            due_at=clock.now(),
        )  # fmt: skip
        record.append_system(
            topic=TOPIC, kind="statement.asked", actor=principal, statement=made.label, system=system,
            since=since.isoformat(), until=until.isoformat(),
        )  # fmt: skip
        nudge_relay()
        return StatementResult(code="ok", statement=made)


def take_file(*, system: str, name: str, content: bytes, principal: Principal) -> StatementResult:
    """Keep a file, to the byte, until somebody says what its columns mean. `detail["before"]` names an earlier
    statement out of the very same bytes, if there is one; it is taken in all the same."""
    try:
        text = csvfile.read(content=content)
    except csvfile.NotReadable as problem:
        return StatementResult(code=problem.code)
    digest = hashlib.sha256(content).hexdigest()
    with transaction.atomic(durable=True):
        if not rights.entitled_held(principal=principal, permission=SETTLE):
            return StatementResult(code=rights.NO_RIGHT)
        before = StatementFile.objects.filter(digest=digest).select_related("statement").order_by("pk").last()
        made = Statement.objects.create(system=system, source=Statement.Source.FILE, asked_by=principal)
        StatementFile.objects.create(
            statement=made,
            name=one_line(text=name, limit=200) or "unnamed",
            content=content,
            size=len(content),
            digest=digest,
            encoding=text.encoding,
            delimiter=text.delimiter,
            header=list(text.header),
        )
        record.append_system(
            topic=TOPIC, kind="statement.uploaded", actor=principal, statement=made.label, system=system, digest=digest
        )
        detail = {"before": before.statement.label} if before else {}
        return StatementResult(code="ok", statement=made, detail=detail)


def set_columns(*, number: int, columns: Columns, principal: Principal) -> StatementResult:
    """Say what the columns of a file mean; a worker takes its lines in from then on. Once a statement."""
    with transaction.atomic(durable=True):
        if not rights.entitled_held(principal=principal, permission=SETTLE):
            return StatementResult(code=rights.NO_RIGHT)
        found = Statement.objects.select_for_update().get(pk=number)
        if found.stage != "columns":
            return StatementResult(code="not_waiting", statement=found)
        width = len(StatementFile.objects.values_list("header", flat=True).get(pk=number))
        places = (columns.reference, columns.amount, columns.at, columns.currency, columns.identity, columns.account)
        if any(one is not None and not 0 <= one < width for one in (*places, columns.status)):
            return StatementResult(code="unlike_columns", statement=found)
        found.columns, found.due_at = columns.plain(), clock.now()
        found.save(update_fields=["columns", "due_at"])
        record.append_system(
            topic=TOPIC, kind="statement.columns", actor=principal, statement=found.label, columns=columns.plain()
        )
        nudge_relay()
        return StatementResult(code="ok", statement=found)


def note(*, difference_id: int, evidence: str, principal: Principal) -> StatementResult:
    """Note what became of an effect under our name that no operation here has. Nothing is sent."""
    if not evidence.strip():
        return StatementResult(code="evidence_needed")
    with transaction.atomic(durable=True):
        if not rights.entitled_held(principal=principal, permission=SETTLE):
            return StatementResult(code=rights.NO_RIGHT)
        found = Difference.objects.select_for_update(of=("self",)).get(pk=difference_id, case__isnull=True)
        if found.noted_at is not None:
            return StatementResult(code="noted_before", detail={"by": str(found.noted_by)})
        found.evidence, found.noted_by, found.noted_at = evidence.strip(), principal, clock.now()
        found.save(update_fields=["evidence", "noted_by", "noted_at"])
        record.append_system(
            topic=TOPIC, kind="statement.noted", actor=principal, statement=found.statement.label,
            difference=found.key, evidence=found.evidence,
        )  # fmt: skip
        return StatementResult(code="ok", statement=found.statement)
