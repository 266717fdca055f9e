"""What failures on the wire prove, with real sockets, and that a call ends in time whatever the peer does."""

import contextlib
import re
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from runs.tools.base import Ambiguous, NotSent, Overloaded, Refused, ToolError
from runs.tools.billing.contract import CreditEffect
from runs.tools.billing.live import CreateCredit
from runs.tools.helpdesk.client import write
from runs.tools.http import Connection, from_exception, from_status, raw_answer

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


def _whole_request(connection: socket.socket) -> bytes:
    got = b""
    while True:
        more = connection.recv(65536)
        if not more:
            raise ConnectionError("the caller left in the middle of its request")
        got += more
        head, found, body = got.partition(b"\r\n\r\n")
        [length] = re.findall(rb"(?i)content-length: (\d+)", head) or [b"0"]
        if found and len(body) >= int(length):
            return got


class Peer:
    """Accepts connections and plays `part` on each; counts them and the requests that arrived whole."""

    def __init__(self, part: Callable[[socket.socket, threading.Event], None]) -> None:
        self.requests: list[bytes] = []
        self.closed_by_caller = threading.Event()
        self._part = part
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                threading.Thread(target=self._play, args=(connection,), daemon=True).start()

    def _play(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            self.requests.append(_whole_request(connection))
            self._part(connection, self.closed_by_caller)

    def close(self) -> None:
        self._server.close()


@pytest.fixture
def peer() -> Iterator[Callable[..., Peer]]:
    made: list[Peer] = []

    def make(part: Callable[[socket.socket, threading.Event], None]) -> Peer:
        made.append(Peer(part))
        return made[-1]

    yield make
    for one in made:
        one.close()


def send(url: str, *, limit: float = 2.0, connect: float = 1.0) -> dict[str, object]:
    connection = Connection(system="helpdesk", url=url, secret="t", limit=limit, connect=connect)
    return write(connection, method="POST", to="x", body={"a": "b"}, identity="id", wire_key="id:0")


def bill(url: str, *, limit: float = 2.0) -> None:
    effect = dict.fromkeys(CreditEffect.model_fields, "1") | {"reason": "sla_breach", "balance_minor": "0"}
    connection = Connection(system="billing", url=url, secret="sk_test_1", limit=limit)
    CreateCredit(connection).send(effect=effect, identity="id", wire_key="id:0")


def outcome(url: str, **limits: float) -> ToolError:
    with pytest.raises(ToolError) as raised:
        send(url, **limits)
    return raised.value


def test_a_refused_connection_is_not_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert isinstance(outcome(f"http://127.0.0.1:{port}"), NotSent)


def test_an_unknown_host_is_not_sent() -> None:
    assert isinstance(outcome("http://nobody.invalid"), NotSent)


def test_a_connect_time_out_is_not_sent() -> None:
    with socket.socket() as server, contextlib.ExitStack() as stack:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(4):  # fill the queue: the next connection gets no answer at all
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        error = outcome(f"http://127.0.0.1:{server.getsockname()[1]}", connect=0.3)
    assert isinstance(error, NotSent)
    assert error.raw["error"] == "ConnectTimeout"


def test_no_time_left_is_not_sent(peer: Callable[..., Peer]) -> None:
    silent = peer(lambda connection, closed: connection.sendall(ANSWER))
    connection = Connection(system="helpdesk", url=silent.url, secret="t")
    with connection.session() as session:
        session._watch._ends = 0.0
        with pytest.raises(requests.ConnectionError) as raised:
            session.post(silent.url, json={"a": "b"})
    assert isinstance(from_exception(system="Help desk", error=raised.value), NotSent)
    assert silent.requests == []


def _silent(connection: socket.socket, closed: threading.Event) -> None:
    connection.recv(1)
    closed.set()


def _drips(head: bytes, drop: bytes) -> Callable[[socket.socket, threading.Event], None]:
    def part(connection: socket.socket, closed: threading.Event) -> None:
        connection.sendall(head)
        connection.settimeout(0.05)
        for _ in range(200):  # far beyond any limit here, so that a caller who waits for the end fails the test
            with contextlib.suppress(TimeoutError):
                if connection.recv(1) == b"":
                    closed.set()
                    return
            connection.sendall(drop)

    return part


@pytest.mark.parametrize(
    "part",
    [
        _silent,
        _drips(b"HTTP/1.1 200 OK\r\n", b"X-More: 1\r\n"),
        _drips(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{", b" "),
        _drips(b"HTTP/1.1 200 OK\r\n\r\n{", b" "),
        _drips(b"HTTP", b"/"),
    ],
    ids=["silent", "headers", "body", "endless body", "status line"],
)
def test_a_peer_that_never_ends_is_ambiguous_and_cut_off(
    part: Callable[[socket.socket, threading.Event], None], peer: Callable[..., Peer]
) -> None:
    dripping = peer(part)
    assert isinstance(outcome(dripping.url, limit=0.6), Ambiguous)
    assert dripping.closed_by_caller.wait(5)  # the caller really hung up: nothing of it stays behind
    assert len(dripping.requests) == 1


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 2", b"\x00\x01garbage\r\n\r\n"])
def test_a_broken_answer_is_ambiguous(answer: bytes, peer: Callable[..., Peer]) -> None:
    broken = peer(lambda connection, closed: connection.sendall(answer))
    assert isinstance(outcome(broken.url), Ambiguous)
    assert len(broken.requests) == 1


@pytest.mark.parametrize("part", [_silent, _drips(b"HTTP/1.1 200 OK\r\n\r\n{", b" ")], ids=["silent", "endless body"])
def test_the_billing_library_keeps_the_same_limit(
    part: Callable[[socket.socket, threading.Event], None], peer: Callable[..., Peer]
) -> None:
    dripping = peer(part)
    with pytest.raises(Ambiguous):
        bill(dripping.url, limit=0.6)
    assert dripping.closed_by_caller.wait(5)
    assert len(dripping.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnull",
        b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>",
        b'HTTP/1.1 200 OK\r\nContent-Length: 28\r\n\r\n{"object":"invoice","id":"x"}',
        b'HTTP/1.1 200 OK\r\nContent-Length: 24\r\n\r\n{"object":"credit_note"}',
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy",
    ],
)
def test_an_answer_of_billing_that_nobody_can_read_is_ambiguous(answer: bytes, peer: Callable[..., Peer]) -> None:
    strange = peer(lambda connection, closed: connection.sendall(answer))
    with pytest.raises(Ambiguous):
        bill(strange.url)
    assert len(strange.requests) == 1


def test_the_billing_library_follows_no_redirect_either(peer: Callable[..., Peer]) -> None:
    elsewhere = peer(lambda connection, closed: connection.sendall(ANSWER))
    moved = f"HTTP/1.1 307 Moved\r\nLocation: {elsewhere.url}/\r\nContent-Length: 0\r\n\r\n".encode()
    redirecting = peer(lambda connection, closed: connection.sendall(moved))
    with pytest.raises(Ambiguous):
        bill(redirecting.url)
    assert (len(redirecting.requests), len(elsewhere.requests)) == (1, 0)


def test_a_redirect_is_not_followed(peer: Callable[..., Peer]) -> None:
    elsewhere = peer(lambda connection, closed: connection.sendall(ANSWER))
    moved = f"HTTP/1.1 302 Found\r\nLocation: {elsewhere.url}/\r\nContent-Length: 0\r\n\r\n".encode()
    redirecting = peer(lambda connection, closed: connection.sendall(moved))
    assert isinstance(outcome(redirecting.url), Ambiguous)
    assert (len(redirecting.requests), len(elsewhere.requests)) == (1, 0)


def test_a_netrc_entry_does_not_replace_our_token(
    peer: Callable[..., Peer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = tmp_path / "netrc"
    entry.write_text("machine 127.0.0.1 login someone password else\n")
    monkeypatch.setenv("NETRC", str(entry))
    monkeypatch.setattr("runs.tools.http._is_loopback", lambda url: False)  # so that the environment is looked at
    good = peer(lambda connection, closed: connection.sendall(ANSWER))
    assert send(good.url) == {}
    assert b"Authorization: Bearer t\r\n" in good.requests[0]


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1"])
def test_a_proxy_is_not_asked_for_this_machine(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:2")
    with Connection(system="billing", url=url, secret="t").session() as session:
        assert session.trust_env is False
    with Connection(system="billing", url="https://billing.example", secret="t").session() as session:
        assert session.trust_env is True


@pytest.mark.parametrize(
    ("status", "code", "kind", "known"),
    [
        (400, "parameter_invalid", Refused, "parameter_invalid"),
        (400, "", Refused, "http_400"),
        (400, "idempotency_error", Ambiguous, ""),
        (401, "unauthorized", Refused, "unauthorized"),
        (402, "", Refused, "http_402"),
        (403, "", Refused, "http_403"),
        (404, "resource_missing", Refused, "resource_missing"),
        (408, "", Ambiguous, ""),
        (409, "", Ambiguous, ""),
        (412, "version_moved", Refused, "precondition_failed"),
        (422, "idempotency_error", Ambiguous, ""),
        (422, "invalid", Refused, "invalid"),
        (428, "version_required", Refused, "version_required"),
        (429, "rate_limit", Overloaded, ""),
        (302, "", Ambiguous, ""),
        (500, "api_error", Ambiguous, ""),
        (502, "", Ambiguous, ""),
        (503, "", Ambiguous, ""),
        (504, "", Ambiguous, ""),
    ],
)
def test_what_a_status_proves(status: int, code: str, kind: type[ToolError], known: str) -> None:
    raw = raw_answer(status=status, headers={"Retry-After": "7", "Set-Cookie": "secret"}, body="x" * 9000)
    error = from_status(system="Billing", code=code, detail="why", raw=raw)
    assert type(error) is kind
    assert getattr(error, "code", "") == known
    assert getattr(error, "retry_after", None) == ("7" if kind is Overloaded else None)
    assert len(error.raw["body"]) == 4000
    assert "set-cookie" not in error.raw["headers"]


def test_a_secret_is_not_shown() -> None:
    assert "sk_live" not in repr(Connection(system="billing", url="https://billing.example", secret="sk_live_1"))


def test_our_key_said_back_to_us_is_not_kept(settings: Any) -> None:
    settings.BILLING_API_KEY = "opens-every-door"
    said = "Invalid API key provided: opens-every-door"
    raw = raw_answer(status=401, headers={}, body=f'{{"error": "{said}", "api_key": "k"}}')
    error = from_status(system="Billing", code="", detail=said, raw=raw)
    broken = from_exception(system="Billing", error=ValueError(said))
    assert "opens-every-door" not in f"{error.detail} {error.raw} {broken.raw}" and '"k"' not in raw["body"]
    assert error.detail.startswith("Billing answered 401: Invalid API key provided: ")
