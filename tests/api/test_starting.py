"""Starting a run over HTTP: once per key, refused by the field's name, and never a server error."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import pytest
from django.db import transaction

from agentops.workflows import registry
from agentops.workflows.service_credit import ServiceCredit
from approvals.models import ApprovalRequest
from reconciliation.models import Operation
from runs import transitions
from runs.models import Event, Principal, Run
from runs.models.run import RunState
from runs.money import CurrencyText, MinorText, Strict
from runs.services import principals
from tests.api.caller import Caller, faults, in_thread, ticket


class Another(ServiceCredit):
    """A second workflow that takes the same input."""

    name: ClassVar[str] = "another"


def test_the_same_key_and_body_give_the_same_answer_and_one_run(desk: Caller) -> None:
    first = desk.start(ticket(), key="order-1")
    assert first.status_code == 201 and "Idempotent-Replayed" not in first.headers
    body = {"input": {"ticket": "CS-8812"}, "workflow": "service_credit"}  # key order is no difference
    again = desk.start(body, key="order-1")
    assert again.status_code == 201 and again.headers["Idempotent-Replayed"] == "true"
    assert again.json() == first.json()
    run = Run.objects.get()
    assert str(run.pk) == first.json()["id"] and first.json()["url"].endswith(f"/api/v1/runs/{run.pk}")
    assert Event.objects.filter(stream=f"run:{run.pk}").count() == 1


def test_the_answer_is_the_same_after_the_run_has_gone_on(desk: Caller) -> None:
    first = desk.start(ticket()).json()
    run = Run.objects.get()
    run.title, run.customer, run.waits_for = "Service credit for Acme Corp", "Acme Corp", "a manager"
    run.save(update_fields=["title", "customer", "waits_for"])
    with transaction.atomic():
        transitions.move(run=run, to=RunState.GATHERING, actor=principals.system())
        transitions.move(run=run, to=RunState.NEEDS_PERSON, actor=principals.system(), person_code="x")
        transitions.move(run=run, to=RunState.COMPLETED, actor=principals.system(), outcome="Done.")
    again = desk.start(ticket())
    assert again.headers["Idempotent-Replayed"] == "true" and again.json() == first
    assert desk.read(run.pk).json()["title"] == "Service credit for Acme Corp"


@pytest.mark.parametrize(
    "changed",
    [ticket("CS-8815"), {**ticket(), "workflow": "another"}],
    ids=["other input", "other workflow"],
)
def test_the_same_key_with_other_parameters_is_refused(
    desk: Caller, changed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry.WORKFLOWS, "another", {"1": Another()})
    first = desk.start(ticket(), key="K")
    before = Run.objects.values().get()
    answer = desk.start(changed, key="K")
    assert answer.status_code == 422 and answer.json()["code"] == "parameters_differ"
    assert "parameters differ" in faults(answer)["Idempotency-Key"] and first.json()["id"] in answer.json()["detail"]
    assert Run.objects.values().get() == before
    assert not ApprovalRequest.objects.exists() and not Operation.objects.exists()
    assert desk.start(ticket(), key="K").json() == first.json()


class Payout(ServiceCredit):
    """A workflow whose input is an amount."""

    name: ClassVar[str] = "payout"

    class Input(Strict):
        ticket: str
        amount_minor: MinorText
        currency: CurrencyText


class Payback(Payout):
    name: ClassVar[str] = "payback"


def payout(amount: str, workflow: str = "payout", currency: str = "USD") -> dict[str, Any]:
    return {"workflow": workflow, "input": {"ticket": "CS-1", "amount_minor": amount, "currency": currency}}


@pytest.fixture
def payouts(monkeypatch: pytest.MonkeyPatch) -> None:
    for known in (Payout(), Payback()):
        monkeypatch.setitem(registry.WORKFLOWS, known.name, {"1": known})


@pytest.mark.parametrize("other", [payout("10000"), payout("1000", currency="EUR"), payout("1000", "payback")])
def test_d4_the_same_key_with_another_amount_is_refused(desk: Caller, payouts: None, other: dict[str, Any]) -> None:
    first = desk.start(payout("1000"), key="K")
    assert first.status_code == 201
    before = Run.objects.values().get()
    for _ in range(2):
        answer = desk.start(other, key="K")
        assert (answer.status_code, answer.json()["code"]) == (422, "parameters_differ")
        assert "parameters differ" in faults(answer)["Idempotency-Key"]
    assert Run.objects.values().get() == before and before["input"] == payout("1000")["input"]
    assert not ApprovalRequest.objects.exists() and not Operation.objects.exists()
    assert desk.start(payout("1000"), key="K").json() == first.json()


@pytest.mark.parametrize("other", [payout("10000"), payout("1000", "payback")], ids=["two amounts", "two workflows"])
def test_d4_of_two_at_once_under_one_key_one_wins(desk: Caller, payouts: None, other: dict[str, Any]) -> None:
    token = desk.headers["Authorization"].removeprefix("Bearer ")
    gate = threading.Barrier(2)

    def send(body: dict[str, Any]) -> Any:
        gate.wait(10)
        return Caller(token).start(body, key="at-once")

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda body: in_thread(lambda: send(body)), [payout("1000"), other]))
    assert sorted(one.status_code for one in answers) == [201, 422]
    [won], [lost] = ([one for one in answers if one.status_code == status] for status in (201, 422))
    assert lost.json()["code"] == "parameters_differ" and won.json()["id"] == str(Run.objects.get().pk)
    assert Run.objects.get().input == [payout("1000"), other][answers.index(won)]["input"]


def test_a_key_belongs_to_the_integration_that_used_it(desk: Caller, other: Caller) -> None:
    one, two = desk.start(ticket(), key="K"), other.start(ticket("CS-8815"), key="K")
    assert (one.status_code, two.status_code) == (201, 201) and one.json()["id"] != two.json()["id"]


@pytest.mark.parametrize("bodies", [["CS-1"] * 6, ["CS-1", "CS-2"] * 3], ids=["same body", "two bodies"])
def test_of_requests_at_once_one_wins(desk: Caller, bodies: list[str]) -> None:
    gate = threading.Barrier(len(bodies))
    token = desk.headers["Authorization"].removeprefix("Bearer ")

    def send(number: str) -> Any:
        caller = Caller(token)
        gate.wait(10)
        return caller.start(ticket(number), key="at-once")

    with ThreadPoolExecutor(len(bodies)) as pool:
        answers = list(pool.map(lambda number: in_thread(lambda: send(number)), bodies))
    run = Run.objects.get()
    won = [one for one in answers if one.status_code == 201]
    assert {one.json()["id"] for one in won} == {str(run.pk)}
    assert sum("Idempotent-Replayed" not in one.headers for one in won) == 1
    lost = [one for one in answers if one.status_code != 201]
    assert len(won) == bodies.count(run.input["ticket"]) and len(lost) == len(bodies) - len(won)
    assert {one.json()["code"] for one in lost} <= {"parameters_differ"}


def test_a_bad_key_is_refused(desk: Caller) -> None:
    for key in (None, "", " ", "a" * 129, "zwei Wörter", "sn\u00f6", "tab\there", "a b", "\x00", "😀"):
        answer = desk.start(ticket(), key=key)
        assert answer.status_code == 422 and list(faults(answer)) == ["Idempotency-Key"], (key, answer.content)
    assert not Run.objects.exists()


def test_the_longest_key_is_taken(desk: Caller) -> None:
    assert desk.start(ticket(), key="~" * 128).status_code == 201


BAD_BODIES: dict[str, tuple[bytes, int, str]] = {
    "not JSON": (b"ticket=CS-1", 400, "body"),
    "empty": (b"", 422, "body"),
    "not UTF-8": (b'{"workflow": "\xff"}', 400, "body"),
    "an array": (b"[]", 400, "body"),
    "a null": (b"null", 400, "body"),
    "key twice": (b'{"workflow": "service_credit", "input": {"ticket": "CS-1", "ticket": "CS-2"}}', 400, "body"),
    "NaN": (b'{"workflow": "service_credit", "input": {"ticket": NaN}}', 400, "body"),
    "Infinity": (b'{"workflow": "service_credit", "input": {"ticket": -Infinity}}', 400, "body"),
    "1e999": (b'{"workflow": "service_credit", "input": {"ticket": 1e999}}', 400, "body"),
    "more digits than Python reads": (b'{"workflow": "s", "input": {"ticket": %s}}' % (b"9" * 5000), 400, "body"),
    "deep": (b'{"input": ' + b"[" * 40_000 + b"]" * 40_000 + b"}", 400, "body"),
    "5 MB": (json.dumps({**ticket(), "padding": "x" * 5_000_000}).encode(), 413, "body"),
    "just too large": (json.dumps({**ticket(), "padding": "x" * 100_000}).encode(), 413, "body"),
    "no workflow": (b'{"input": {"ticket": "CS-1"}}', 422, "workflow"),
    "no input": (b'{"workflow": "service_credit"}', 422, "input"),
    "workflow a number": (b'{"workflow": 1, "input": {}}', 422, "workflow"),
    "workflow null": (b'{"workflow": null, "input": {}}', 422, "workflow"),
    "workflow long": (json.dumps({"workflow": "x" * 81, "input": {}}).encode(), 422, "workflow"),
    "workflow unknown": (b'{"workflow": "no_such", "input": {}}', 422, "workflow"),
    "workflow with NUL": (b'{"workflow": "a\\u0000", "input": {}}', 422, "workflow"),
    "workflow half a surrogate": (b'{"workflow": "\\ud800", "input": {}}', 422, "workflow"),
    "input a list": (b'{"workflow": "service_credit", "input": []}', 422, "input"),
    "input text": (b'{"workflow": "service_credit", "input": "CS-1"}', 422, "input"),
    "more fields": (b'{"workflow": "service_credit", "input": {"ticket": "CS-1"}, "amount": "1.00"}', 422, "amount"),
    "no ticket": (b'{"workflow": "service_credit", "input": {}}', 422, "input.ticket"),
    "more input": (
        b'{"workflow": "service_credit", "input": {"ticket": "CS-1", "amount": 1}}', 422, "input.amount"
    ),
}  # fmt: skip


def test_a_bad_body_is_refused_by_the_fields_name(desk: Caller) -> None:
    wrong: dict[str, object] = {}
    for name, (raw, status, field) in BAD_BODIES.items():
        answer = desk.start(raw)
        short = len(answer.content) < 2000
        if answer.status_code != status or list(faults(answer)) != [field] or not short:
            wrong[name] = (answer.status_code, answer.content[:300])
    assert not wrong
    assert not Run.objects.exists()


REMEDIES = {
    "no workflow": "is missing; give it",
    "workflow a number": "is not text; write it in quotation marks",
    "workflow long": "has more than 80 characters; shorten it",
    "input a list": "is not an object; write it in braces",
    "no ticket": "is missing; give it",
    "more input": "is not known here; leave it out",
}


def test_what_is_wrong_with_a_field_says_what_to_do(desk: Caller) -> None:
    said = {name: faults(desk.start(BAD_BODIES[name][0])) for name in REMEDIES}
    assert said == {name: {BAD_BODIES[name][2]: words} for name, words in REMEDIES.items()}


def test_a_key_given_twice_is_named(desk: Caller) -> None:
    answer = desk.start(BAD_BODIES["key twice"][0])
    assert "'ticket' is given twice" in faults(answer)["body"]


TICKETS = [
    -5, 0, 1, 10**30, 1.5, True, None, [], {}, "", " ", "CS-", "-1", "cs-1", "CS-1 ", " CS-1", "CS-1\n", "CS-1\x00",
    "CS-1\ud800", "ＣＳ-1", "CS-١٢", "CS-1e2", "CS-1_000", "CS-" + "1" * 13, "A" * 50_000, "../CS-1",
    "</td><script>alert(1)</script>", "CS-1\nAmount: 1.00", "CS-1;DROP TABLE runs_run",
]  # fmt: skip


def test_a_bad_ticket_is_refused(desk: Caller) -> None:
    for value in TICKETS:
        answer = desk.start({"workflow": "service_credit", "input": {"ticket": value}})
        assert answer.status_code == 422, (value, answer.content)
        assert list(faults(answer)) == ["input.ticket"]
        assert answer.headers["Content-Type"].startswith("application/json")
    assert not Run.objects.exists()


def test_a_refused_start_does_not_use_the_key_up(desk: Caller) -> None:
    assert desk.start(ticket("bad"), key="K").status_code == 422
    assert desk.start(ticket(), key="K").status_code == 201


def test_the_run_is_the_integrations_own(desk: Caller) -> None:
    desk.start(ticket())
    run = Run.objects.select_related("initiator", "run_as", "agent").get()
    assert (run.initiator.kind, run.initiator.key) == (Principal.Kind.INTEGRATION, "integration:helpdesk")
    assert (run.run_as.kind, run.agent.kind) == (Principal.Kind.SERVICE, Principal.Kind.AGENT)
    assert len({run.initiator_id, run.run_as_id, run.agent_id}) == 3


@pytest.mark.parametrize("name", ["reversal", "correction_notice"])
def test_what_rests_on_our_own_record_is_not_started_by_name(desk: Caller, name: str) -> None:
    answer = desk.start({"workflow": name, "input": {"case": "RC-1", "ticket": "CS-1", "subject": "x", "body": "y"}})
    assert answer.status_code == 422 and "not started by its name" in json.dumps(answer.json())
    assert not Run.objects.exists()
