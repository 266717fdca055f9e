"""The floor: the very statements that write one plain run, sent by psycopg alone with the same commits in between.

They are taken down from a real run and replayed for new ones, so triggers, constraints and indexes cost what they cost
the product. What is left out is everything that reads, decides and checks.
"""

import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from django.db import connection
from psycopg.types.json import Jsonb

_WRITES = ("INSERT", "UPDATE", "WITH event")


@dataclass(slots=True)
class Writes:
    """The transactions of one run, each a list of (SQL, parameters)."""

    transactions: list[list[tuple[str, Any]]] = field(default_factory=list)
    _of: object = None

    def take(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        """A wrapper for Django's statements; see `connection.execute_wrapper`."""
        if sql.lstrip().startswith(_WRITES):
            outermost = connection.atomic_blocks[0] if connection.atomic_blocks else object()
            if outermost is not self._of:
                self.transactions.append([])
            self._of = outermost
            self.transactions[-1].append((sql, params))
        return execute(sql, params, many, context)


@contextmanager
def taking_down() -> Iterator[Writes]:
    writes = Writes()
    with connection.execute_wrapper(writes.take):
        yield writes


def replay_per_second(*, writes: Writes, item: str, keep: set[uuid.UUID], url: str, count: int) -> float:
    """Runs a second when two connections replay them. `keep` are ids that stay as they are: people, the policy."""
    runs = [_another(writes, item, keep) for _ in range(count)]  # before the clock starts

    def share(mine: list[Writes]) -> None:
        with psycopg.connect(url, autocommit=True) as session:
            for one in mine:
                for statements in one.transactions:
                    with session.transaction():
                        for sql, params in statements:
                            session.execute(sql, params)

    began = time.monotonic()
    with ThreadPoolExecutor(2) as connections:
        list(connections.map(share, [runs[0::2], runs[1::2]]))
    return count / (time.monotonic() - began)


def _another(writes: Writes, item: str, keep: set[uuid.UUID]) -> Writes:
    renamed = {item: f"raw-{uuid.uuid4().hex}"}
    return Writes([[(sql, _renewed(params, renamed, keep)) for sql, params in one] for one in writes.transactions])


def _renewed(value: Any, renamed: dict[str, str], keep: set[uuid.UUID]) -> Any:
    """The same parameters for another run: every id of its own and its item replaced, wherever they stand."""
    if isinstance(value, dict):
        return {key: _renewed(one, renamed, keep) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_renewed(one, renamed, keep) for one in value]
    if isinstance(value, uuid.UUID):
        if value in keep:
            return value
        return uuid.UUID(renamed.setdefault(str(value), str(uuid.uuid4())))
    if isinstance(value, Jsonb):
        return Jsonb(_renewed(value.obj, renamed, keep))
    if isinstance(value, str):
        for old, new in renamed.items():
            value = value.replace(old, new)
    return value
