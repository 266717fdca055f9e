"""A yes takes what the policy wanted, on every path: the amount typed again, a login proved a moment ago."""

import datetime as dt
from typing import Any

import psycopg
import pytest
from django.db import Error, transaction
from hypothesis import given
from hypothesis import strategies as st

from approvals import confirming
from approvals.advice import advise
from approvals.confirming import Given
from approvals.evaluation import evaluate, satisfied
from approvals.models import Decision, Vote
from approvals.policy_text import asks
from approvals.requirement import Answered, StageNeed
from approvals.rules import PolicyDocument, validate
from approvals.words import sentence
from runs import clock
from runs.money import MAX_MINOR, Money
from runs.services import principals
from tests import published
from tests.approvals import world


def document(level: str | None, **more: Any) -> dict[str, Any]:
    found = world.document()
    if level is not None:
        found["rules"][0]["ask"]["confirm"] = level
    return {**found, **more}


def asked(level: str) -> world.Asked:
    made = published.publish(
        slug="service-credits", name="Service credits", tools=[world.TOOL], document=document(level), note=""
    )
    return world.ask(version=made, confirm=level)


@pytest.mark.parametrize(
    ("typed", "same"),
    [
        ("1200", True), ("1200.00", True), ("1,200.00", True), ("$1,200.00", True), (" 1200.00 USD ", True),
        ("1200.0", True), ("", False), ("120000", False), ("1,2000.00", False), ("1200.01", False), ("-1200", False),
        ("€1,200.00", False), ("1200.00 EUR", False), ("１２００", False), ("1e3", False), ("1 200.00", False),
    ],
)  # fmt: skip
def test_only_the_very_amount_is_the_amount(typed: str, same: bool) -> None:
    assert confirming.agrees(typed=typed, money=Money(120_000, "USD")) is same


@given(
    minor=st.integers(1, MAX_MINOR), other=st.integers(1, MAX_MINOR), currency=st.sampled_from(["USD", "JPY", "KWD"])
)
def test_an_amount_is_taken_as_it_is_shown_and_no_other(minor: int, other: int, currency: str) -> None:
    money, another = Money(minor, currency), Money(other, currency)
    for shown in (money.plain(), money.display(), str(money)):
        assert confirming.agrees(typed=shown, money=money)
        assert confirming.agrees(typed=shown, money=another) is (money == another)


def test_the_strictest_of_several_rules_counts_and_an_amount_that_is_not_there_cannot_be_typed() -> None:
    two = document("retype")
    two["rules"].append(
        {**two["rules"][0], "id": "other", "ask": {**two["rules"][0]["ask"], "confirm": "reauthenticate"}}
    )
    need = evaluate(document=two, variables={}).need
    assert need is not None and need.confirm == "reauthenticate"
    assert evaluate(document=document("retype"), variables={}).code == "variable_missing"
    known = evaluate(document=document("retype"), variables={"amount_minor": 5, "currency": "USD"})
    assert known.need is not None and known.need.confirm == "retype"
    for level, enough in (("click", False), ("retype", True), ("reauthenticate", True), ("", False)):
        asked = [Answered(need=StageNeed(name="manager", groups=("manager",), quorum=1), yes=1)]
        again = satisfied(decision_kind="people", asked=asked, in_order=False, confirm=level, verdict=known)
        assert again is enough


def test_the_document_keeps_it_names_a_wrong_one_and_says_it_in_words() -> None:
    plain, click = (PolicyDocument.model_validate(document(level)).stored(policy="p") for level in (None, "click"))
    assert plain == click and "confirm" not in plain["rules"][0]["ask"]
    kept = PolicyDocument.model_validate(document("retype")).stored(policy="p")["rules"][0]["ask"]
    assert kept["confirm"] == "retype" and asks(ask=kept).endswith("each approval takes the amount typed again")
    (problem,) = validate(document=document("shout"))
    assert (problem.where, problem.field) == ("ask", "ask.confirm") and "'retype'" in problem.remedy
    assert any("has the amount typed again" in hint.remedy for hint in advise(document=document("retype")).hints)
    assert advise(document=document("reauthenticate")).hints == []


@pytest.mark.parametrize(
    ("level", "sent", "code"),
    [
        ("click", None, "approved"),
        ("retype", None, "confirm_on_page"),
        ("retype", {}, "retype_needed"),
        ("retype", {"typed": "1200.50"}, "retype_differs"),
        ("retype", {"typed": "1,200.00"}, "approved"),
        ("reauthenticate", None, "confirm_on_page"),
        ("reauthenticate", {"typed": "1200"}, "reauthentication_needed"),
        ("reauthenticate", {"typed": "1200", "ago": 301}, "reauthentication_needed"),
        ("reauthenticate", {"typed": "1200", "ago": -60}, "reauthentication_needed"),
        ("reauthenticate", {"typed": "", "ago": 10}, "retype_needed"),
        ("reauthenticate", {"typed": "1200", "ago": 290}, "approved"),
    ],
)
@pytest.mark.usefixtures("db")
def test_a_yes_counts_with_what_it_takes_and_not_without(level: str, sent: dict[str, Any] | None, code: str) -> None:
    anna, one = world.user("anna"), asked(level)
    beyond = None
    if sent is not None:
        proved = clock.now() - dt.timedelta(seconds=sent["ago"]) if "ago" in sent else None
        beyond = Given(typed=sent.get("typed", ""), proved=proved)
    result = world.cast(one, anna, given=beyond)
    assert result.code == code
    assert Decision.objects.exists() is (code == "approved") is Vote.objects.filter(confirmed=level).exists()
    assert "?" not in sentence(code=code, detail=result.detail)
    if code != "approved":  # no is always safe
        assert world.cast(one, anna, "reject").code == "rejected"


@pytest.mark.usefixtures("db")
def test_the_command_line_cannot_take_more_than_a_click_and_the_database_holds_it() -> None:
    anna, one = world.user("anna"), asked("retype")
    assert world.cast(one, anna, channel="command").code == "confirm_on_page"
    fields = {"request": one.request, "principal": principals.of_user(user=anna), "choice": "approve"}
    rest = {"page_digest": "0", "binding_digest": "0", "authenticated_by": "", "group": "manager", "channel": "page"}
    with pytest.raises(Error) as refused, transaction.atomic():
        Vote.objects.create(**fields, **rest, at=clock.now())
    assert isinstance(refused.value.__cause__, psycopg.errors.RestrictViolation)


@pytest.mark.usefixtures("db")
def test_a_stricter_policy_asks_those_anew_who_were_asked_for_a_click() -> None:
    anna, one = world.user("anna"), world.ask()
    published.publish(
        slug="service-credits", name="Service credits", tools=[world.TOOL], document=document("retype"), note=""
    )

    def now(request: Any, version: Any) -> Any:
        return evaluate(document=version.rules, variables={"amount_minor": 120_000, "currency": "USD"})

    assert world.cast(one, anna, reevaluate=now, given=Given(typed="1200")).code == "policy_changed"
