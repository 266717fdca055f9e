"""Telling watching browsers that a run has more events. A hint carries a number, never data, and may be lost."""

import asyncio
import logging
import uuid

import redis.exceptions
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer

log = logging.getLogger(__name__)
LIMIT_SECONDS = 1.0


def group_name(run_id: uuid.UUID | str) -> str:
    return f"run.{run_id}"


async def _send(run_id: uuid.UUID, seq: int) -> None:
    layer = get_channel_layer()
    if layer is not None:
        message = {"type": "run.hint", "seq": seq}
        await asyncio.wait_for(layer.group_send(group_name(run_id), message), LIMIT_SECONDS)


def publish(*, run_id: uuid.UUID, seq: int) -> None:
    """Say that the run has events up to `seq`. Call it after the commit, from synchronous code.

    Best effort within a second: watching pages also look by themselves every few seconds, so a lost hint costs only
    that time.
    """
    try:
        async_to_sync(_send)(run_id, seq)
    except (OSError, TimeoutError, redis.exceptions.RedisError) as error:
        log.warning("no live hint for run %s: %s", run_id, error)
