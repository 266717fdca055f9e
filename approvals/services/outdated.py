"""Looking for requests that were asked under a policy that is not in force any more, once after each publication: their
runs are made due, and ask again where the one in force would ask something else. So nobody has to click to hear it."""

import uuid

from django.db import transaction
from django.db.models import Q

from approvals.models import ApprovalRequest, PolicyTool
from approvals.models.request import RequestState
from runs import transitions
from runs.models import Run
from runs.models.run import RunState

PART = 200  # runs made due at one look


class Look:
    """One looker's way through the open requests. It begins anew whenever another version is in force for a tool, and
    costs one small query while none is."""

    def __init__(self) -> None:
        self._in_force: frozenset[tuple[str, uuid.UUID | None]] | None = None
        self._after: uuid.UUID | None = None
        self._done = False
        self._locked: set[uuid.UUID] = set()

    def work_off(self, *, limit: int = PART) -> int:
        """Make the next part due; returns how many were. What somebody else has locked is left for the next look."""
        in_force = frozenset(PolicyTool.objects.values_list("tool", "policy__active"))
        if in_force != self._in_force:
            self._in_force, self._after, self._done = in_force, None, False
        again, self._locked = self._locked, set()
        return sum(self._wake(run_id) for run_id in [*again, *([] if self._done else self._next(limit))])

    def _next(self, limit: int) -> list[uuid.UUID]:
        """The runs of the next requests that another version asked than the one that governs their tool."""
        content = Q(pk__in=[])
        for tool, version in self._in_force or ():
            content |= Q(proposal__tool=tool, policy_version=version)
        there = ApprovalRequest.objects.filter(~content, state=RequestState.OPEN)
        there = there if self._after is None else there.filter(pk__gt=self._after)
        found = list(there.order_by("pk").values_list("pk", "run_id")[:limit])
        self._done, self._after = len(found) < limit, found[-1][0] if found else None
        return [run_id for _, run_id in found]

    def _wake(self, run_id: uuid.UUID) -> bool:
        with transaction.atomic(durable=True):
            run = Run.objects.select_for_update(of=("self",), skip_locked=True).filter(pk=run_id).first()
            if run is None:
                self._locked.add(run_id)
                return False
            if run.state != RunState.AWAITING_APPROVAL:
                return False
            transitions.wake(run=run)
            return True
