"""The inbox, the overview and the policies: who sees what, in which order, and what an empty list says."""

import re
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.test import Client

from agentops.pages import exposure
from approvals import rule_diff
from approvals.evaluation import evaluate
from approvals.models import Allowance, ApprovalRequest
from reconciliation.classification import Result
from reconciliation.models import WorkerProcess
from reconciliation.services import gates
from runs import clock
from runs.models import Run
from runs.tools.registry import TOOLS, contract
from tests.pages import world
from tests.statements_sent import statements_sent

pytestmark = pytest.mark.usefixtures("db")

PAGES = ("/approvals/", "/approvals/arrivals", "/overview/", "/policies/", "/policies/service-credits/")


def signed_in(user: User) -> Client:
    browser = Client()
    browser.force_login(user)
    return browser


@pytest.fixture
def maya(db: str) -> User:
    return world.person("Maya Lindgren", "manager")


@pytest.mark.parametrize("path", PAGES)
def test_pages_are_for_those_with_the_right_alone(path: str) -> None:
    ask = world.ask()
    assert Client().get(path).headers["Location"].startswith("/accounts/login/")
    stranger = signed_in(world.person("Sam Stranger"))
    assert stranger.get(path).status_code == 403
    assert stranger.get(f"/approvals/{ask.pk}/").status_code == 403
    for name, group in (("Maya Lindgren", "manager"), ("Priya Raman", "support"), ("Tomas Reyes", "admin")):
        assert signed_in(world.person(name, group)).get(path).status_code == 200


@pytest.mark.parametrize(("group", "start"), [("manager", "/approvals/"), ("support", "/runs/"), ("admin", "/cases/")])
def test_everybody_starts_where_their_work_is(group: str, start: str) -> None:
    assert signed_in(world.person("Some Body", group)).get("/").headers["Location"] == start


def test_the_soonest_deadline_comes_first_and_the_badge_counts_only_mine(maya: User) -> None:
    later, soon = (
        world.ask(world.Story(customer="Later"), minutes=600),
        world.ask(world.Story(customer="Soon"), minutes=5),
    )
    browser = signed_in(maya)
    page = browser.get("/approvals/").text
    assert page.index(str(soon.pk)) < page.index(str(later.pk))
    assert 'aria-label="2 waiting for you"' in page and "near" in page
    other = signed_in(world.person("Priya Raman", "support"))
    assert 'id="count-mine" aria-label="0 waiting for you" hidden' in other.get("/approvals/").text
    assert str(soon.pk) in other.get("/approvals/?tab=others").text


def test_the_zone_stands_beside_the_deadlines(maya: User) -> None:
    ask, browser = world.ask(), signed_in(maya)
    browser.cookies["tz"] = "Asia/Tokyo"
    assert "Times in JST." in browser.get("/approvals/").text
    assert re.search(r"until <time[^>]*>[^<]*</time> JST</span>", browser.get(f"/approvals/{ask.pk}/").text)


def test_what_the_frame_counts_is_for_who_is_signed_in(maya: User) -> None:
    world.ask()
    assert 'aria-label="1 waiting for you"' in signed_in(maya).get("/waiting").text
    counted = signed_in(world.person("Priya Raman", "support")).get("/waiting").text
    assert 'aria-label="0 waiting for you"' in counted and "open cases" in counted
    assert signed_in(world.person("Sam Stranger")).get("/waiting").text.strip() == ""
    assert Client().get("/waiting", headers={"HX-Request": "true"}).status_code == 401
    assert signed_in(maya).post("/waiting").status_code == 405


def test_each_kind_of_empty_has_its_own_words(maya: User) -> None:
    browser = signed_in(maya)
    assert "Nothing has been asked yet" in browser.get("/approvals/").text
    assert "Nothing waits for anybody else" in browser.get("/approvals/?tab=others").text
    assert "Nothing has been decided yet" in browser.get("/approvals/?tab=decided").text
    priya = signed_in(world.person("Priya Raman", "support"))
    assert "Nothing is ever asked of you here" in priya.get("/approvals/").text
    world.decide(world.ask(), maya)
    assert "You have answered everything" in browser.get("/approvals/").text


@pytest.mark.parametrize(
    ("to", "word", "not_words"),
    [
        ("authorised", "Waiting to run", ("Completed", "Failed")),
        ("unknown", "Not confirmed", ("Completed", "Failed")),
        ("succeeded", "Completed", ("Failed",)),
        ("failed", "Failed", ("Completed", "Not confirmed")),
    ],
)
def test_decided_says_what_became_of_it(maya: User, to: str, word: str, not_words: tuple[str, ...]) -> None:
    ask = world.ask()
    world.operation(world.decide(ask, maya), to=to)
    browser = signed_in(maya)
    for path in ("/approvals/?tab=decided", f"/approvals/{ask.pk}/"):
        page = browser.get(path).text
        assert word in page
        assert not any(f"</svg>{other}<" in page for other in not_words)
    assert ("CN-5001" in browser.get("/approvals/?tab=decided").text) == (to == "succeeded")


def test_approved_and_not_run_is_never_shown_as_done(maya: User) -> None:
    ask = world.ask()
    world.decide(ask, maya)
    page = signed_in(maya).get(f"/approvals/{ask.pk}/").text
    assert "Approved, waiting to run. Nothing has been sent yet." in page and "Completed" not in page


def test_arrivals_name_what_is_there_and_expired_ones_are_gone(maya: User, owner: psycopg.Connection) -> None:
    stays, goes = world.ask(), world.ask(world.Story(customer="Gone"))
    browser = signed_in(maya)
    assert str(goes.pk) in browser.get("/approvals/arrivals").text
    owner.execute("UPDATE approvals_approvalrequest SET respond_by = now() - interval '1 s' WHERE id = %s", [goes.pk])
    answer = browser.get("/approvals/arrivals").text
    assert str(goes.pk) not in answer and str(stays.pk) in answer and 'aria-label="1 waiting for you"' in answer


def test_the_inbox_and_a_decision_page_ask_a_fixed_number_of_questions(maya: User) -> None:
    """And not more than they need: what is read for one part of a page is there for the others."""
    browser = signed_in(maya)

    def queries(page: str = "/approvals/") -> int:
        with statements_sent() as sent:
            assert browser.get(page).status_code == 200
        return len(sent)

    world.ask()
    decision = f"/approvals/{world.ask().pk}/"
    world.ask()
    few, of_one = queries(), queries(decision)
    for number in range(6):
        world.ask(world.Story(customer=f"Customer {number}"))
    assert queries() == few <= 32
    assert queries(decision) == of_one <= 61
    assert ApprovalRequest.objects.count() == 9


def test_a_policy_shows_its_rules_its_versions_and_what_changed(maya: User) -> None:
    world.policy()
    rules: list[dict[str, Any]] = [dict(rule) for rule in world.DOCUMENT["rules"]]
    rules[1]["when"] = "currency == 'USD' && amount_minor <= 50000"
    world.policy(number=2, document={**world.DOCUMENT, "rules": rules})
    browser = signed_in(maya)
    page = browser.get("/policies/service-credits/").text
    assert "v2" in page and "In force" in page and "amount_minor &lt;= 50000" in page and "at most $500.00 USD" in page
    old = browser.get("/policies/service-credits/?version=1").text
    assert "Not in force" in old and "amount_minor &lt;= 50000" not in old
    for wrong in ("?version=9", "?version=x", "?version=%00"):
        assert browser.get(f"/policies/service-credits/{wrong}").status_code == 404
    assert "$20,000.00 USD" in page and "¥3,000,000 JPY" in page


def test_comparing_two_equal_documents_finds_nothing() -> None:
    assert rule_diff.changes(old=world.DOCUMENT, new=world.DOCUMENT) == []


def test_tools_that_no_policy_governs_are_listed_with_the_way_out() -> None:
    browser = signed_in(world.person("Tomas Reyes", "admin"))
    page = " ".join(browser.get("/policies/").text.split())
    assert "No policy has been published" in page and "<code>billing.create_credit</code>, <code>" in page
    assert "so they are never called" in page and "<code>manage.py publish_policy</code>" in page
    world.person("Maya Lindgren", "manager")
    world.policy()
    page = browser.get("/policies/").text
    assert "<code>helpdesk.draft_reply</code>" in page and "<code>billing.create_credit</code>, <code>" not in page


def test_before_the_first_call_the_overview_says_so(maya: User) -> None:
    WorkerProcess.objects.create(host="here", boot="boot", pid=1, start_ticks=1)
    page = " ".join(signed_in(maya).get("/overview/").text.split())
    assert "0 at work now; no call out yet" in page and "last call out" not in page


def test_the_overview_counts_what_waits_and_what_is_not_known(maya: User) -> None:
    world.ask()
    world.operation(world.decide(world.ask(world.Story(customer="Unsure")), maya), to="unknown")
    page = " ".join(signed_in(maya).get("/overview/").text.split())
    assert 'Waiting for approval</p> <p class="figure">1</p>' in page
    assert 'Not confirmed</p> <p class="figure">1</p>' in page


def test_the_overview_says_which_system_does_not_answer_since_when_why_and_who_waits(maya: User) -> None:
    page = " ".join(signed_in(maya).get("/overview/").text.split())
    outside = page[page.index("Outside systems") :]
    lines = {*TOOLS, *(contract(name).system for name in TOOLS)}
    assert "Does not answer" not in outside and outside.count("Answers") == len(lines)
    for _ in range(gates.OPENS_AFTER):
        gates.heard(
            name="billing.create_credit", result=Result.AMBIGUOUS, detail="Billing answered 503: <down>",
            raw={"status": 503, "headers": {"retry-after": "600"}}, retry_after=None, now=clock.now(), troubled=True,
        )  # fmt: skip
    gates.heard(
        name="helpdesk.draft_reply", result=Result.OVERLOADED, detail="", raw={}, retry_after="600", now=clock.now(),
        troubled=True,
    )  # fmt: skip
    Run.objects.filter(pk=world.ask().run.pk).update(waits_on="billing.create_credit")
    page = " ".join(signed_in(maya).get("/overview/").text.split())
    first = page[page.index("Outside systems") :].split("<tr>")[2]
    assert "Create credit" in first and "Does not answer" in first and "since" in first and "asked next at" in first
    assert "billing.create_credit: calls" in first
    assert "Billing answered 503: &lt;down&gt;" in first
    assert '<td data-th="Runs waiting" class="end">1</td>' in first
    assert "Asked to be left alone" in page


def test_other_exposure_shows_what_is_not_confirmed_and_what_goes_over_the_limit(maya: User) -> None:
    world.operation(world.decide(world.ask(), maya), to="unknown")
    ask = world.ask()
    shares = exposure.shares(verdict=exposure.judged(request=ask, facts=exposure.facts_of(ask)))
    assert shares is not None and shares[0].limit == 2_000_000 and shares[0].over == 0
    key = evaluate(document=ask.policy_version.rules, variables=exposure.variables(ask)).totals[0].key
    Allowance.objects.create(
        key=key, label="x", currency="USD", limit_minor=2_000_000, settled_minor=1_800_000, reserved_minor=120_000
    )
    page = " ".join(signed_in(maya).get(f"/approvals/{ask.pk}/").text.split())
    assert "$18,000.00 USD given + $1,200.00 USD under way or not confirmed + $1,200.00 USD this one" in page
    assert "$400.00 USD over the limit" in page
    exposed = page[page.index("Other exposure") : page.index("Chain and history")]
    assert "Not confirmed" in exposed and "Billing creates one credit of $1,200.00" in page


def test_totals_that_cannot_be_worked_out_are_not_shown_as_none(maya: User) -> None:
    broken = world.ask(world.Story(tool="helpdesk.unheard_of"))
    assert exposure.judged(request=broken, facts=exposure.facts_of(broken)) is None
    page = signed_in(maya).get(f"/approvals/{broken.pk}/").text
    assert "cannot be worked out right now" in page
