"""What others do at billing, and what billing tells of it."""

import itertools
import json

from django.db import transaction

from agentops.events import process_events
from reconciliation import late, moves
from reconciliation.models import Case, Operation
from reconciliation.services import looks, lookups
from runs import clock
from runs.models import Run
from runs.services import principals
from runs.tools.base import Lookup, Record
from runs.tools.billing.client import client
from runs.tools.registry import connection, tool
from tests.api.caller import deliver, event
from tests.engine.conftest import World

_numbers = itertools.count(1)


def open_cases(run: Run) -> list[str]:
    return [one.why for one in Case.objects.filter(operation__run=run).exclude(state="resolved")]


def note(number: int, world: World) -> str:
    return str(world.credits()[number]["objects"]["credit_note"])


def void(note_id: str) -> None:
    with client(connection("billing")) as billing:
        billing.v1.credit_notes.void_credit_note(note_id)


def tell(operation: Operation, note_id: str, kind: str = "credit_note.created") -> None:
    """Billing's own event about the credit note as it is now, signed, and worked off."""
    with client(connection("billing")) as billing:
        thing = billing.v1.credit_notes.retrieve(note_id).to_dict(for_json=True)
    body = event(f"evt_outside_{next(_numbers)}", kind, json.loads(json.dumps(thing, default=str)))
    assert thing["metadata"]["operation_identity"] == operation.identity
    assert deliver(body).status_code == 200
    process_events(limit=10)


def look_at_what_is_due() -> int:
    """As the relay has workers do it; how many operations were asked about."""
    return sum(looks.look(operation_id=wanted) is not None for wanted in looks.due(limit=10))


def again(operation: Operation) -> str:
    """A real second credit under our identity, as from a receiver that did not keep the key. Its reference."""
    stray = f"{operation.identity}:stray{next(_numbers)}"
    return tool(operation.tool).send(effect=operation.effect, identity=operation.identity, wire_key=stray).reference


def want_look(operation: Operation) -> None:
    """As an event does."""
    with transaction.atomic():
        late.want_look(operation=moves.lock(operation_id=operation.pk)[1], since=clock.now())


def lookup_brings(operation: Operation, *records: Record) -> None:
    """Somebody asks, and is shown these, whatever billing has."""
    lookups.record_lookup(
        operation_id=operation.pk,
        lookup=Lookup(records=records, pages=1),
        problem="",
        asked_at=clock.now(),
        contract=tool(operation.tool).contract,
        actor=principals.system(),
    )
