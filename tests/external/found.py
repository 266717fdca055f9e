"""Which servers of somebody else's the tests may use: named by TEST_POSTGRES_URL, TEST_REDIS_URL and TEST_AMQP_URL, or
with TEST_SERVERS=usual those at the usual ports of this machine, if they can be used. Otherwise nobody's is touched:
PostgreSQL and Valkey are then our own ones, and what needs RabbitMQ is left out with the reason.
"""

import os
from collections.abc import Callable
from functools import lru_cache

from agentops import servers

USUAL = {
    "postgres": "postgresql://postgres@127.0.0.1:5432/postgres",
    "redis": "redis://127.0.0.1:6379/15",
    "amqp": "amqp://guest:guest@127.0.0.1:5672//",
}
_TRY: dict[str, Callable[..., None]] = {
    "postgres": servers.try_database,
    "redis": servers.try_broker,
    "amqp": servers.try_broker,
}


@lru_cache
def external(kind: str) -> tuple[str | None, str]:
    """The server's address, or None; and in words which it is or why there is none. Raises servers.Unusable when one
    was named and cannot be used: what somebody asked for is not left out."""
    variable = f"TEST_{kind.upper()}_URL"
    named = os.environ.get(variable)
    if named:
        _TRY[kind](url=named, seconds=5)
        return named, f"{kind}: the one in {variable}"
    if os.environ.get("TEST_SERVERS") != "usual":
        return None, f"{kind}: none was named; set {variable}, or TEST_SERVERS=usual for this machine's own"
    try:
        _TRY[kind](url=USUAL[kind], seconds=5)
    except servers.Unusable as problem:
        return None, f"{kind}: this machine has none that can be used ({str(problem).splitlines()[0][:150]})"
    return USUAL[kind], f"{kind}: this machine's own"
