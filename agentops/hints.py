"""Telling watching browsers that a run has more events. A hint carries a number, never data, and may be lost."""

import asyncio
import logging
import os
import threading
import uuid
from functools import lru_cache
from typing import Any

import redis.exceptions
from channels.layers import get_channel_layer

log = logging.getLogger(__name__)
LIMIT_SECONDS = 1.0
GATHER_SECONDS = 0.03  # what happens to a run within this is one hint
MOST_WAITING = 1000  # while the channel server is down, newer hints are dropped instead of piling up


LISTS = "approvals"  # the group of everybody who has a list of approvals open
LISTS_APART_SECONDS = 0.5


def group_name(run_id: uuid.UUID | str) -> str:
    return f"run.{run_id}"


class _Sender:
    """One thread with one loop and one connection a process: who works on a run waits for no hint."""

    def __init__(self) -> None:
        self.newest: dict[uuid.UUID, int] = {}  # a run's hints overtake each other: the newest number says it all
        self.lists_due = False
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

    def put_lists(self) -> None:
        with self.lock:
            waiting, self.lists_due = self.lists_due, True
        if not waiting:
            asyncio.run_coroutine_threadsafe(self._send_lists(), self.loop)

    async def _send(self, run_id: uuid.UUID) -> None:
        await asyncio.sleep(GATHER_SECONDS)
        with self.lock:
            seq = self.newest.pop(run_id)
        await self._tell(group_name(run_id), {"type": "run.hint", "seq": seq})

    async def _send_lists(self) -> None:
        await asyncio.sleep(LISTS_APART_SECONDS)  # many requests at once are one hint
        with self.lock:
            self.lists_due = False
        await self._tell(LISTS, {"type": "lists.hint"})

    async def _tell(self, group: str, message: dict[str, Any]) -> None:
        layer = get_channel_layer()
        if layer is None:
            return
        try:
            await asyncio.wait_for(layer.group_send(group, message), LIMIT_SECONDS)
        except (OSError, TimeoutError, redis.exceptions.RedisError) as error:
            log.warning("no live hint for %s: %s", group, error)


@lru_cache(maxsize=1)
def _sender(pid: int) -> _Sender:
    return _Sender()


def publish(*, run_id: uuid.UUID, seq: int) -> None:
    """Say that the run has events up to `seq`. Call it after the commit; it returns at once.

    Best effort: watching pages also look by themselves every few seconds, so a lost hint costs only that time.
    """
    _sender(os.getpid()).put(run_id=run_id, seq=seq)


def lists_moved() -> None:
    """Say that lists of approvals may be different now. As `publish`: after the commit, at once, and at best."""
    _sender(os.getpid()).put_lists()
