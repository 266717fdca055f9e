"""The web socket of a run's page.

A hint only wakes it. What it sends it reads from the record: the events after the last one the browser has, in order,
one message at a time, so a slow browser gets one batch instead of a flood. Who may watch is asked again before every
message.
"""

import asyncio
import contextlib
import logging
import uuid
import zoneinfo
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from asgiref.typing import WebSocketScope
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.contrib.auth import get_user
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.sessions.backends.db import SessionStore
from django.db import DatabaseError
from django.http import HttpRequest
from django.utils import timezone

from agentops.hints import LISTS, group_name
from agentops.pages.live import Fragment, fragment
from agentops.pages.zone import COOKIE, chosen, zone_named

log = logging.getLogger(__name__)

POLL_SECONDS = 3.0  # in case a hint is lost
LOOKS_APART_SECONDS = 0.5  # between two looks at a list of approvals
GATHER_SECONDS = 0.15  # between two messages, so that many events become one batch
SIGNED_OUT, NO_RIGHT, NO_RUN, TRY_AGAIN = 4401, 4403, 4404, 1011  # browsers reconnect by themselves on the last only


def refusal(*, session_key: str | None, permission: str = "runs.view_run") -> int:
    """The close code when whoever has this session may not watch now, else 0. Reads everything afresh."""
    user = _user(session_key)
    if not user.is_authenticated:
        return SIGNED_OUT
    return 0 if user.has_perm(permission) else NO_RIGHT


def _user(session_key: str | None) -> User | AnonymousUser:
    request = HttpRequest()
    request.session = SessionStore(session_key)
    return get_user(request)


def number_after(query: bytes) -> int:
    """The last event the browser has, from `?after=57`; 0 when it says nothing readable."""
    text = parse_qs(query.decode("ascii", "replace")).get("after", ["0"])[-1]
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0


class RunConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # channels ships no types
    """`/ws/runs/<id>/?after=<last event number>`."""

    pump: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        scope: WebSocketScope = self.scope
        await self.accept()  # a refused handshake would be tried again for ever; a close code is not
        self.run_id: uuid.UUID = self.scope["url_route"]["kwargs"]["run_id"]
        self.after = number_after(scope["query_string"])
        self.session_key: str | None = self.scope["session"].session_key
        cookies: SimpleCookie | dict[str, str] = self.scope.get("cookies", {})
        self.zone: zoneinfo.ZoneInfo = zone_named(str(cookies.get(COOKIE, "")))
        self.first = True
        self.hinted = asyncio.Event()
        self.hinted.set()
        if not await self._may_watch():
            return
        if self.channel_layer is not None:
            try:
                await self.channel_layer.group_add(group_name(self.run_id), self.channel_name)
            except OSError as error:
                log.warning("no live hints for this page, it looks by itself: %s", error)
        self.pump = asyncio.create_task(self._deliver())

    async def disconnect(self, code: int) -> None:
        if self.pump is not None:
            self.pump.cancel()
        if self.channel_layer is not None:
            try:
                await self.channel_layer.group_discard(group_name(self.run_id), self.channel_name)
            except OSError as error:
                log.info("leaving the group of run %s: %s", self.run_id, error)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Browsers have nothing to say here; actions are ordinary posts."""

    async def run_hint(self, message: dict[str, Any]) -> None:
        if int(message.get("seq", 0)) > self.after:
            self.hinted.set()

    async def _may_watch(self) -> bool:
        code: int = await database_sync_to_async(refusal, thread_sensitive=False)(session_key=self.session_key)
        if code:
            await self.close(code)
        return code == 0

    async def _deliver(self) -> None:
        """Send what is new, for as long as the browser is there and may watch."""
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.hinted.wait(), POLL_SECONDS)
                self.hinted.clear()
                if not await self._push():
                    return
                await asyncio.sleep(GATHER_SECONDS)
        except DatabaseError as error:
            log.warning("a run page lost its database: %s", error)
            await self.close(TRY_AGAIN)

    async def _push(self) -> bool:
        """One message at most. False when the socket was closed."""
        if not await self._may_watch():
            return False
        part = await database_sync_to_async(self._read, thread_sensitive=False)()
        if part is None:
            await self.close(NO_RUN)
            return False
        if part.html:
            await self.send(text_data=part.html)
        self.after, self.first = part.seq, False
        if part.more:
            self.hinted.set()
        return True

    def _read(self) -> Fragment | None:
        own = chosen(user_id=_user(self.session_key).pk)
        with timezone.override(zone_named(own) if own else self.zone):
            return fragment(run_id=self.run_id, after=self.after, always=self.first)


class ListsConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # channels ships no types
    """`/ws/approvals/`: says no more than that it is worth looking. What the list holds is asked for over HTTP, where
    the rights are checked; a page whose hint is lost looks by itself."""

    telling: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        await self.accept()
        ask = database_sync_to_async(refusal, thread_sensitive=False)
        code = await ask(session_key=self.scope["session"].session_key, permission="approvals.view_approvalrequest")
        if code:
            await self.close(code)
        elif self.channel_layer is not None:
            try:
                await self.channel_layer.group_add(LISTS, self.channel_name)
            except OSError as error:
                log.warning("no live hints for this list, it looks by itself: %s", error)

    async def disconnect(self, code: int) -> None:
        if self.telling is not None:
            self.telling.cancel()
        if self.channel_layer is not None:
            with contextlib.suppress(OSError):
                await self.channel_layer.group_discard(LISTS, self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Browsers have nothing to say here."""

    async def lists_hint(self, message: dict[str, Any]) -> None:
        """A flood of hints is one look in each pause, the last of them after it."""
        if self.telling is None or self.telling.done():
            self.telling = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        await asyncio.sleep(LOOKS_APART_SECONDS)
        await self.send(text_data="look")
