"""What the broker may ask of a worker: three things, and asking for them twice, late or wrongly does no harm."""

import logging
import uuid
from functools import partial

from django.db import connection

from agentops import engine
from agentops.celery import app
from agentops.patience import patiently
from reconciliation.services import looks, statement_reading

log = logging.getLogger(__name__)
STATEMENT_SECONDS = 5.0  # of work on one statement at one go; then the worker is free for runs


@app.task(name="agentops.advance")
def advance(run_id: str) -> int:
    """Advance a run if it is due. A forged or foreign id finds nothing to do."""
    wanted = _id(run_id, "run")
    # a worker that gave up at once would use up every hint there is while the database is away
    return 0 if wanted is None else patiently(partial(engine.advance, run_id=wanted))


@app.task(name="agentops.look")
def look(operation_id: str) -> int:
    """Look up a settled operation if that is due; 1 when it was asked about. Sends nothing."""
    wanted = _id(operation_id, "operation")
    return 0 if wanted is None else int(looks.look(operation_id=wanted) is not None)


@app.task(name="agentops.read_statement")
def read_statement(number: int) -> int:
    """Go on with a statement if it is due. A forged or foreign number finds nothing to do."""
    if type(number) is not int or not 0 < number < 2**63:
        log.warning("a message named no statement: %.80r", number)
        return 0
    connection.close_if_unusable_or_obsolete()
    return patiently(partial(statement_reading.work, number=number, seconds=STATEMENT_SECONDS))


def _id(text: str, what: str) -> uuid.UUID | None:
    try:
        wanted = uuid.UUID(text)
    except (ValueError, AttributeError, TypeError):
        log.warning("a message named no %s: %.80r", what, text)
        return None
    connection.close_if_unusable_or_obsolete()
    return wanted
