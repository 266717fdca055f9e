"""An outside system that allows so many calls a second, and the smallest tool and workflow that call it.

The stub is a real server and its own judge: it notes each call by its own clock, with what it answered. `install` puts
tool and workflow into the registries of this process, the test's or a worker's.
"""

import datetime as dt
import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Annotated, Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import requests
from django.conf import settings
from pydantic import StringConstraints

from agentops.workflows.base import AskAgent, Card, Complete, Done, Draft, Facts, HandOver, Recovery, Refused, Subject
from agentops.workflows.registry import WORKFLOWS
from runs.actions import Action
from runs.money import Strict
from runs.tools import registry
from runs.tools.base import Contract, Lookup, Rate, Reading, Record, Repeat, Unreachable
from runs.tools.http import Connection, from_exception, from_status, raw_answer, unreachable

TOOL, SYSTEM, WORKFLOW = "stub.count", "stub", "stub_count"
ALLOWED = 5  # calls a second


@dataclass(frozen=True)
class Call:
    """One call as the stub saw it; `at` by its own clock, `wait` what it asked for."""

    at: float
    identity: str
    status: int
    wait: float = 0.0


@dataclass
class Stub:
    """`closed_for`: the first call, and all until so many seconds later, are asked to wait. `down`: every call and
    lookup ends in a server error."""

    closed_for: float = 0.0
    down: bool = False
    calls: list[Call] = field(default_factory=list)
    lookups: list[float] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    opens: float | None = None
    level: float = float(ALLOWED)
    filled: float = 0.0
    at_once: int = 0  # calls under way now, and the most there ever were
    most_at_once: int = 0

    def take(self, identity: str) -> Call:
        with self.lock:
            now = time.monotonic()
            if self.opens is None:
                self.opens = now + self.closed_for
            self.level = min(float(ALLOWED), self.level + (now - self.filled) * ALLOWED)
            self.filled = now
            if self.down:
                call = Call(now, identity, 503)
            elif now < self.opens:
                call = Call(now, identity, 429, self.opens - now)
            elif self.level < 1:
                call = Call(now, identity, 429, (1 - self.level) / ALLOWED)
            else:
                self.level -= 1
                call = Call(now, identity, 201)
            self.calls.append(call)
            return call

    def recorded(self, identity: str) -> bool:
        return any(one.status == 201 and one.identity == identity for one in self.calls)


def _handler(stub: Stub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            call = stub.take(self.headers["Operation-Identity"])
            headers = {"Retry-After": str(int(call.wait) + 1)} if call.status == 429 else {}
            self._say(call.status, {"reference": f"N-{call.identity[-12:]}"}, headers)

        def do_GET(self) -> None:
            stub.lookups.append(time.monotonic())
            identity = parse_qs(urlsplit(self.path).query).get("identity", [""])[0]
            self._say(503 if stub.down else 200, {"found": stub.recorded(identity)}, {})

        def _say(self, status: int, body: dict[str, Any], headers: dict[str, str]) -> None:
            text = json.dumps(body).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(text))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_args: Any) -> None:
            """Nothing: the stub's own list is what tests read."""

    return Handler


@contextmanager
def serving(stub: Stub) -> Iterator[str]:
    """The stub at an address of its own."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(stub))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class CountEffect(Strict):
    number: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,6}$")]


class Count:
    """See `runs.tools.base.Tool`."""

    contract: ClassVar[Contract] = Contract(
        name=TOOL,
        version="1",
        system=SYSTEM,
        title="Count",
        effect=CountEffect,
        repeat=Repeat.BY_IDENTITY,
        retention=dt.timedelta(hours=24),
        settling=dt.timedelta(seconds=0.3),
        call_limit=dt.timedelta(seconds=5),
        lookup_is_conclusive=True,
        precondition="None.",
        undo="No.",
        touches="Nothing.",
        business_key=lambda effect: f"count/{effect['number']}",
        rate=Rate(calls=ALLOWED, per=dt.timedelta(seconds=1)),
    )

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def send(self, *, effect: dict[str, str], identity: str, wire_key: str) -> Record:
        headers = {"Operation-Identity": identity, "Idempotency-Key": wire_key}
        try:
            with self._connection.session() as session:
                answer = session.post(
                    self._connection.url, json=effect, headers=headers, timeout=self._connection.timeouts
                )
        except requests.RequestException as error:
            raise from_exception(system="Stub", error=error) from error
        if answer.status_code != 201:
            raw = raw_answer(status=answer.status_code, headers=answer.headers, body=answer.text)
            raise from_status(system="Stub", code="", detail="", raw=raw)
        return Record(reference=answer.json()["reference"], identity=identity)

    def look_up(self, *, effect: dict[str, str], identity: str) -> Lookup:
        try:
            with self._connection.session() as session:
                answer = session.get(
                    self._connection.url, params={"identity": identity}, timeout=self._connection.timeouts
                )
        except requests.RequestException as error:
            broken = from_exception(system="Stub", error=error)
            raise unreachable(system="Stub", dependency=SYSTEM, error=broken) from error
        if answer.status_code != 200:
            raw = raw_answer(status=answer.status_code, headers=answer.headers, body=answer.text)
            broken = from_status(system="Stub", code="", detail="", raw=raw)
            raise unreachable(system="Stub", dependency=SYSTEM, error=broken)
        records = (Record(reference=f"N-{identity[-12:]}", identity=identity),) if answer.json()["found"] else ()
        return Lookup(records=records, pages=1)


class CountWorkflow:
    """See `agentops.workflows.base.Workflow`. Reads nothing outside, so that only calls and lookups reach the stub."""

    name: ClassVar[str] = WORKFLOW
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Count"
    tools: ClassVar[tuple[str, ...]] = (TOOL,)
    Input: ClassVar[type[Strict]] = CountEffect
    choices: ClassVar[tuple[type[Strict], ...]] = ()
    asks_again_when_rejected: ClassVar[bool] = False
    recovery: ClassVar[Recovery] = "forward"
    reads_fail: ClassVar[bool] = False

    def subject(self, *, data: dict[str, Any]) -> Subject:
        return Subject(title=f"Count {data['number']}", subject=data["number"])

    def start_key(self, *, data: dict[str, Any]) -> str:
        return str(data["number"])

    def gather(self, *, data: dict[str, Any]) -> list[Reading]:
        if self.reads_fail:
            broken = from_exception(system="Stub", error=None)
            raise Unreachable("Stub could not be read.", dependency=SYSTEM, problem=broken)
        text: dict[str, Any] = {"number": data["number"]}
        return [
            Reading(
                kind="number", source=SYSTEM, locator=data["number"], version="1", title="Number", summary="",
                authoritative=True, content=text,
            )
        ]  # fmt: skip

    def customer(self, *, facts: Facts) -> str:
        return ""

    def view(self, *, data: dict[str, Any], facts: Facts, refusals: Sequence[str]) -> dict[str, Any]:
        return {}

    def judge(self, *, choice: Strict, data: dict[str, Any], facts: Facts) -> Draft | Refused | HandOver | Complete:
        return Refused(code="not_a_choice", reason="Nothing is to be chosen here.")

    def follow(
        self, *, data: dict[str, Any], facts: Facts, done: Sequence[Done]
    ) -> Draft | AskAgent | HandOver | Complete:
        if done:
            return Complete(f"Counted as {done[-1].reference}")
        return Draft(step="count", action=Action(TOOL, "1", {"number": data["number"]}), rests_on=())

    def objection(self, *, action: Action, facts: Facts, identity: str) -> str:
        return ""

    def variables(self, *, action: Action, facts: Facts) -> dict[str, Any]:
        return {"tool": action.tool, "workflow": self.name, "step": "count"}

    def card(self, *, action: Action, facts: Facts) -> Card:
        return Card(ask="Count", lead="Counts.", rows=())


def install(url: str) -> None:
    """Into this process's registries, with the stub at `url`."""
    settings.STUB_URL, settings.STUB_KEY = url, "known"
    registry.SYSTEMS[SYSTEM] = registry._System("STUB_URL", "STUB_KEY", "Stub")
    registry.TOOLS[TOOL] = Count
    WORKFLOWS[WORKFLOW] = {"1": CountWorkflow()}


def uninstall() -> None:
    del registry.SYSTEMS[SYSTEM], registry.TOOLS[TOOL], WORKFLOWS[WORKFLOW]
