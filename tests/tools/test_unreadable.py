"""Answers that no JSON reader, or nothing behind it, can take: never a success, and never a proof of absence."""

import json
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from runs.readable import DEEPEST, Unreadable, read_json
from runs.tools.base import Ambiguous, Refused, Tool, Unreachable
from runs.tools.billing.contract import CreditEffect
from runs.tools.billing.live import CreateCredit
from runs.tools.billing.sources import read_invoice
from runs.tools.billing.statement import CreditNotes
from runs.tools.billing.void import VoidCredit
from runs.tools.helpdesk.live import DraftReply, UpdateTicket
from runs.tools.helpdesk.sources import read_account, read_ticket
from runs.tools.http import Connection
from tests.tools.test_billing import INCIDENT
from tests.tools.test_http import Peer, peer

__all__ = ["peer"]
CREDIT = dict.fromkeys(CreditEffect.model_fields, "1") | {"reason": "sla_breach", "balance_minor": "0"}
TICKET = {"ticket": "T", "ticket_version": "1", "status": "pending", "resolution": "x", "subject": "s", "body": "b"}
TOOLS: dict[str, tuple[Callable[[Connection], Tool], dict[str, str]]] = {
    "create_credit": (CreateCredit, CREDIT),
    "void_credit": (VoidCredit, {**CREDIT, "credit_note_id": "cn_1", "credit_note": "CN-1"}),
    "update_ticket": (UpdateTicket, TICKET),
    "draft_reply": (DraftReply, TICKET),
}


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


BODIES = {
    "deeper than any reader goes": nested(100_000),
    "deep in a list": '{"object": "list", "has_more": false, "data": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "deeper than what shows it goes": nested(600),
    "a little too deep": nested(DEEPEST + 1),
    "no number": '{"id": NaN, "object": "credit_note", "data": [], "has_more": false}',
    "too large a number": '{"id": 1e999, "object": "credit_note", "data": [], "has_more": false}',
    "more digits than are read": '{"id": ' + "9" * 5000 + ', "data": [], "has_more": false}',
    "no JSON": "<html>",
    "no object": "[]",
    "cut off": '{"data": [], "has_more": fal',
}


@pytest.fixture
def answering(peer: Callable[..., Peer]) -> Callable[[str, str], Connection]:
    def at(system: str, body: str, *, status: str = "200 OK") -> Connection:
        raw = body.encode()
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(raw)}\r\n\r\n".encode()

        def part(connection: socket.socket, _: threading.Event) -> None:
            connection.sendall(head + raw)

        return Connection(system=system, url=peer(part).url, secret="sk_test_1", limit=20)

    return at


def of(name: str, answering: Any, body: str, **more: Any) -> tuple[Tool, dict[str, str]]:
    make, effect = TOOLS[name]
    system = "billing" if make in (CreateCredit, VoidCredit) else "helpdesk"
    return make(answering(system, body, **more)), effect


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("name", TOOLS)
def test_an_answer_that_nobody_can_read_proves_nothing(name: str, body: str, answering: Any) -> None:
    tool, effect = of(name, answering, body)
    with pytest.raises(Ambiguous):
        tool.send(effect=effect, identity="i", wire_key="i:0")
    with pytest.raises(Unreachable):
        tool.look_up(effect=effect, identity="i")


@pytest.mark.parametrize("name", TOOLS)
def test_of_an_error_that_nobody_can_read_the_status_says_what_it_can(name: str, answering: Any) -> None:
    body = BODIES["deeper than any reader goes"]
    for status, proves in (("500 Down", Ambiguous), ("422 No", Refused)):
        tool, effect = of(name, answering, body, status=status)
        with pytest.raises(proves):
            tool.send(effect=effect, identity="i", wire_key="i:0")
        with pytest.raises(Unreachable):
            tool.look_up(effect=effect, identity="i")


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_source_that_nobody_can_read_is_unreachable(body: str, answering: Any) -> None:
    desk, billing = answering("helpdesk", body), answering("billing", body)
    for read in (
        lambda: read_ticket(connection=desk, ticket="T"),
        lambda: read_account(connection=desk, account="A"),
        lambda: CreditNotes(billing).list_recorded(since=INCIDENT, until=INCIDENT, cursor=""),
    ):
        with pytest.raises(Unreachable):
            read()
    with pytest.raises(Unreachable):
        read_invoice(connection=billing, customer="cus_1", at=INCIDENT)


@pytest.mark.parametrize("data", ["[1]", "[null]", "[[]]", '[{"x": 1}]'])
@pytest.mark.parametrize("name", TOOLS)
def test_a_list_of_something_else_is_no_empty_list(name: str, data: str, answering: Any) -> None:
    tool, effect = of(name, answering, f'{{"object": "list", "has_more": false, "data": {data}}}')
    with pytest.raises(Unreachable):
        tool.look_up(effect=effect, identity="i")


NOTE = {"object": "credit_note", "id": "cn_1", "invoice": "1", "amount": 1, "currency": "usd", "customer": "1"}
NOTE |= {
    "number": "N" * 50_000,
    "status": "void",
    "created": 1,
    "voided_at": 1,
    "metadata": {"operation_identity": "i"},
}
LONG_NAMES: dict[str, tuple[dict[str, Any], type[Exception]]] = {
    "create_credit": (NOTE, Ambiguous),
    "void_credit": (NOTE, Ambiguous),
    "update_ticket": (dict(TICKET, id="T" * 50_000, version=2, updated_at=""), Ambiguous),
    "draft_reply": (dict(TICKET, id="D" * 50_000, identity="i", created_at=""), Ambiguous),
}


@pytest.mark.parametrize("name", LONG_NAMES)
def test_d13_a_name_that_no_column_holds_is_an_answer_that_nobody_can_read(name: str, answering: Any) -> None:
    body, proves = LONG_NAMES[name]
    tool, effect = of(name, answering, json.dumps(body))
    with pytest.raises(proves):
        tool.send(effect=effect, identity="i", wire_key="i:0")
    if name == "draft_reply":
        page = json.dumps({"data": [body], "has_more": False})
        tool, effect = of(name, answering, page)
        with pytest.raises(Unreachable):
            tool.look_up(effect=effect, identity="i")


def test_what_can_be_read_is_kept_as_it_is() -> None:
    assert read_json('{"a": ["é", 1, 1.5, true, null, "\\u0000"]}') == {"a": ["é", 1, 1.5, True, None, "\ufffd"]}
    assert read_json(nested(DEEPEST)) and read_json("1e300")
    for text in (nested(DEEPEST + 1), "-Infinity", "1e999", "", b"\xff"):
        with pytest.raises(Unreadable):
            read_json(text)
