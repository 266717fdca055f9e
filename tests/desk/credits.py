"""Credits at billing, as people make and void them there."""

from itertools import count

from reconciliation.models import Operation
from runs.tools.billing.client import client
from runs.tools.registry import connection, tool
from tests.engine.conftest import World

_strays = count(1)


def note_id(world: World, number: int = 0) -> str:
    """Billing's id of the credit note that was made as the `number`th."""
    return str(world.credits()[number]["objects"]["credit_note"])


def reference(world: World, number: int = 0) -> str:
    """Its number, which people and our record know it by."""
    with client(connection("billing")) as billing:
        return str(billing.v1.credit_notes.retrieve(note_id(world, number)).number)


def void(world: World, number: int = 0) -> None:
    with client(connection("billing")) as billing:
        billing.v1.credit_notes.void_credit_note(note_id(world, number))


def again(operation: Operation) -> str:
    """A real further credit under our identity, as from a receiver that did not keep the key. Its reference."""
    stray = f"{operation.identity}:stray-{next(_strays)}"
    return tool(operation.tool).send(effect=operation.effect, identity=operation.identity, wire_key=stray).reference
