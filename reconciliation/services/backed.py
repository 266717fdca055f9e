"""Settling several cases at once, each by a line of its own in a statement. Only one verdict is given so: it happened,
as sent. Each case is a transaction of its own, after the other side was asked about it, and holds up no other. Where
the amount takes two people, the first one's is proposed, and the second confirms what was proposed of each."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from django.db.models import F

from reconciliation.models import Case, ProposedVerdict, Statement, StatementLine
from reconciliation.models.case import UNRESOLVED
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
    """An open case, the one line of the statement that carries its operation's identity and its amount, and the verdict
    that waits for a second person, if one was proposed."""

    case: Case
    line: StatementLine
    proposed: ProposedVerdict | None = None

    @property
    def proposed_otherwise(self) -> bool:
        """What was proposed is not what the line says, so it is no matter for several at once."""
        one = self.proposed
        return one is not None and (one.verdict, one.reference) != (V.HAPPENED, self.line.reference)

    @property
    def evidence(self) -> str:
        line = self.line
        assert line.amount_minor is not None and line.at is not None
        amount = Money(line.amount_minor, line.currency)
        where = f"{line.statement.label}, line {line.number}"
        return f"{where}: {line.reference} of {amount}, recorded {line.at:%Y-%m-%d %H:%M} UTC under our identity"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """`code` as of `cases.settle` and `cases.confirm` (`confirmed`: by the second person), or left (there was no time
    for it), not_backed (no line of its own backs it), proposed_since (by another person, not as it was shown), or
    proposed_otherwise (its proposed verdict is another one)."""

    number: int
    code: str
    detail: dict[str, Any] = field(default_factory=dict)
    confirmed: bool = False


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
    open_ones = Case.objects.filter(UNRESOLVED, operation__in=list(alone))
    for case in open_ones.select_related("operation__run", "claimed_by").order_by("number"):
        found.setdefault(case.operation_id, case)
    waiting = ProposedVerdict.objects.filter(case__in=list(found.values())).select_related("proposed_by")
    newest = {one.case_id: one for one in waiting.order_by("number")}
    return [
        Backed(case=case, line=alone[operation_id], proposed=newest.get(case.pk))
        for operation_id, case in found.items()
    ]


def settle(
    *, statement: Statement, numbers: Iterable[int], principal: Principal, digests: Mapping[int, str] | None = None
) -> list[Settled]:
    """Record "it happened" for each of these cases that a line of its own backs, at most `MOST`, one after the other.
    What another person has proposed is confirmed, bound to its digest as it was shown: `digests` by the case's number.

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
            results.append(_settle(known[number], principal, (digests or {}).get(number, "")))
    return results


def _settle(one: Backed, principal: Principal, shown: str) -> Settled:
    number, operation, proposed = one.case.pk, one.case.operation, one.proposed
    if proposed is not None and one.proposed_otherwise:
        return Settled(number=number, code="proposed_otherwise", detail={"by": str(proposed.proposed_by)})
    if proposed is not None and proposed.proposed_by_id == principal.pk:
        return Settled(number=number, code="own_proposal")
    if proposed is not None and proposed.digest != shown:
        return Settled(number=number, code="proposed_since", detail={"by": str(proposed.proposed_by)})
    claimed = cases.claim(case_number=number, principal=principal)
    if not claimed.ok:
        return Settled(number=number, code=claimed.code, detail=claimed.detail)
    contract: Contract | None = None
    with suppress(UnknownTool):
        connector = tool(operation.tool)
        contract = connector.contract
        probe.ask(operation=operation, connector=connector, actor=principal)
    if proposed is not None:
        result = cases.confirm(case_number=number, principal=principal, contract=contract, digest=shown)
    else:
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
    return Settled(number=number, code=result.code, detail=result.detail, confirmed=result.ok and proposed is not None)
