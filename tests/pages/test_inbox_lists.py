"""Lists of approvals: what narrows them, how they are kept, where one stands in them, and what comes next."""

import datetime as dt

import psycopg
import pytest
from django.contrib.auth.models import Permission, User
from django.db import IntegrityError, transaction
from django.test import Client

from approvals import lists
from approvals.models import Policy, PolicyTool, Preference, Remark, SavedView
from approvals.services import absences, claiming, preferences, saved_views, talking
from runs import clock
from runs.money import Money
from runs.services import principals
from tests.pages import world
from tests.pages.test_decision import click

pytestmark = pytest.mark.usefixtures("db")


def signed_in(user: User) -> Client:
    browser = Client()
    browser.force_login(user)
    return browser


@pytest.fixture
def maya(db: str) -> User:
    return world.person("Maya Lindgren", "manager")


def names(browser: Client, address: str) -> list[str]:
    """The customers in the list, in its order."""
    page = browser.get(address)
    assert page.status_code == 200
    return [row.request.run.customer for part in page.context["sections"] for row in part["rows"]]


def test_each_filter_finds_what_it_says(maya: User) -> None:
    first = world.ask(world.Story(customer="Acme Corp", amount=Money(120_000, "USD")), minutes=30)
    world.ask(world.Story(customer="Bluebird", amount=Money(250_000, "USD")), minutes=600)
    world.ask(world.Story(customer="Kestrel", amount=Money(120_000, "JPY")), minutes=3000)
    browser = signed_in(maya)
    everything = ["Acme Corp", "Bluebird", "Kestrel"]
    for query, found in (
        ("", everything),
        ("q=acme", ["Acme Corp"]),
        ("q=cs-8812", everything),
        (f"q={first.run_id}", ["Acme Corp"]),
        ("q=$1,200.00", ["Acme Corp"]),
        ("q=2500", ["Bluebird"]),
        ("q=USD 2,500", ["Bluebird"]),
        ("q=25,00", []),
        ("q=120000", ["Kestrel"]),
        ("q=120,000 JPY", ["Kestrel"]),
        ("currency=usd", ["Acme Corp", "Bluebird"]),
        ("least=2,000&currency=USD", ["Bluebird"]),
        ("most=2000.00&currency=USD", ["Acme Corp"]),
        ("due=hour", ["Acme Corp"]),
        ("due=day", ["Acme Corp", "Bluebird"]),
        ("age=hour", []),
        ("group=manager", everything),
        ("group=admin", []),
        ("tool=billing.create_credit", everything),
        ("tool=unheard.of", []),
        (f"asker={first.run.initiator_id}", everything),
        (f"asker={first.run.agent_id}", []),
        ("rule=service-credits", everything),
        ("rule=service-credits/above-1000", everything),
        ("rule=service-credits/small", []),
        ("order=new", everything[::-1]),
        ("order=large&currency=USD", ["Bluebird", "Acme Corp"]),
    ):
        assert names(browser, f"/approvals/?tab=mine&{query}") == found, query


def test_what_cannot_be_read_is_told_and_breaks_nothing(maya: User) -> None:
    world.ask()
    browser = signed_in(maya)
    page = browser.get("/approvals/?tab=mine&least=12").text
    assert "Amount from: say in which currency, such as USD." in page
    assert "Amount to: 1.234 has more decimal places" in browser.get("/approvals/?most=1.234&currency=USD").text
    assert "is not a currency in use" in browser.get("/approvals/?currency=XXQ").text
    comma = browser.get("/approvals/?least=12,50&currency=USD")
    assert "Amount from: 12,50 is not an amount; write digits with a point, such as 1200.00." in comma.text
    assert 'value="12,50"' in comma.text and not comma.context["listing"].filters.get("least")
    assert "choose one to put the largest amount first" in browser.get("/approvals/?order=large").text
    for odd in (
        "tab=x", "q=%00", "q=%F0%9F%A6%8A", "asker=1", "rule=/", "due=never", "by=you", "after=1", "around=x",
        "least=%D9%A1&currency=USD", "q=" + "9" * 99, "order=&tab=", "around=0190163d-8694-739b-aea5-966c26f8ad91",
    ):  # fmt: skip
        assert browser.get(f"/approvals/?{odd}").status_code == 200, odd
        assert browser.get("/approvals/arrivals", {"list": odd}).status_code == 200, odd


def test_an_address_says_the_same_list_again_and_counts_are_mine_alone(maya: User) -> None:
    found = lists.read({"q": " a  b ", "least": "1,200", "currency": "usd", "tab": "others", "due": "x"}).listing
    assert found.query() == "tab=others&q=a+b&least=1200.00&currency=USD"
    assert lists.Listing().query() == ""
    world.ask()
    other = signed_in(world.person("Priya Raman", "support"))
    page = other.get("/approvals/?tab=all").text
    assert 'id="count-mine" aria-label="0 waiting for you" hidden' in page and "Issue $1,200.00" in page
    assert 'name="request"' not in page and 'name="request"' in signed_in(maya).get("/approvals/?tab=mine").text


def test_what_i_answered_and_what_became_of_it(maya: User) -> None:
    jonas = world.person("Jonas Weber", "manager")
    world.decide(world.ask(world.Story(customer="Mine")), maya)
    world.decide(world.ask(world.Story(customer="Theirs")), jonas)
    browser = signed_in(maya)
    assert names(browser, "/approvals/?tab=decided") == ["Theirs", "Mine"]
    assert names(browser, "/approvals/?tab=decided&order=old") == ["Mine", "Theirs"]
    assert names(browser, "/approvals/?tab=decided&by=me") == ["Mine"]
    assert "Answered by you" in browser.get("/approvals/?tab=decided&by=me").text.replace("answered", "Answered")


def test_a_view_is_kept_opens_first_and_is_nobody_elses(maya: User) -> None:
    world.ask(world.Story(customer="Acme Corp"))
    world.ask(world.Story(customer="Bluebird", amount=Money(250_000, "USD")))
    browser, mine = signed_in(maya), {"as_user": str(maya.pk)}
    form = {**mine, "list": "least=2000.00&currency=USD", "name": " Large  ones ", "is_default": "1"}
    assert browser.post("/approvals/views/save", {**form, "as_user": "0"}).status_code == 403
    assert not SavedView.objects.exists()
    answer = browser.post("/approvals/views/save", form)
    assert answer.headers["Location"] == "/approvals/?tab=mine&least=2000.00&currency=USD"
    view = SavedView.objects.get()
    assert (view.name, view.is_default) == ("Large ones", True)
    opened = browser.get("/approvals/")
    assert opened.headers["Location"] == "/approvals/?least=2000.00&currency=USD"
    assert names(browser, opened.headers["Location"]) == ["Bluebird"]
    assert names(browser, "/approvals/?tab=mine") == ["Acme Corp", "Bluebird"]
    jonas = world.person("Jonas Weber", "manager")
    other, theirs = signed_in(jonas), {"as_user": str(jonas.pk)}
    assert "Large ones" not in other.get("/approvals/").text
    for act in ("default", "remove"):
        assert other.post(f"/approvals/views/{view.pk}/{act}", theirs).status_code == 404
    browser.post("/approvals/views/save", {**form, "list": "q=acme", "is_default": ""})
    assert [(one.query, one.is_default) for one in saved_views.of(user=maya)] == [("q=acme", False)]
    browser.post(f"/approvals/views/{view.pk}/default", mine)
    assert SavedView.objects.get().is_default
    browser.post(f"/approvals/views/{view.pk}/remove", mine)
    assert browser.get("/approvals/").status_code == 200 and "Large ones" not in browser.get("/approvals/").text
    assert browser.post(f"/approvals/views/{view.pk}/remove", mine).status_code == 404


def test_views_have_a_name_an_end_and_one_default(maya: User) -> None:
    def save(name: str, **more: object) -> str:
        return saved_views.save(user=maya, name=name, **{"query": "q=a", "is_default": False, **more})  # type: ignore[arg-type]

    assert "give the view one" in save(" \u200b ") and "at most 60" in save("x" * 61)
    assert "too many to keep" in save("x", query="q=" + "a" * 1000)
    for number in range(saved_views.MOST):
        assert save(f"View {number}", is_default=True) == ""
    assert "remove one first" in save("One more") and save("View 3") == ""
    assert [one.name for one in saved_views.of(user=maya) if one.is_default] == [f"View {saved_views.MOST - 1}"]
    with pytest.raises(IntegrityError, match="saved_view_one_default"), transaction.atomic():
        SavedView.objects.filter(user=maya, name="View 1").update(is_default=True)


def test_the_next_one_of_the_same_list_skips_what_others_decided_and_says_when_it_is_done(maya: User) -> None:
    jonas = world.person("Jonas Weber", "manager")
    small = world.ask(world.Story(customer="Small"), minutes=5)
    asks = [
        world.ask(world.Story(customer=f"Large {number}", amount=Money(250_000, "USD")), minutes=10 + number)
        for number in range(4)
    ]
    browser, large = signed_in(maya), "?list=least%3D2000.00%26currency%3DUSD"
    page = browser.get(f"/approvals/{asks[1].pk}/{large}").text
    assert (
        "2 of 4" in page and f"/approvals/{asks[2].pk}/{large}" in page and f"/approvals/{asks[0].pk}/{large}" in page
    )
    assert f"/approvals/?tab=mine&amp;least=2000.00&amp;currency=USD&amp;around={asks[1].pk}" in page
    world.decide(asks[2], jonas)
    kept = {"list": "least=2000.00&currency=USD"}
    answer = click(browser, asks[1], maya, "approve_confirmed", **kept)
    assert answer.headers["Location"] == f"/approvals/{asks[3].pk}/{large}"
    answer = click(browser, asks[3], maya, "reject", comment="not ours", **kept)
    assert (
        answer.headers["Location"] == f"/approvals/{asks[0].pk}/{large}"
    )  # passed over before, so it comes at the end
    answer = click(browser, asks[0], maya, "approve_confirmed", **kept)
    assert answer.headers["Location"] == "/approvals/?tab=mine&least=2000.00&currency=USD&done=1"
    page = browser.get(answer.headers["Location"]).text
    assert "This list is done" in page and "1 other waits" in page and str(small.pk) not in page
    closed = browser.get(f"/approvals/{asks[0].pk}/{large}").text
    assert "1 of" not in closed


def test_coming_back_shows_the_place_one_left(maya: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentops.pages.inbox.PAGE", 4)
    monkeypatch.setattr(lists, "BEFORE", 2)
    asks = [world.ask(world.Story(customer=f"No {number}"), minutes=10 + number) for number in range(9)]
    browser = signed_in(maya)
    assert names(browser, f"/approvals/?tab=mine&after={asks[3].pk}") == ["No 4", "No 5", "No 6", "No 7"]
    assert names(browser, f"/approvals/?tab=mine&around={asks[5].pk}") == ["No 3", "No 4", "No 5", "No 6"]
    assert names(browser, f"/approvals/?tab=mine&around={asks[0].pk}")[0] == "No 0"
    world.decide(asks[5], maya)
    assert names(browser, f"/approvals/?tab=mine&around={asks[5].pk}") == ["No 3", "No 4", "No 6", "No 7"]
    live = browser.get("/approvals/arrivals").text
    assert str(asks[7].pk) in live and str(asks[5].pk) not in live  # further than a page: pushed down is not gone


def test_counts_stop_at_a_number_and_say_so(maya: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("approvals.queries.MOST_COUNTED", 2)
    monkeypatch.setattr("approvals.lists.MOST_COUNTED", 2)
    for _ in range(4):
        world.ask()
    page = signed_in(maya).get("/approvals/").text
    assert ">2+</span>" in page.replace("\n", "") and '<span class="short">for others</span></span></a>' in page


def test_zone_and_keys_are_kept_for_the_person(maya: User) -> None:
    ask = world.ask()
    browser, mine = signed_in(maya), {"as_user": str(maya.pk)}
    assert 'data-keys="on"' in browser.get("/approvals/").text
    browser.cookies["tz"] = "America/New_York"
    assert "(America/New_York)" in browser.get("/approvals/").text
    assert browser.post("/account/preferences/", {**mine, "zone": "Nowhere/At_All"}).status_code == 422
    assert browser.post("/account/preferences/", {"as_user": "0", "zone": "Asia/Tokyo"}).status_code == 302
    assert not Preference.objects.exists()
    assert browser.post("/account/preferences/", {**mine, "zone": "Asia/Tokyo"}).status_code == 302
    page = browser.get(f"/approvals/{ask.pk}/").text
    assert "(Asia/Tokyo)" in page and "New_York" not in page and 'data-keys="off"' in page
    assert signed_in(maya).post("/account/preferences/keys", {"user": str(maya.pk), "keys": "on"}).status_code == 204
    assert preferences.of(user=maya).keys and preferences.of(user=maya).zone == "Asia/Tokyo"
    assert browser.post("/account/preferences/keys", {"user": "0"}).status_code == 409
    assert '<option value="Asia/Tokyo" selected>' in browser.get("/account/preferences/").text


def test_a_policy_that_asks_stages_is_among_the_filters(maya: User) -> None:
    world.person("Jonas Weber", "manager")
    stages = [{"name": name, "groups": ["manager"], "quorum": 1} for name in ("First", "Second")]
    times = {"respond_within_minutes": 60, "valid_for_minutes": 60}
    rule = {**world.DOCUMENT["rules"][2], "ask": {"order": "sequential", "stages": stages, **times}}
    world.policy(document={**world.DOCUMENT, "rules": [rule]})
    assert signed_in(maya).get("/approvals/").status_code == 200


def test_an_action_that_no_tool_does_yet_is_offered_in_words(maya: User) -> None:
    world.policy()
    PolicyTool.objects.create(policy=Policy.objects.get(), tool="helpdesk.add_comment")
    assert ">Add comment</option>" in signed_in(maya).get("/approvals/").text


def test_a_row_says_that_a_question_waits_and_who_is_looking(maya: User) -> None:
    asks = [world.ask(world.Story(customer=name)) for name in ("Acme Corp", "Bluebird", "Kestrel")]
    jonas, priya = world.person("Jonas Weber", "manager"), world.person("Priya Raman", "support")
    of = principals.of_user
    for ask in asks[:2]:
        asked = {"principal": of(user=jonas), "asked_of": "support", "text": "Why?"}
        assert talking.ask(request_id=ask.pk, channel="page", **asked).ok
    question = Remark.objects.get(request=asks[1]).pk
    assert talking.answer(
        request_id=asks[1].pk, principal=of(user=priya), question_id=question, text="So", channel="page"
    ).ok
    assert claiming.claim(request_id=asks[0].pk, principal=of(user=jonas), channel="page").ok
    assert claiming.claim(request_id=asks[2].pk, principal=of(user=maya), channel="page").ok

    def said(user: User) -> list[tuple[bool, bool, bool]]:
        page = signed_in(user).get("/approvals/?tab=all&order=old").text
        words = ("Waiting for an answer", "Jonas Weber is looking", "You are looking")
        return [tuple(word in row for word in words) for row in page.split('<li class="ask')[1:]]  # type: ignore[misc]

    assert said(maya) == [(True, True, False), (False, False, False), (False, False, True)]
    jonas.groups.clear()  # a claim ends with the right to answer
    assert said(maya)[0] == (True, False, False)


def test_a_row_says_in_whose_place_the_reader_would_answer(maya: User, owner: psycopg.Connection) -> None:
    dora = world.person("Dora Finch", "support")
    dora.user_permissions.add(Permission.objects.get(codename="vote"))
    world.ask()
    now = clock.now()
    given = {"begins": now, "ends": now + dt.timedelta(days=1), "note": "", "by": maya}
    assert absences.arrange(person_id=maya.pk, stand_in_id=dora.pk, **given).ok
    assert "You answer for Maya Lindgren, who is away" in signed_in(dora).get("/approvals/?tab=mine").text
    assert "You answer for Maya" not in signed_in(maya).get("/approvals/?tab=mine").text
    jonas = world.person("Jonas Weber", "manager")
    assert absences.arrange(person_id=jonas.pk, stand_in_id=dora.pk, **{**given, "by": jonas}).ok
    # nobody stands in for whoever started the run
    owner.execute("UPDATE runs_run SET initiator_id = %s", [principals.of_user(user=maya).pk])
    row = signed_in(dora).get("/approvals/?tab=mine").text
    assert "You answer for Jonas Weber, who is away" in row and "answer for Maya" not in row
