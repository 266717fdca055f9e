"""Calls over HTTP with a total time limit and no retries, and the one place that says what a failure proves.

What is proved, by kind: no connection was made → NotSent; a 4xx → Refused; 429 → Overloaded; everything else,
above all silence, resets and 5xx, is Ambiguous. A 409 or a key used with other parameters speaks of another call
under the same key, which may well have worked, so it proves nothing about the effect either.
"""

import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ConnectTimeoutError, MaxRetryError, NewConnectionError

from runs.hiding import without_secrets
from runs.tools.base import Ambiguous, NotSent, Overloaded, Refused, ToolError, Unreachable

MAX_RAW = 4000  # characters of a body kept for people
_ASKED: ContextVar[set[str] | None] = ContextVar("asked", default=None)
_KEPT_HEADERS = ("request-id", "retry-after", "idempotent-replayed", "etag", "content-type")


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Where a system is and how long one call to it may take: `connect` and, in all, `limit` seconds."""

    system: str
    url: str
    secret: str = field(repr=False)
    limit: float = 10.0
    connect: float = 3.0

    @property
    def timeouts(self) -> tuple[float, float]:
        return min(self.connect, self.limit), self.limit

    def session(self) -> "LimitedSession":
        if (asked := _ASKED.get()) is not None:
            asked.add(self.system)
        return LimitedSession(url=self.url, limit=self.limit)


@contextmanager
def noting_asked() -> Iterator[set[str]]:
    """The registry names of the systems that are asked inside, noted as they are."""
    asked: set[str] = set()
    token = _ASKED.set(asked)
    try:
        yield asked
    finally:
        _ASKED.reset(token)


class _Watch:
    """Shuts a session's sockets when its time is over, so that a peer that drips bytes cannot outlast the limit."""

    def __init__(self, limit: float, may_reach: Callable[[str], bool] | None = None) -> None:
        self._may_reach = may_reach
        self._ends = time.monotonic() + limit
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._timer = threading.Timer(limit, self._cut)
        self._timer.daemon = True
        self._timer.start()

    def over(self) -> bool:
        return time.monotonic() >= self._ends

    def allows(self, connected: socket.socket) -> bool:
        """Whether the address really connected to is one that may be reached."""
        return self._may_reach is None or self._may_reach(str(connected.getpeername()[0]))

    def add(self, connected: socket.socket) -> None:
        # A duplicate, because TLS takes the original object over: shutting it down ends the same connection.
        with self._lock:
            self._sockets.append(connected.dup())
        if self.over():
            self._cut()

    def _cut(self) -> None:
        with self._lock:
            for connected in self._sockets:
                try:
                    connected.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # closed by the other side already

    def close(self) -> None:
        self._timer.cancel()
        with self._lock:
            for connected in self._sockets:
                connected.close()
            self._sockets.clear()


def _pools(watch: _Watch) -> dict[str, type[HTTPConnectionPool]]:
    """Connection pools whose sockets the watch knows, and which open none once the time is over."""

    class Watched(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            if watch.over():
                raise NewConnectionError(self, "the call's time was over before a connection was made")
            connected = super()._new_conn()
            if not watch.allows(connected):
                connected.close()
                raise NewConnectionError(self, "this address may not be reached")
            watch.add(connected)
            return connected

    class WatchedTls(Watched, HTTPSConnection):
        pass

    class Pool(HTTPConnectionPool):
        ConnectionCls = Watched

    class TlsPool(HTTPSConnectionPool):
        ConnectionCls = WatchedTls

    return {"http": Pool, "https": TlsPool}


class _Adapter(HTTPAdapter):
    def __init__(self, watch: _Watch) -> None:
        self._watched_pools = _pools(watch)
        super().__init__(max_retries=0)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = self._watched_pools

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(*args, **kwargs)
        manager.pool_classes_by_scheme = self._watched_pools
        return manager


def _as_given(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """An `auth` that changes nothing: without one, a .netrc entry would replace our Authorization header."""
    return request


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class LimitedSession(requests.Session):
    """One call (or one lookup over several pages) within `limit` seconds in all, then closed. No retries, no redirects:
    a redirected POST would be repeated elsewhere as a GET. `may_reach` judges the IP address of each connection, before
    a byte is sent over it."""

    def __init__(self, *, url: str, limit: float, may_reach: Callable[[str], bool] | None = None) -> None:
        super().__init__()
        self.max_redirects = 0
        self.auth = _as_given
        self.trust_env = not _is_loopback(url)  # a company's proxy cannot reach this machine's own services
        self._watch = _Watch(limit, may_reach)
        adapter = _Adapter(self._watch)
        self.mount("http://", adapter)
        self.mount("https://", adapter)

    def close(self) -> None:
        self._watch.close()
        super().close()


# ---- what a failure proves


def raw_answer(*, status: int, headers: Mapping[str, str], body: str) -> dict[str, Any]:
    """What came over the wire, bounded, without anything secret."""
    kept = {name.lower(): value[:300] for name, value in headers.items() if name.lower() in _KEPT_HEADERS}
    return {"status": status, "headers": kept, "body": without_secrets(body[: 2 * MAX_RAW])[:MAX_RAW]}


def never_connected(error: BaseException | None) -> bool:
    """Whether this is one of the three that prove nothing was sent: refused, no such host, connect time-out."""
    if isinstance(error, requests.ConnectTimeout):
        return True
    if type(error) is not requests.ConnectionError or not error.args:
        return False
    reason = error.args[0]
    return isinstance(reason, MaxRetryError) and isinstance(reason.reason, ConnectTimeoutError)


def from_exception(*, system: str, error: BaseException | None) -> ToolError:
    """NotSent or Ambiguous, from what the `requests` library raised."""
    kind = type(error).__name__
    raw = {"error": kind, "text": without_secrets(str(error)[: 2 * MAX_RAW])[:MAX_RAW]}
    if never_connected(error):
        return NotSent(f"No connection to {system} could be made, so nothing was sent.", raw=raw)
    return Ambiguous(f"{system} gave no complete answer ({kind}).", raw=raw)


def from_status(*, system: str, code: str, detail: str, raw: dict[str, Any]) -> ToolError:
    """Refused, Overloaded or Ambiguous, from a complete answer that is not a success.

    `raw` is a `raw_answer`; `code` the other side's stable word for it, empty if it gave none; `detail` its sentence.
    """
    status = int(raw["status"])
    said = f"{system} answered {status}" + (f": {without_secrets(detail[:2000])[:500]}" if detail else ".")
    if status == 429:
        return Overloaded(said, retry_after=raw["headers"].get("retry-after"), raw=raw)
    if status == 409:
        return Ambiguous(f"{system} says that a call under the same key is still running (409).", raw=raw)
    if code.startswith("idempotency"):
        return Ambiguous(f"{system} says that the key was used before with other parameters.", raw=raw)
    if status == 412:
        return Refused(said, code="precondition_failed", raw=raw)
    if 400 <= status < 500 and status != 408:
        return Refused(said, code=code or f"http_{status}", raw=raw)
    return Ambiguous(said, raw=raw)


def unreachable(*, system: str, dependency: str, error: ToolError) -> Unreachable:
    """The same failure of a read, which says nothing about what exists; `dependency` is the system's registry name."""
    return Unreachable(f"{system} could not be read: {error.detail}", dependency=dependency, problem=error)
