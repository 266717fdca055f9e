"""Servers somebody else runs: say at once, and by the variable's name, when one cannot be used."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qs, unquote, urlsplit

import kombu
import psycopg
import redis

from agentops.local.errors import LocalStackError

CONNECT_SECONDS = 5
OLDEST_POSTGRES = 150000
BROKER_SCHEMES = ("redis", "rediss", "redis+socket", "amqp", "amqps")
CHANNEL_SCHEMES = ("redis", "rediss", "unix")


def check(given: Mapping[str, str], /) -> None:
    """Connect to each external server that is configured. Raises LocalStackError for the first that fails."""
    if "OWNER_DATABASE_URL" in given and "DATABASE_URL" not in given:
        raise LocalStackError("OWNER_DATABASE_URL is set but DATABASE_URL isn't: set both, or neither.")
    for name in ("DATABASE_URL", "OWNER_DATABASE_URL"):
        if name in given:
            _check_database(name, given[name])
    if "BROKER_URL" in given:
        _check_broker(given["BROKER_URL"])
    if "CHANNEL_URL" in given:
        _require_scheme("CHANNEL_URL", given["CHANNEL_URL"], CHANNEL_SCHEMES)
        _ping("CHANNEL_URL", given["CHANNEL_URL"])


def _require_scheme(name: str, url: str, allowed: tuple[str, ...]) -> None:
    # Clients guess: Celery takes redis+unix:// for localhost without a word.
    scheme = url.partition("://")[0]
    if "://" not in url or scheme not in allowed:
        raise LocalStackError(f"{name} must begin with one of {', '.join(f'{each}://' for each in allowed)}.")


def _trouble(name: str, url: str, reason: object, instead: str) -> LocalStackError:
    # Clients quote an address they cannot read, password and all.
    words = str(reason).strip().replace(url, "(the address)")
    for secret in re.findall(r"://[^/@]*:([^/@]+)@", url):
        words = words.replace(secret, "***").replace(unquote(secret), "***")
    return LocalStackError(
        f"{name}: the server cannot be used: {words}\n"
        f"Check the address, name and password in {name} and that the server runs; or unset {name} to {instead}."
    )


def _check_database(name: str, url: str) -> None:
    _require_scheme(name, url, ("postgresql", "postgres"))
    try:
        with psycopg.connect(url, connect_timeout=CONNECT_SECONDS, autocommit=True) as connection:
            version = connection.info.server_version
    except psycopg.Error as error:
        raise _trouble(name, url, error, "use the embedded database") from None
    if version < OLDEST_POSTGRES:
        raise LocalStackError(f"{name}: PostgreSQL 15 or later is needed, this is {version // 10000}.")


def _check_broker(url: str) -> None:
    _require_scheme("BROKER_URL", url, BROKER_SCHEMES)
    if url.startswith("redis+socket://"):
        parts = urlsplit(url)
        database = parse_qs(parts.query).get("virtual_host", ["0"])[0].strip("/")
        _ping("BROKER_URL", f"unix://{parts.path}?db={database}")
    elif url.startswith("redis"):
        _ping("BROKER_URL", url)
    else:
        _connect_amqp(url)


def _ping(name: str, url: str) -> None:
    try:
        with redis.Redis.from_url(
            url, socket_connect_timeout=CONNECT_SECONDS, socket_timeout=CONNECT_SECONDS, protocol=2
        ) as client:
            client.ping()
    except (redis.RedisError, OSError, ValueError) as error:
        raise _trouble(name, url, error, "use the embedded server") from None


def _connect_amqp(url: str) -> None:
    try:
        with kombu.Connection(url, connect_timeout=CONNECT_SECONDS) as connection:
            connection.connect()
            known = (*connection.connection_errors, *connection.channel_errors)
            assert known
    except Exception as error:  # noqa: BLE001 - the transport is chosen by the URL and each has errors of its own
        host = unquote(urlsplit(url).hostname or "")
        raise _trouble("BROKER_URL", url, f"{host}: {error}", "use the embedded server") from None
