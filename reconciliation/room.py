"""Whether running totals and standing approvals have room for an action; part of the sender's transaction."""

from approvals import standing
from approvals.evaluation import TotalNeed
from approvals.models import Allowance
from approvals.objections import Objection
from reconciliation import moves


def lacking(*, totals: list[TotalNeed]) -> Objection | None:
    """Lock every total the action counts towards, and say which has no room: over_limit, or standing_over for what an
    approval given beforehand allows."""
    missing = {
        one.key: Allowance(
            key=one.key,
            label=one.label,
            currency=one.currency,
            limit_minor=one.limit_minor,
            count_limit=one.count_limit,
        )
        for one in totals
    }
    locked = moves.lock_allowances(keys=missing, missing=missing)
    for total in sorted(totals, key=lambda one: one.key):
        row = locked[total.key]
        if total.count_limit is not None:
            if not standing.fits(row=row, need=total):
                return Objection(code="standing_over", detail={"why": f"{total.label} is used up"})
            continue
        if row.limit_minor != total.limit_minor and total.limit_minor >= row.reserved_minor + row.settled_minor:
            row.limit_minor = total.limit_minor
            row.save(update_fields=["limit_minor"])
        if row.reserved_minor + row.settled_minor + total.amount_minor > min(row.limit_minor, total.limit_minor):
            return Objection(code="over_limit", detail={"why": f"{total.label} would be exceeded"})
    return None
