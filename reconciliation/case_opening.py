"""Opening a case, once per operation and kind (what differs about a settled operation is one case, whichever kind was
found first), and closing it when asking the other side has settled the matter.
What comes to light while it is open is added to it: nothing that it says is ever replaced.

Building blocks inside the caller's transaction: the run and the operation are locked.
"""

from collections.abc import Sequence

from reconciliation.models import Case, Operation
from reconciliation.models.case import OF_THEIR_RECORD, UNRESOLVED
from runs import clock, hot, record
from runs.models import Principal, Run


def open_case(
    *, run: Run, operation: Operation, kind: Case.Kind, doubts: Sequence[str], why: str, actor: Principal
) -> Case:
    """`doubts` are the codes of what is doubted, kept with the case. One that has them all is told nothing again, in
    whichever words `why` says it; each code names the thing it is about, so that another one is another doubt."""
    kinds = OF_THEIR_RECORD if operation.is_settled and kind in OF_THEIR_RECORD else {kind}
    found = Case.objects.select_for_update(of=("self",)).filter(operation=operation, kind__in=kinds)
    if (already := found.filter(UNRESOLVED).order_by("number").first()) is not None:
        if new := [one for one in doubts if one not in already.doubts]:
            already.doubts += new
            already.why = f"{already.why}; {why}"
            already.save(update_fields=["doubts", "why"])
            record.append(
                run=run, kind="case.added", actor=actor, case=already.label, why=why, operation=str(operation.pk)
            )  # fmt: skip
        return already
    case = Case.objects.create(operation=operation, kind=kind, why=why, doubts=list(doubts))
    record.append(
        run=run,
        kind="case.opened",
        actor=actor,
        case=case.label,
        case_kind=str(kind),
        why=why,
        operation=str(operation.pk),
    )
    return case


_OPEN = hot.Query(
    lambda operation: Case.objects.select_for_update(of=("self",)).filter(UNRESOLVED, operation=operation)
)


def resolve_by_probe(*, run: Run, operation: Operation, evidence: str, actor: Principal) -> None:
    """Every open case about this operation is answered by what the other side has recorded."""
    for case in _OPEN(operation=operation.pk):
        resolve(run=run, case=case, verdict=Case.Verdict.BY_PROBE, evidence=evidence, actor=actor)


def resolve(
    *,
    run: Run,
    case: Case,
    verdict: Case.Verdict,
    evidence: str,
    actor: Principal,
    confirmed_by: Principal | None = None,
) -> None:
    """`actor` is whose verdict it is, `confirmed_by` who else was needed for it; the last of them acts here."""
    case.resolve()
    case.verdict, case.evidence, case.resolved_by, case.resolved_at = verdict, evidence, actor, clock.now()
    case.confirmed_by = confirmed_by
    case.save(update_fields=["state", "verdict", "evidence", "resolved_by", "resolved_at", "confirmed_by"])
    record.append(
        run=run, kind="case.resolved", actor=confirmed_by or actor, case=case.label, verdict=str(verdict),
        evidence=evidence, operation=str(case.operation_id), **({"proposed_by": str(actor)} if confirmed_by else {}),
    )  # fmt: skip
