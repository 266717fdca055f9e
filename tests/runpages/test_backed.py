"""Several cases settled at once by a statement: each by a line of its own, and each with a result of its own."""

import datetime as dt
import re
from typing import Any

import pytest
from django.test import Client

from reconciliation.models import Case, Observation, Statement, StatementLine
from reconciliation.services import backed
from runs import clock
from runs.models import Event
from runs.services import principals
from tests.runpages import scenes, world
from tests.runpages.billing import Billing, record
from tests.runpages.test_desk import AGO, SEE, SETTLE, Maker, html, me


@pytest.fixture
def tomas(signed_in: Maker) -> Client:
    return signed_in(SEE, SETTLE, "runs.view_run", name="tomas")


@pytest.fixture
def billing(monkeypatch: pytest.MonkeyPatch) -> Billing:
    """It cannot be asked, so that nothing but the lines says what happened."""
    fake = Billing()
    fake.records = None
    monkeypatch.setattr(backed, "tool", lambda name: fake)
    return fake


@pytest.fixture
def statement(db: str, signed_in: Maker) -> Statement:
    now = clock.read()
    return Statement.objects.create(
        system="billing", source="read", since=now - dt.timedelta(days=1), until=now,
        asked_by=principals.of_user(user=world.person("tomas")), read_at=now, matched_at=now, finished_at=now,
    )  # fmt: skip


def listed(statement: Statement, case: Case, reference: str, **changes: Any) -> StatementLine:
    """A line about the case's operation, as it was sent unless `changes` say otherwise."""
    operation, number = case.operation, statement.lines.count() + 1
    fields: dict[str, Any] = {
        "identity": operation.identity, "amount_minor": operation.amount_minor, "currency": operation.currency,
        "reference": reference, "operation": operation, **changes,
    }  # fmt: skip
    return StatementLine.objects.create(
        statement=statement, number=number, key=f"cn_{number}", at=clock.read(), result="unconfirmed",
        judged_at=clock.read(), **fields,
    )  # fmt: skip


def cases(number: int) -> list[Case]:
    return [world.open_case(scenes.unknown(AGO, subject=f"CS-{n}")[1], "asked 8 times") for n in range(number)]


def post(client: Client, statement: Statement, chosen: list[Case]) -> Any:
    return client.post(f"/statements/{statement.pk}/settle", me(case=[one.pk for one in chosen]))


def test_each_is_settled_by_its_own_line_and_the_rest_stays(
    tomas: Client, billing: Billing, statement: Statement
) -> None:
    first, second, other_amount, twice, named_twice, _ = found = cases(6)
    for number, case in enumerate((first, second, named_twice)):
        listed(statement, case, f"CN-{number}")
    listed(statement, other_amount, "CN-7", amount_minor=1)
    listed(statement, twice, "CN-8")
    listed(statement, twice, "CN-9")
    listed(statement, other_amount, "CN-2", identity="")  # one name for two operations stands for neither
    assert [one.case for one in backed.backed(statement=statement)] == [first, second]
    page = html(tomas.get(f"/statements/{statement.pk}/"))
    assert page.count('name="case"') == 2 and "Record for each: it happened" in page
    page = html(post(tomas, statement, found))
    assert "2 of 6 cases settled" in page and page.count("no line of its own") == 4
    for number, case in enumerate((first, second)):
        case.refresh_from_db()
        operation = type(case.operation).objects.get(pk=case.operation_id)
        assert (case.state, case.verdict, operation.external_reference) == ("resolved", "happened", f"CN-{number}")
        assert f"ST-{statement.pk}, line {number + 1}: CN-{number} of $1,200.00" in case.evidence
        assert Event.objects.filter(stream=f"run:{operation.run_id}", kind="case.resolved").count() == 1
    assert Case.objects.exclude(state="resolved").count() == 4
    assert billing.asked == 2, "each was asked about just before"
    assert "0 of 2" in html(post(tomas, statement, [first, second])), "what is settled is settled once"


def test_who_has_it_and_what_they_say_comes_first(
    tomas: Client, billing: Billing, statement: Statement, signed_in: Maker, settings: Any
) -> None:
    theirs, differing, above = found = cases(3)
    for number, case in enumerate(found):
        listed(statement, case, f"CN-{number}")
    noor = signed_in(SEE, SETTLE, name="noor")
    assert noor.post(f"/cases/{theirs.pk}/claim", me("noor")).status_code == 302
    operation = differing.operation
    billing.records = (record(operation.identity, "CN-1"),)
    page = html(post(tomas, statement, [theirs, differing]))
    assert "0 of 2" in page and "Noor Example has this case" in page and "is not what was sent" in page
    differing.refresh_from_db()
    assert (differing.state, differing.claimed_by) == ("open", None), "given back"
    billing.records = None
    settings.SETTLE_ALONE_UP_TO = {"USD": 100_000}
    assert "another admin has to confirm it" in html(post(tomas, statement, [above]))
    assert Observation.objects.filter(source="person").count() == 0


def test_what_one_proposed_for_several_another_confirms_for_several(
    tomas: Client, billing: Billing, statement: Statement, signed_in: Maker, settings: Any
) -> None:
    settings.SETTLE_ALONE_UP_TO = {"USD": 100_000}
    first, second, otherwise, since = found = cases(4)
    for number, case in enumerate(found):
        listed(statement, case, f"CN-{number}")
    noor = signed_in(SEE, SETTLE, "runs.view_run", name="noor")
    assert "0 of 2" in html(post(tomas, statement, [first, second]))
    assert noor.post(f"/cases/{otherwise.pk}/claim", me("noor")).status_code == 302
    form = {"verdict": "twice", "evidence_twice": "both", "reference_twice": "CN-2", "other_reference_twice": "CN-2b"}
    assert noor.post(f"/cases/{otherwise.pk}/settle", me("noor", **form)).status_code == 302

    page = html(tomas.get(f"/statements/{statement.pk}/"))
    assert page.count("You proposed it") == 2 and "confirm it on its own page" in page
    assert page.count("disabled") == 3, "its own, and what was proposed otherwise"
    assert html(post(tomas, statement, [first, otherwise])).count("Settled by its line") == 0
    page = html(noor.get(f"/statements/{statement.pk}/"))
    assert page.count("Tomas Example proposed it") == 2 and page.count("tick it to confirm: ST-") == 2
    ticked = re.findall(r'name="case" value="(\d+)" checked', page)
    assert ticked == [str(since.pk)], "to confirm is a step of its own"
    digests = dict(re.findall(r'name="(digest_\d+)" value="([0-9a-f]{64})"', page))
    assert "0 of 1" in html(post(tomas, statement, [since]))
    numbers = [one.pk for one in found]
    page = html(noor.post(f"/statements/{statement.pk}/settle", me("noor", case=numbers, **digests)))
    assert "2 of 4" in page and page.count("Confirmed, and settled by its line under both names") == 2
    assert "has proposed it since" in page and page.count("Not settled") == 2
    for case in (first, second):
        case.refresh_from_db()
        assert (case.verdict, case.settled_by) == ("happened", "Tomas Example, confirmed by Noor Example")
    for case in (otherwise, since):
        case.refresh_from_db()
        assert (case.state, case.claimed_by) == ("open", None)
    assert since.proposals.count() == 1, "and is not replaced"


def test_rights_and_odd_posts(tomas: Client, billing: Billing, statement: Statement, signed_in: Maker) -> None:
    [case] = cases(1)
    listed(statement, case, "CN-0")
    at = f"/statements/{statement.pk}/settle"
    assert "No case was chosen" in html(tomas.post(at, me(case=["x", "-1", "9" * 30])))
    assert tomas.post(at, {"case": case.pk, "as_user": "0"}).status_code == 403
    priya = signed_in(SEE, name="priya")
    assert priya.post(at, me("priya", case=case.pk)).status_code == 403
    assert "Record for each" not in html(priya.get(f"/statements/{statement.pk}/"))
    assert tomas.post("/statements/99/settle", me(case=case.pk)).status_code == 404
    case.refresh_from_db()
    assert case.state == "open"
