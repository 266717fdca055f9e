"""What the broker may ask of a worker: one thing, and asking for it twice, late or wrongly does no harm."""

import logging
import uuid
from functools import partial

from django.db import connection

from agentops import engine
from agentops.celery import app
from agentops.patience import patiently

log = logging.getLogger(__name__)


@app.task(name="agentops.advance")
def advance(run_id: str) -> int:
    """Advance a run if it is due. A forged or foreign id finds nothing to do."""
    try:
        wanted = uuid.UUID(run_id)
    except (ValueError, AttributeError, TypeError):
        log.warning("a message named no run: %.80r", run_id)
        return 0
    connection.close_if_unusable_or_obsolete()
    # a worker that gave up at once would use up every hint there is while the database is away
    return patiently(partial(engine.advance, run_id=wanted))
