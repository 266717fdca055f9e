"""What a run is told from outside: once per key, which is in the body and so belongs to this run alone."""

from typing import Any

import pytest

from agentops.workflows.registry import WORKFLOWS
from agentops.workflows.service_credit import ServiceCredit
from runs.models import Signal
from runs.money import Strict
from tests.api.caller import RUNS, Caller, faults, ticket


def tell(caller: Caller, run_id: str, body: Any, **headers: str) -> Any:
    return caller.client.post(
        f"{RUNS}/{run_id}/signals", body, content_type="application/json", headers={**caller.headers, **headers}
    )


def test_the_same_key_counts_once_and_other_content_is_refused(desk: Caller) -> None:
    run = desk.start(ticket(), key="k").json()["id"]
    body = {"key": "k", "kind": "document", "payload": {"name": "x"}}  # the key of the start is another thing
    first, again = tell(desk, run, body), tell(desk, run, body)
    assert (first.status_code, first.json()["code"]) == (202, "stored")
    assert (again.status_code, again.json()) == (202, {**first.json(), "code": "already"})
    other = tell(desk, run, {**body, "payload": {"name": "y"}})
    assert other.status_code == 422 and other.json()["code"] == "parameters_differ" and "key" in faults(other)
    assert Signal.objects.get().key == "k"


def test_a_header_is_no_key(desk: Caller) -> None:
    run = desk.start(ticket()).json()["id"]
    answer = tell(desk, run, {"kind": "document"}, **{"Idempotency-Key": "k-2"})
    assert answer.status_code == 422 and list(faults(answer)) == ["key"] and not Signal.objects.exists()


@pytest.mark.parametrize("key", ["", "a b", "é", "a\n", "x" * 129, 7, None, ["k"]])
def test_a_key_that_is_none(desk: Caller, key: object) -> None:
    run = desk.start(ticket()).json()["id"]
    answer = tell(desk, run, {"key": key, "kind": "document"})
    assert answer.status_code == 422 and list(faults(answer)) == ["key"] and not Signal.objects.exists()


def test_another_integration_tells_it_nothing(desk: Caller, other: Caller) -> None:
    run = desk.start(ticket()).json()["id"]
    assert tell(other, run, {"key": "k", "kind": "document"}).status_code == 404 and not Signal.objects.exists()


class Paid(Strict):
    amount_minor: int
    by: str


@pytest.fixture
def paid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ServiceCredit, "events", {"paid": Paid})


def test_an_event_has_the_shape_that_its_workflow_gives_it(desk: Caller, paid: None) -> None:
    run = desk.start(ticket()).json()["id"]
    for payload, field in (
        ({"by": "x"}, "payload.amount_minor"),
        ({"by": "x", "amount_minor": "12"}, "payload.amount_minor"),
        ({"by": "x", "amount_minor": 1, "more": 1}, "payload.more"),
        ({"by": "x", "amount_minor": 10**20}, "payload"),
    ):
        answer = tell(desk, run, {"key": "k", "kind": "paid", "payload": payload})
        assert (answer.status_code, list(faults(answer))) == (422, [field]), answer.content
    assert not Signal.objects.exists()
    good = {"key": "k", "kind": "paid", "payload": {"by": "a\x00b", "amount_minor": 1}}
    assert tell(desk, run, good).json()["code"] == "stored"
    assert tell(desk, run, good).json()["code"] == "already"
    assert Signal.objects.get().payload == {"by": "a\ufffdb", "amount_minor": 1}


def test_an_event_that_the_workflow_does_not_know_is_refused_by_name(desk: Caller, paid: None) -> None:
    run = desk.start(ticket()).json()["id"]
    answer = tell(desk, run, {"key": "k", "kind": "unheard_of"})
    assert (answer.status_code, list(faults(answer))) == (422, ["kind"])
    assert "document, paid" in answer.json()["detail"] and not Signal.objects.exists()


def test_a_web_process_that_does_not_know_the_version_says_so_and_stores_nothing(
    desk: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = desk.start(ticket()).json()["id"]
    monkeypatch.setitem(WORKFLOWS, "service_credit", {})
    answer = tell(desk, run, {"key": "k", "kind": "paid"})
    assert (answer.status_code, answer.json()["code"]) == (503, "unknown_workflow") and not Signal.objects.exists()
    assert tell(desk, run, {"key": "k", "kind": "document"}).status_code == 202  # this needs no version
