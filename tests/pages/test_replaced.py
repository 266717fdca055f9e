"""A page whose request was replaced goes on to what is asked now, however late that comes, and says why."""

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from playwright.sync_api import expect

from approvals.models import ApprovalRequest
from approvals.models.request import RequestState
from approvals.services import requests
from runs import transitions
from runs.models import Principal, Run
from runs.models.run import RunState
from runs.services import principals
from tests.pages import world
from tests.pages.conftest import Visitor
from tests.pages.test_decision import signed_in

pytestmark = pytest.mark.usefixtures("db")


@pytest.fixture
def maya(db: str) -> User:
    return world.person("Maya Lindgren", "manager")


def replace(ask: ApprovalRequest, *, by: Principal | None = None) -> None:
    """It is replaced; what follows is asked later."""
    with transaction.atomic(durable=True):
        run = Run.objects.select_for_update(of=("self",)).get(pk=ask.run_id)
        actor = by or principals.system()
        requests.close_open(run=run, to=RequestState.SUPERSEDED, why="$900.00 instead", actor=actor)


def bar(text: str) -> str:
    return " ".join(text.partition('id="bar"')[2].partition("</section>")[0].split())


def test_while_nothing_is_asked_yet_the_page_looks_on_and_says_so(maya: User) -> None:
    ask = world.ask()
    replace(ask)
    browser = signed_in(maya)
    page = browser.get(f"/approvals/{ask.pk}/").text
    assert "Something has changed since this was asked. What follows is being worked out" in bar(page)
    assert 'hx-trigger="every 3s"' in page and "a newer request asks again" not in page
    world.ask(run=Run.objects.get(), supersedes=ApprovalRequest.objects.get())
    page = browser.get(f"/approvals/{ask.pk}/").text
    assert "Go to what is asked now" in bar(page) and "being worked out" not in page
    assert 'id="watch"' in page and 'hx-trigger="never"' in page


def test_an_amount_that_a_person_proposed_is_called_that(maya: User) -> None:
    ask = world.ask()
    replace(ask, by=principals.of_user(user=maya))
    assert "Maya Lindgren proposed another amount. What follows is" in bar(
        signed_in(maya).get(f"/approvals/{ask.pk}/").text
    )


def test_once_the_run_is_over_an_open_page_says_so_instead(maya: User) -> None:
    """The policy may have allowed another amount by itself."""
    ask = world.ask()
    replace(ask)
    browser = signed_in(maya)
    version = browser.get(f"/approvals/{ask.pk}/").text.split("status?v=")[1].split('"')[0]
    assert browser.get(f"/approvals/{ask.pk}/status?v={version}").status_code == 204
    transitions.move(run=Run.objects.get(), to=RunState.REJECTED, actor=principals.system(), why="denied", outcome="No")
    told = browser.get(f"/approvals/{ask.pk}/status?v={version}").text
    assert "Nobody was asked again, and the run is over" in bar(told) and 'hx-trigger="never"' in told


@pytest.mark.browser
def test_it_goes_there_once_it_is_asked(visitor: Visitor, maya: User) -> None:
    ask = world.ask()
    replace(ask)
    visitor.sign_in("maya")
    page = visitor.goto(f"/approvals/{ask.pk}/")
    with page.expect_response("**/status?**"):
        expect(page.locator("#bar")).to_contain_text("this page goes there by itself")
    new = world.ask(run=Run.objects.get(), supersedes=ApprovalRequest.objects.get())
    page.wait_for_url(f"**/approvals/{new.pk}/")
    visitor.assert_sound()


def test_what_is_wrong_with_an_amount_stands_at_the_amount(maya: User) -> None:
    ask = world.ask()
    sent = {"as_user": str(maya.pk), "amount": "4.800,00", "text": "half of it"}
    page = signed_in(maya).post(f"/approvals/{ask.pk}/do/amount", sent)
    field = page.text.partition('id="other-amount"')[2].partition('id="text-amount"')[0]
    assert page.status_code == 422 and 'value="4.800,00" aria-invalid="true"' in field
    assert "is not an amount; write digits with a point" in field and 'id="problem-amount"' in field
    why = page.text.partition('id="text-amount"')[2].partition("</dialog>")[0]
    assert "half of it" in why and "aria-invalid" not in why.partition(">")[0]
