"""Requests over the API: whoever started the run reads, comments, answers, withdraws; the rest is for people."""

from typing import Any

import pytest

from approvals.models import ApprovalRequest, Refusal, Remark
from approvals.services import talking
from runs.models import Principal, Run
from runs.services import principals, tokens
from tests.api.test_operating import Operator
from tests.pages import world


@pytest.fixture
def desk(db: str) -> Operator:
    return Operator(tokens.issue(name="helpdesk", label="Help desk", may_operate=True))


@pytest.fixture
def other(db: str) -> Operator:
    return Operator(tokens.issue(name="other", label="Another", may_operate=True))


def asked() -> ApprovalRequest:
    ask = world.ask()
    starter = Principal.objects.get(key="integration:helpdesk")
    assert ask.run.initiator_id == starter.pk
    return ask


def test_it_is_read_written_on_and_answered_by_whoever_started_it(desk: Operator, other: Operator) -> None:
    ask, maya = asked(), world.person("Maya Lindgren", "manager")
    path = f"requests/{ask.pk}"
    told = desk.get(path).json()
    assert (told["state"], told["amount_minor"], told["waits_for_answer"]) == ("open", "120000", False)
    assert other.get(path).status_code == 404 and other.post(f"{path}/comment", text="x").status_code == 404
    assert desk.post(f"{path}/comment", text="from the desk").status_code == 200
    assert desk.post(f"{path}/comment", text=" ").json()["code"] == "text_needed"
    talking.ask(
        request_id=ask.pk, principal=principals.of_user(user=maya), text="Why?", asked_of="requester", channel="page"
    )
    told = desk.get(path).json()
    question = told["remarks"][1]
    assert told["waits_for_answer"] and (question["kind"], question["by"]) == ("question", "Maya Lindgren")
    assert desk.post(f"{path}/answer", text="It was down").json()["code"] == "no_question"
    assert desk.post(f"{path}/answer", text="It was down", question=question["id"]).status_code == 200
    assert not desk.get(path).json()["waits_for_answer"] and Remark.objects.count() == 3
    assert desk.post(f"{path}/comment", text=5).status_code == 422


def test_what_is_for_people_is_refused_to_a_token_in_the_same_words(desk: Operator) -> None:
    ask = asked()
    bodies: dict[str, dict[str, Any]] = {
        "ask": {"text": "why"}, "send-back": {"text": "no"}, "amount": {"text": "less", "amount": "5"}, "claim": {},
    }  # fmt: skip
    for verb, body in bodies.items():
        answer = desk.post(f"requests/{ask.pk}/{verb}", **body)
        assert (answer.status_code, answer.json()["code"]) == (403, "no_right"), verb
    for verb in ("approve", "reject", "vote"):
        assert desk.post(f"requests/{ask.pk}/{verb}", text="yes").status_code == 422
    assert set(Refusal.objects.values_list("channel", flat=True)) == {"api"}
    assert ApprovalRequest.objects.get(pk=ask.pk).state == "open"


def test_withdrawing_takes_a_token_that_may_operate(desk: Operator) -> None:
    ask = asked()
    plain = Operator(tokens.issue(name="helpdesk", label="Help desk"))
    assert plain.post(f"requests/{ask.pk}/withdraw", text="not any more").status_code == 403
    assert desk.post(f"requests/{ask.pk}/withdraw", text="").json()["code"] == "why_needed"
    assert desk.post(f"requests/{ask.pk}/withdraw", text="not any more").status_code == 200
    assert desk.post(f"requests/{ask.pk}/withdraw", text="again").json()["code"] == "withdrawn"
    assert desk.get(f"requests/{ask.pk}").json()["state"] == "withdrawn"
    assert Run.objects.get(pk=ask.run_id).wake_at is not None
