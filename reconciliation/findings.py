"""What a lookup brought: how it is kept, and what it says. Reads nothing and writes nothing."""

import datetime as dt
from typing import Any

from reconciliation.classification import Sent, absence_is_conclusive
from reconciliation.comparison import label_of
from reconciliation.models import Observation
from runs.tools.base import Contract, Lookup

F = Observation.Finding


def as_found(lookup: Lookup) -> dict[str, Any]:
    """What a lookup brought, as it is kept: each record with their reference and what differs from what was sent."""
    records = [
        {
            "reference": one.reference,
            "also": list(one.also),
            "identity": one.identity,
            "at": one.at.isoformat() if one.at else "",
            "void": one.void,
            "pending": one.pending,
            "mismatch": {name: list(pair) for name, pair in one.mismatch.items()},
            "raw": one.raw,
        }
        for one in lookup.records
    ]
    return {**lookup.raw, "records": records}


def finding_of(
    *,
    lookup: Lookup | None,
    problem: str,
    asked_at: dt.datetime,
    contract: Contract,
    attempts: list[Sent],
    seen: bool,
) -> tuple[F, str, bool]:
    """What a lookup found, in words, and whether that is conclusive; `lookup` None and `problem`: nobody answered."""
    if lookup is None:
        return F.UNREACHABLE, problem, False
    if not lookup.records:
        conclusive = absence_is_conclusive(contract=contract, attempts=attempts, asked_at=asked_at, seen=seen)
        words = "proof that nothing happened" if conclusive else "not yet proof: it may still appear"
        return F.ABSENT, f"none recorded under this identity ({words})", conclusive
    if len(lookup.records) > 1:
        return F.SEVERAL, f"{len(lookup.records)} recorded: {', '.join(one.reference for one in lookup.records)}", True
    one = lookup.records[0]
    if one.mismatch:
        differing = ", ".join(label_of(key).lower() for key in one.mismatch)
        return F.DIFFERENT, f"one recorded, {one.reference}, but not as sent: {differing}", True
    if one.pending:
        return F.FOUND, f"exactly one recorded, {one.reference}, taken on and not final yet", False
    return F.FOUND, f"exactly one recorded, {one.reference}, as sent", True
