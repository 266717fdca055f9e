"""Telling watching browsers that a run has more events. A hint carries a number, never data, and may be lost."""

import asyncio
import logging
import os
import threading
import uuid
from functools import lru_cache

import redis.exceptions
from channels.layers import get_channel_layer

log = logging.getLogger(__name__)
LIMIT_SECONDS = 1.0
GATHER_SECONDS = 0.03  # what happens to a run within this is one hint
MOST_WAITING = 1000  # while the channel server is down, newer hints are dropped instead of piling up


def group_name(run_id: uuid.UUID | str) -> str:
    return f"run.{run_id}"


class _Sender:
    """One thread with one loop and one connection a process: who works on a run waits for no hint."""

    def __init__(self) -> None:
        self.newest: dict[uuid.UUID, int] = {}  # a run's hints overtake each other: the newest number says it all
        self.lock = threading.Lock()
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, name="hints", daemon=True).start()

    def put(self, *, run_id: uuid.UUID, seq: int) -> None:
        with self.lock:
            waiting = run_id in self.newest
            if not waiting and len(self.newest) >= MOST_WAITING:
                return
            self.newest[run_id] = seq
        if not waiting:
            asyncio.run_coroutine_threadsafe(self._send(run_id), self.loop)

    async def _send(self, run_id: uuid.UUID) -> None:
        await asyncio.sleep(GATHER_SECONDS)
        with self.lock:
            seq = self.newest.pop(run_id)
        layer = get_channel_layer()
        if layer is None:
            return
        message = {"type": "run.hint", "seq": seq}
        try:
            await asyncio.wait_for(layer.group_send(group_name(run_id), message), LIMIT_SECONDS)
        except (OSError, TimeoutError, redis.exceptions.RedisError) as error:
            log.warning("no live hint for run %s: %s", run_id, error)


@lru_cache(maxsize=1)
def _sender(pid: int) -> _Sender:
    return _Sender()


def publish(*, run_id: uuid.UUID, seq: int) -> None:
    """Say that the run has events up to `seq`. Call it after the commit; it returns at once.

    Best effort: watching pages also look by themselves every few seconds, so a lost hint costs only that time.
    """
    _sender(os.getpid()).put(run_id=run_id, seq=seq)
