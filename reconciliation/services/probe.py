"""Asking the other side what it has recorded under an operation's identity, outside any transaction."""

from reconciliation.models import Observation, Operation
from reconciliation.services import gates, lookups
from runs import faultpoints
from runs.models import Principal
from runs.tools.base import Lookup, Tool, Unreachable


def ask(*, operation: Operation, connector: Tool, actor: Principal) -> Observation:
    """Look the operation up and record the answer, which settles it where it is clear. The time is read before the
    question is put. Whether the system answers is told to all workers; nobody is kept from asking here, and the engine
    looks at `gates.may_read` first. Takes as long as the connector's limits allow, so never call it inside a
    transaction."""
    system = connector.contract.system
    asked_at, states = gates.look(names=[system])
    found: Lookup | None = None
    down: Unreachable | None = None
    try:
        found = connector.look_up(effect=operation.effect, identity=operation.identity)
    except Unreachable as problem:
        down = problem
    faultpoints.reach("probe.asked")
    troubled = frozenset(name for name, state in states.items() if state.failures)
    gates.heard_reading(systems=[system], go=gates.Go(now=asked_at, troubled=troubled), problem=down)
    observation = lookups.record_lookup(
        operation_id=operation.pk,
        lookup=found,
        problem=str(down or ""),
        asked_at=asked_at,
        contract=connector.contract,
        actor=actor,
    )
    faultpoints.reach("probe.recorded.after")
    return observation
