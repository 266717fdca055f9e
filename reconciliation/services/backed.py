"""Settling several cases at once, each by a line of its own in a statement. Only one verdict is given so: it happened,
as sent. Each case is a transaction of its own, after the other side was asked about it, and holds up no other."""

import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from django.db.models import F

from reconciliation.models import Case, Statement, StatementLine
from reconciliation.models.case import CaseState
from reconciliation.models.operation import UNCONFIRMED
from reconciliation.services import cases, probe
from reconciliation.verdicts import V
from runs.models import Principal
from runs.money import Money
from runs.tools.base import Contract
from runs.tools.registry import UnknownTool, tool

MOST = 50
SECONDS = 20.0  # then the rest is left for another go


@dataclass(frozen=True, slots=True, kw_only=True)
class Backed:
    """An open case, and the one line of the statement that carries its operation's identity and its amount."""

    case: Case
    line: StatementLine

    @property
    def evidence(self) -> str:
        line = self.line
        assert line.amount_minor is not None and line.at is not None
        amount = Money(line.amount_minor, line.currency)
        where = f"{line.statement.label}, line {line.number}"
        return f"{where}: {line.reference} of {amount}, recorded {line.at:%Y-%m-%d %H:%M} UTC under our identity"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """`code` as of `cases.settle`, or left (there was no time for it), or not_backed (no line of its own backs it)."""

    number: int
    code: str
    detail: dict[str, Any] = field(default_factory=dict)


def backed(*, statement: Statement) -> list[Backed]:
    """Open cases that this statement backs, the oldest first: one line, and no second one about the same operation or
    under the same name."""
    lines = statement.lines.filter(operation__state__in=UNCONFIRMED).select_related("operation", "statement")
    as_sent = lines.filter(
        identity=F("operation__identity"),
        amount_minor=F("operation__amount_minor"),
        currency=F("operation__currency"),
        void=False,
    ).order_by("number")
    ours = list(lines.values_list("operation_id", "reference"))
    operations: Counter[Any] = Counter(one for one, _ in ours)
    names = Counter(name for _, name in ours)
    alone = {
        one.operation_id: one for one in as_sent if operations[one.operation_id] == 1 and names[one.reference] == 1
    }
    found: dict[Any, Case] = {}
    open_ones = Case.objects.filter(operation__in=list(alone)).exclude(state=CaseState.RESOLVED)
    for case in open_ones.select_related("operation__run", "claimed_by").order_by("number"):
        found.setdefault(case.operation_id, case)
    return [Backed(case=case, line=alone[operation_id]) for operation_id, case in found.items()]


def settle(*, statement: Statement, numbers: Iterable[int], principal: Principal) -> list[Settled]:
    """Record "it happened" for each of these cases that a line of its own backs, at most `MOST`, one after the other.

    Takes as long as asking takes, so never call it inside a transaction. Whoever goes on after a crash repeats nothing:
    what is settled is backed no more.
    """
    known = {one.case.pk: one for one in backed(statement=statement)}
    until, results = time.monotonic() + SECONDS, []
    for number in list(dict.fromkeys(numbers))[:MOST]:
        if number not in known:
            results.append(Settled(number=number, code="not_backed"))
        elif time.monotonic() > until:
            results.append(Settled(number=number, code="left"))
        else:
            results.append(_settle(known[number], principal))
    return results


def _settle(one: Backed, principal: Principal) -> Settled:
    number, operation = one.case.pk, one.case.operation
    claimed = cases.claim(case_number=number, principal=principal)
    if not claimed.ok:
        return Settled(number=number, code=claimed.code, detail=claimed.detail)
    contract: Contract | None = None
    with suppress(UnknownTool):
        connector = tool(operation.tool)
        contract = connector.contract
        probe.ask(operation=operation, connector=connector, actor=principal)
    result = cases.settle(
        case_number=number,
        principal=principal,
        contract=contract,
        verdict=V.HAPPENED,
        evidence=one.evidence,
        reference=one.line.reference,
    )
    if not result.ok and result.code != "proposed":
        cases.release(case_number=number, principal=principal)  # refused where it is settled by now
    return Settled(number=number, code=result.code, detail=result.detail)
