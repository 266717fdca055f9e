"""Answers that break the connection: held, reset and cut."""

import asyncio
import socket
import struct
from typing import ClassVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

Peer = tuple[str, int]


class TrackedProtocol(H11Protocol):
    """uvicorn's HTTP protocol, remembering each connection's transport: ASGI alone cannot reset a connection."""

    transports: ClassVar[dict[Peer, asyncio.Transport]] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn declares it
        super().connection_made(transport)
        if self.client is not None:
            self.transports[self.client] = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self.client is not None:
            self.transports.pop(self.client, None)
        super().connection_lost(exc)


def _transport(scope: Scope) -> asyncio.Transport | None:
    client: Peer = tuple(scope["client"])
    return TrackedProtocol.transports.get(client)


async def _until_gone(receive: Receive) -> None:
    """Return when the connection is over; before that, uvicorn would answer for us with a 500."""
    while (await receive())["type"] != "http.disconnect":
        pass


class Held(Response):
    """No answer: the connection stays open for ``seconds`` (or until the caller leaves) and is then closed."""

    def __init__(self, *, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await asyncio.wait_for(_until_gone(receive), timeout=self._seconds)
        except TimeoutError:
            transport = _transport(scope)
            if transport is not None:
                transport.close()
            await _until_gone(receive)


class Reset(Response):
    """No answer: a TCP reset."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        transport = _transport(scope)
        if transport is not None:
            # Lingering for zero seconds makes close send RST instead of FIN.
            linger = struct.pack("ii", 1, 0)
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            transport.abort()
        await _until_gone(receive)


class Cut(Response):
    """An answer that announces its whole length and stops in the middle."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        half = bytes(self.body[: len(self.body) // 2])
        await send({"type": "http.response.body", "body": half, "more_body": True})
        transport = _transport(scope)
        if transport is not None:
            transport.close()
        await _until_gone(receive)
