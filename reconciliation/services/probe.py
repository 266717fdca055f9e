"""Asking the other side what it has recorded under an operation's identity, outside any transaction."""

from reconciliation.models import Observation, Operation
from reconciliation.services import settle
from runs import clock, faultpoints
from runs.models import Principal
from runs.tools.base import Lookup, Tool, Unreachable


def ask(*, operation: Operation, connector: Tool, actor: Principal) -> Observation:
    """Look the operation up and record the answer, which settles it where it is clear. The time is read before the
    question is put. Takes as long as the connector's limits allow, so never call it inside a transaction."""
    asked_at = clock.now()
    found: Lookup | None = None
    problem = ""
    try:
        found = connector.look_up(effect=operation.effect, identity=operation.identity)
    except Unreachable as down:
        problem = str(down)
    faultpoints.reach("probe.asked")
    observation = settle.record_lookup(
        operation_id=operation.pk,
        lookup=found,
        problem=problem,
        asked_at=asked_at,
        contract=connector.contract,
        actor=actor,
    )
    faultpoints.reach("probe.recorded.after")
    return observation
