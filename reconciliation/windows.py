"""What a rule counts together with an action: everything proposed before it that has happened or may still. Reads only.

Proved without effect, or undone since, counts nothing; running, not confirmed and only proposed count in full, and what
was settled counts as it was really recorded.
"""

import datetime as dt
from collections.abc import Iterable

from django.db.models import Exists, OuterRef, Q

from approvals.evaluation import Counted, WindowNeed
from approvals.models import PolicyTool, Tally
from reconciliation.models import Operation
from reconciliation.models.operation import OperationState
from runs import clock
from runs.models import Proposal

NO_EFFECT = (OperationState.FAILED, OperationState.ABANDONED, OperationState.COMPENSATED)


def counted(*, proposal: Proposal, tools: Iterable[str] | None = None, as_of: dt.datetime | None = None) -> Counted:
    """For `approvals.evaluation.evaluate`. Proposals of `tools` count (those its policy governs), in the order in which
    they came before the policy; `as_of` reads what was known at a time, for trying a policy."""

    def count(need: WindowNeed) -> tuple[int, tuple[str, ...]]:
        governed = list(tools) if tools is not None else _governed_with(proposal.tool)
        total, ids = 0, []
        for one in _before(proposal, need, governed, as_of):
            amount = _counts(one, as_of)
            if amount:
                total += amount
                ids.append(str(one.proposal_id))
        return total, tuple(ids)

    return count


def _governed_with(tool: str) -> list[str]:
    same = PolicyTool.objects.filter(policy__tools__tool=tool)
    return list(same.values_list("tool", flat=True)) or [tool]


def _before(proposal: Proposal, need: WindowNeed, tools: list[str], as_of: dt.datetime | None) -> Iterable[Tally]:
    own = Tally.objects.filter(proposal=proposal, by=need.by).first()
    at = own.at if own is not None else as_of or clock.now()
    found = Tally.objects.filter(
        by=need.by,
        value=need.value,
        currency=need.currency,
        tool__in=tools,
        at__gte=at - dt.timedelta(hours=need.hours),
    )
    found = found.filter(pk__lt=own.pk) if own is not None else found.filter(at__lt=at)
    newer = Proposal.objects.filter(run=OuterRef("proposal__run"), number__gt=OuterRef("proposal__number"))
    if as_of is not None:
        newer = newer.filter(created_at__lte=as_of)
    replaced = Exists(newer)
    # of its own run only what was sent counts: the run does one thing after the other
    mine = Q(proposal__run=proposal.run_id, proposal__operation__isnull=True)
    found = found.exclude(proposal=proposal).exclude(mine).annotate(replaced=replaced)
    return found.select_related("proposal__run", "proposal__operation").order_by("pk")


def _counts(one: Tally, as_of: dt.datetime | None) -> int:
    """What it comes to, in minor units."""
    operation: Operation | None = getattr(one.proposal, "operation", None)
    if operation is not None and (as_of is None or operation.created_at <= as_of):
        known = as_of is None or (operation.settled_at is not None and operation.settled_at <= as_of)
        if not known:
            return one.amount_minor
        if operation.state in NO_EFFECT:
            return 0
        return (operation.real_minor or one.amount_minor) + (operation.other_minor or 0)
    finished = one.proposal.run.finished_at
    over = finished is not None and (as_of is None or finished <= as_of)
    return 0 if over or one.replaced else one.amount_minor  # type: ignore[attr-defined]  # annotated
