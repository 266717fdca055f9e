"""What comes over the API in every awkward shape: an answer, never a server error."""

import json
from typing import Any

import pytest
from django.test import Client

from agentops.api.parsing import MAX_BODY_BYTES
from agentops.api.views import MAX_EVENT_BYTES
from approvals.models import Freeze
from runs.models import Run, Signal
from runs.readable import DEEPEST
from runs.services import tokens
from tests.api.caller import deliver
from tests.api.test_operating import Operator

BAD = ["a\u0000b", "a\ud800b", "\u202eabc", "x" * 2000, "\u0085", "\u2800", "\u200b", "=1+1"]


class Raw(Operator):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.client = Client(raise_request_exception=False)


@pytest.fixture
def desk(db: str) -> Raw:
    return Raw(tokens.issue(name="helpdesk", label="Help desk", may_operate=True))


@pytest.mark.parametrize("text", BAD, ids=ascii)
def test_reasons(desk: Raw, text: str) -> None:
    run = desk.started()
    found = {act: desk.post(f"runs/{run.pk}/{act}", reason=text).status_code for act in ("pause", "resume", "again")}
    found["batch"] = desk.post("batches", act="pause", runs=[str(run.pk)], reason=text).status_code
    frozen = desk.post("freezes", scope="all", reason=text)
    found["freeze"] = frozen.status_code
    found["list"] = desk.client.get("/api/v1/freezes", headers=desk.headers).status_code
    for one in Freeze.objects.all():
        found["lift"] = desk.post(f"freezes/{one.pk}/lift", reason=text).status_code
    found["to-person"] = desk.post(f"runs/{run.pk}/to-person", reason=text).status_code
    found["cancel"] = desk.post(f"runs/{run.pk}/cancel", reason=text).status_code
    print(found)
    assert not [code for code in found.values() if code >= 500], found


@pytest.mark.parametrize("value", ["a\u0000b", "a\ud800b", 1.5, 1e400, 10**400, {"a\u0000": 1}, [[[]]] * 10], ids=ascii)
def test_payloads_and_scopes(desk: Raw, value: Any) -> None:
    run = desk.started()
    found = {}
    raw = json.dumps({"key": "k", "kind": "document", "payload": {"x": value}}).encode()
    answer = desk.client.post(
        f"/api/v1/runs/{run.pk}/signals", raw, content_type="application/json", headers=desk.headers
    )
    found["signal"] = answer.status_code
    if isinstance(value, str):
        found["scope"] = desk.post("freezes", scope=value, reason="x").status_code
    print(found)
    assert not [code for code in found.values() if code >= 500], found


def test_odd_bodies(desk: Raw) -> None:
    run = desk.started()
    found = []
    for raw in (b"", b"[]", b"null", b"\xff", b'{"reason": NaN}', b"[" * 100000, b'{"reason": "x", "reason": "y"}'):
        for path in (f"runs/{run.pk}/pause", "batches", "freezes", f"freezes/{run.pk}/lift"):
            answer = desk.client.post(f"/api/v1/{path}", raw, content_type="application/json", headers=desk.headers)
            found.append((path[:8], raw[:10], answer.status_code))
    assert not [one for one in found if one[2] >= 500], found
    assert Run.objects.count() == 1


@pytest.mark.parametrize("inner", ["[%s]", '{"a":%s}'], ids=["lists", "objects"])
@pytest.mark.parametrize("deep", [DEEPEST - 2, DEEPEST - 1, 600, 850, 20_000])
def test_what_is_nested_deep(desk: Raw, inner: str, deep: int) -> None:
    """Python reads more levels than what keeps and shows them afterwards goes down."""
    run = desk.started()
    left, right = inner.split("%s")
    value = left * deep + "1" + right * deep
    raw = f'{{"key": "k", "kind": "document", "payload": {{"x": {value}}}}}'.encode()[:MAX_BODY_BYTES]
    path = f"/api/v1/runs/{run.pk}/signals"
    told = desk.client.post(path, raw, content_type="application/json", headers=desk.headers)
    event = deliver(f'{{"id": "evt", "type": "invoice.updated", "data": {value}}}'.encode()[:MAX_EVENT_BYTES])
    within = deep + 2 <= DEEPEST
    assert told.status_code == (202 if within else 400) and Signal.objects.count() == within
    assert event.status_code == (200 if deep + 1 <= DEEPEST else 400)
    assert within or "body" in told.json()["detail"]
