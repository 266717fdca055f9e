"""Servers somebody else runs: say at once, and by the variable's name, when one cannot be used."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agentops import servers
from agentops.local.errors import LocalStackError

CONNECT_SECONDS = 5


def check(given: Mapping[str, str], /) -> None:
    """Connect to each external server that is configured. Raises LocalStackError for the first that fails."""
    if "OWNER_DATABASE_URL" in given and "DATABASE_URL" not in given:
        raise LocalStackError("OWNER_DATABASE_URL is set but DATABASE_URL isn't: set both, or neither.")
    for name in ("DATABASE_URL", "OWNER_DATABASE_URL"):
        _try(given, name, servers.try_database, "use the embedded database")
    _try(given, "BROKER_URL", servers.try_broker, "use the embedded server")
    _try(given, "CHANNEL_URL", servers.try_channel, "use the embedded server")


def _try(given: Mapping[str, str], name: str, connect: Callable[..., None], instead: str) -> None:
    if name not in given:
        return
    try:
        connect(url=given[name], seconds=CONNECT_SECONDS)
    except servers.BadScheme as problem:
        raise LocalStackError(f"{name} {problem}.") from None
    except servers.Unusable as problem:
        raise LocalStackError(
            f"{name}: the server cannot be used: {problem}\n"
            f"Check the address, name and password in {name} and that the server runs; or unset {name} to {instead}."
        ) from None
