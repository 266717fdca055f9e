"""Texts by outsiders in what the API and webhooks tell (D13): data of one field, and the amount is true and apart."""

import json

import pytest

from approvals import announced
from approvals.models import ApprovalRequest
from runs.models import Event
from runs.services import tokens
from tests.api.test_operating import Operator
from tests.pages import world

HOSTILE = {
    "markup": "</td><script>alert(1)</script>",
    "a false line": "Acme\nAmount: 1.00",
    "a false field": 'Acme", "amount_minor": "100',
    "fifty kilobytes": "W" * 50_000 + "-the-end",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("place", ["customer", "memo", "invoice", "rationale"])
def test_d13_the_amount_is_true_and_what_is_bound_is_whole(db: str, place: str, text: str) -> None:
    ask = world.ask(world.Story(**{place: text}))
    desk = Operator(tokens.issue(name="helpdesk", label="Help desk", may_operate=True))
    answer = desk.get(f"requests/{ask.pk}")
    assert answer.status_code == 200 and answer["Content-Type"].startswith("application/json")
    told = answer.json()
    assert (told["amount_minor"], told["currency"]) == ("120000", "USD")
    assert "1,200.00" in told["ask"] and len(told["ask"]) <= 300
    run = desk.get(f"runs/{ask.run_id}")
    assert run.status_code == 200 and run.json()["id"] == str(ask.run_id)

    request = ApprovalRequest.objects.select_related("run", "proposal").get(pk=ask.pk)
    event = Event.objects.filter(stream=f"run:{ask.run_id}").latest("seq")
    body = announced.body(event=event, request=request)
    assert body.isascii() and "\n" not in body
    said = json.loads(body)["request"]
    assert said["amount"] == {"minor": "120000", "currency": "USD"} and said["rows"] == request.page
    assert [row["value"] for row in said["rows"] if row["key"] == "amount"] == ["$1,200.00 USD"]
    shown = [row["value"] for row in said["rows"]]
    assert place == "rationale" or any(text in value for value in shown), "what is bound is never cut"


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_d13_what_is_written_by_the_api_comes_back_as_it_was_or_is_refused_whole(db: str, text: str) -> None:
    ask = world.ask()
    desk = Operator(tokens.issue(name="helpdesk", label="Help desk", may_operate=True))
    answer = desk.post(f"requests/{ask.pk}/comment", text=text)
    told = desk.get(f"requests/{ask.pk}").json()
    if len(text) > 4000:
        assert answer.status_code == 422 and told["remarks"] == []
    else:
        assert answer.status_code == 200 and [one["text"] for one in told["remarks"]] == [text]
    assert told["amount_minor"] == "120000"
