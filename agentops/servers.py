"""Whether the database, the broker and the live hints' server can be used. No Django, and never a password in words."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, unquote, urlsplit

import kombu
import psycopg
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

OLDEST_POSTGRES = 150000
DATABASE_SCHEMES = ("postgresql", "postgres")
BROKER_SCHEMES = ("redis", "rediss", "redis+socket", "amqp", "amqps")
CHANNEL_SCHEMES = ("redis", "rediss", "unix")


class Unusable(Exception):
    """The server cannot be used; the message says why, without the address's secrets."""


class BadScheme(Unusable):
    """The address does not begin as one of its kind does."""


def require_scheme(*, url: str, allowed: tuple[str, ...]) -> None:
    """Raises BadScheme. Clients guess: Celery takes redis+unix:// for localhost without a word."""
    scheme = url.partition("://")[0]
    if "://" not in url or scheme not in allowed:
        raise BadScheme(f"must begin with one of {', '.join(f'{each}://' for each in allowed)}")


def _unusable(url: str, reason: object) -> Unusable:
    # Clients quote an address they cannot read, password and all.
    words = str(reason).strip().replace(url, "(the address)")
    for secret in re.findall(r"://[^/@]*:([^/@]+)@", url):
        words = words.replace(secret, "***").replace(unquote(secret), "***")
    return Unusable(words)


def try_database(*, url: str, seconds: int) -> None:
    """Connect once. Raises Unusable, for a server that is too old as well."""
    require_scheme(url=url, allowed=DATABASE_SCHEMES)
    try:
        with psycopg.connect(url, connect_timeout=seconds, autocommit=True) as connection:
            version = connection.info.server_version
    except psycopg.Error as error:
        raise _unusable(url, error) from None
    if version < OLDEST_POSTGRES:
        raise Unusable(f"PostgreSQL 15 or later is needed, this is {version // 10000}")


def try_broker(*, url: str, seconds: float) -> None:
    """Connect once to what Celery would use. Raises Unusable."""
    require_scheme(url=url, allowed=BROKER_SCHEMES)
    if url.startswith("redis+socket://"):
        parts = urlsplit(url)
        database = parse_qs(parts.query).get("virtual_host", ["0"])[0].strip("/")
        _ping(f"unix://{parts.path}?db={database}", seconds=seconds)
    elif url.startswith("redis"):
        _ping(url, seconds=seconds)
    else:
        _connect_amqp(url, seconds=seconds)


def try_channel(*, url: str, seconds: float) -> None:
    """Connect once to the live hints' server. Raises Unusable."""
    require_scheme(url=url, allowed=CHANNEL_SCHEMES)
    _ping(url, seconds=seconds)


def _ping(url: str, *, seconds: float) -> None:
    try:
        with redis.Redis.from_url(
            url, socket_connect_timeout=seconds, socket_timeout=seconds, protocol=2, retry=Retry(NoBackoff(), 0)
        ) as client:
            client.ping()
    except (redis.RedisError, OSError, ValueError) as error:
        raise _unusable(url, error) from None


def _connect_amqp(url: str, *, seconds: float) -> None:
    try:
        with kombu.Connection(url, connect_timeout=seconds) as connection:
            connection.connect()
    except Exception as error:  # noqa: BLE001 - the transport is chosen by the URL and each has errors of its own
        host = unquote(urlsplit(url).hostname or "")
        raise _unusable(url, f"{host}: {error}") from None
