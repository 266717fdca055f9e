"""The page of a case whose verdict takes two admins: what is proposed, who may confirm it, what each refusal says."""

import re
from typing import Any

import pytest
from django.test import Client

from reconciliation.models import Case, Operation
from tests.runpages import scenes, world
from tests.runpages.billing import Billing, record
from tests.runpages.test_desk import AGO, DIFFERENTLY, SEE, SETTLE, Maker, claimed, html, me

WAITS = "another admin has to confirm it"


@pytest.fixture
def case(db: str, billing: Billing, settings: Any) -> Case:
    """Billing shows $1,000.00 of the $1,200.00; one admin settles less than that alone."""
    settings.SETTLE_ALONE_UP_TO = {"USD": 50_000}
    found: Case = scenes.in_a_case(AGO)[1].cases.get()
    billing.records = (record(found.operation.identity),)
    return found


@pytest.fixture
def tomas(signed_in: Maker) -> Client:
    return signed_in(SEE, SETTLE, "runs.view_run", name="tomas")


@pytest.fixture
def noor(signed_in: Maker) -> Client:
    return signed_in(SEE, SETTLE, "runs.view_run", name="noor")


def look(client: Client, case: Case) -> str:
    return html(client.get(f"/cases/{case.number}/"))


def digest(page: str) -> str:
    found = re.search(r'name="digest" value="([0-9a-f]{64})"', page)
    assert found, "nothing to confirm on this page"
    return found.group(1)


def confirm(client: Client, name: str, case: Case, shown: str) -> tuple[int, str]:
    answer = client.post(f"/cases/{case.number}/confirm", me(name, digest=shown))
    return answer.status_code, html(answer)


def propose(client: Client, case: Case) -> str:
    """The page after it."""
    claimed(client, case)
    answer = client.post(f"/cases/{case.number}/settle", me(**DIFFERENTLY), follow=True)
    assert answer.status_code == 200
    return html(answer)


def test_one_proposes_and_another_confirms(case: Case, tomas: Client, noor: Client, billing: Billing) -> None:
    claimed(tomas, case)
    page = look(tomas, case)
    assert "One admin settles up to $500.00 USD alone." in page and "under your name, with your evidence, and" in page
    page = propose(tomas, case)
    assert "nothing has come of it yet: another admin has to confirm it" in page
    assert "You proposed it, so another admin has to confirm it." in page and "Confirm: " not in page
    assert f"Tomas Example proposed a verdict; {WAITS}" in html(noor.get("/cases/"))
    page = look(noor, case)
    assert "Claim the case to confirm it." in page and "less was booked" in page and "$1,000.00 USD" in page
    claimed(noor, case, "noor")
    page = look(noor, case)
    assert "Confirm: it happened differently" in page
    asked = billing.asked
    assert confirm(noor, "noor", case, digest(page))[0] == 302
    assert billing.asked == asked + 1, "just before it takes effect"
    page = look(tomas, case)
    assert "by Tomas Example, confirmed by Noor Example" in page and "Proposed" not in page
    assert "at $1,000.00 USD instead of $1,200.00 USD" in re.sub(r"\s*<[^>]+>\s*", " ", page).replace("  ", " ")
    page = html(tomas.get(f"/runs/{case.operation.run_id}/"))
    assert "has a verdict that another admin has to confirm" in page
    assert "Tomas Example, confirmed by Noor Example, settled it at $1,000.00 USD by evidence" in page


def test_each_refusal_says_why_and_settles_nothing(case: Case, tomas: Client, noor: Client, billing: Billing) -> None:
    propose(tomas, case)
    shown = digest(look(noor, case))
    told = {"Claim the case first": confirm(noor, "noor", case, shown)}
    claimed(tomas, case)
    told |= {"You proposed this verdict yourself": confirm(tomas, "tomas", case, shown)}
    told |= {"Tomas Example has this case": confirm(noor, "noor", case, shown)}
    tomas.post(f"/cases/{case.number}/release", me())
    claimed(noor, case, "noor")
    told |= {"Tomas Example has proposed another verdict since": confirm(noor, "noor", case, "0" * 64)}
    billing.records = (record(case.operation.identity), record(case.operation.identity, "CR-2"))
    told |= {"What billing shows has changed since this was proposed": confirm(noor, "noor", case, shown)}
    world.person("tomas").user_permissions.clear()
    told |= {"Tomas Example may no longer settle cases": confirm(noor, "noor", case, shown)}
    for sentence, (status, page) in told.items():
        assert status == 409 and sentence in page, sentence
    case.refresh_from_db()
    assert (case.state, Operation.objects.get(pk=case.operation_id).state) == ("claimed", "unknown")


def test_nobody_else_confirms(case: Case, tomas: Client, noor: Client, signed_in: Maker) -> None:
    claimed(noor, case, "noor")
    status, page = confirm(noor, "noor", case, "")
    assert status == 409 and "No verdict is proposed in this case." in page
    noor.post(f"/cases/{case.number}/release", me("noor"))
    propose(tomas, case)
    shown = digest(look(noor, case))
    looker = signed_in(SEE, name="olga")
    assert "An admin other than Tomas Example has to confirm it." in look(looker, case)
    assert confirm(looker, "olga", case, shown)[0] == 403
    assert noor.post(f"/cases/{case.number}/confirm", {"as_user": "0", "digest": shown}).status_code == 403
    assert noor.get(f"/cases/{case.number}/confirm").status_code == 405
    case.refresh_from_db()
    assert case.state == "open"


def test_what_asking_settled_is_not_confirmed(case: Case, tomas: Client, noor: Client, billing: Billing) -> None:
    propose(tomas, case)
    shown = digest(look(noor, case))
    claimed(noor, case, "noor")
    billing.records = (record(case.operation.identity, amount="120000"),)
    status, page = confirm(noor, "noor", case, shown)
    assert status == 409 and "its answer settled this case" in page
    assert Operation.objects.get(pk=case.operation_id).settled_by == "probe"
