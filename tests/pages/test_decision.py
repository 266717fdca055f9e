"""The click: counted once, refused with its own words, never done under another name, and never lost in silence."""

from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import Group, User
from django.http import HttpResponse
from django.test import Client

from approvals import freezes
from approvals.models import ApprovalRequest, Decision, Refusal, Viewing, Vote
from approvals.services import freezing
from runs.money import Money
from tests.pages import world

pytestmark = pytest.mark.usefixtures("db")


def signed_in(user: User) -> Client:
    browser = Client()
    browser.force_login(user)
    return browser


def click(browser: Client, ask: ApprovalRequest, user: User, choice: str, **more: Any) -> HttpResponse:
    form = {"choice": choice, "page_digest": ask.page_digest, "as_user": str(user.pk), "comment": "", **more}
    return browser.post(f"/approvals/{ask.pk}/", form)


@pytest.fixture
def maya(db: str) -> User:
    return world.person("Maya Lindgren", "manager")


def test_approving_takes_two_acts_and_leads_to_the_next_item(maya: User) -> None:
    first, second = world.ask(minutes=10), world.ask(world.Story(customer="Bluebird Bikes"), minutes=20)
    browser = signed_in(maya)
    answer = click(browser, first, maya, "approve", comment="checked with finance")
    assert answer.status_code == 200 and "Yes, approve" in answer.text and "data-open" in answer.text
    assert 'value="checked with finance"' in answer.text
    assert not Vote.objects.exists() and not Refusal.objects.exists()
    answer = click(browser, first, maya, "approve_confirmed", comment="checked with finance")
    assert answer.headers["Location"] == f"/approvals/{second.pk}/"
    decision = Decision.objects.get()
    assert decision.approved and decision.request_id == first.pk
    vote = Vote.objects.get()
    assert (vote.comment, vote.page_digest, vote.channel) == ("checked with finance", first.page_digest, "page")
    page = browser.get(answer.headers["Location"])
    assert "waiting to run" in page.text and "1 of 1" in page.text
    assert "Completed" not in browser.get(f"/approvals/{first.pk}/").text


def test_the_message_leads_to_what_was_decided_and_names_what_is_shown_now(maya: User) -> None:
    first, second = world.ask(minutes=10), world.ask(world.Story(customer="Bluebird <i>Bikes"), minutes=20)
    browser = signed_in(maya)
    page = browser.get(click(browser, first, maya, "approve_confirmed").headers["Location"])
    message = page.text.split('id="messages"')[1].split("<main")[0]
    assert f'<a href="/approvals/{first.pk}/">See what became of it</a>' in message
    assert "Shown now, the next: Issue $1,200.00 service credit to Bluebird &lt;i&gt;Bikes." in message
    page = browser.get(click(browser, second, maya, "reject", comment="no").headers["Location"])
    message = page.text.split('id="messages"')[1].split("<main")[0]
    assert f'<a href="/approvals/{second.pk}/">' in message and "the next" not in message


def test_the_same_click_twice_is_one_vote_and_no_refusal(maya: User) -> None:
    ask = world.ask()
    browser = signed_in(maya)
    for comment in ("checked", "checked", ""):
        answer = click(browser, ask, maya, "approve_confirmed", comment=comment)
        assert answer.status_code == 302
        page = browser.get(answer.headers["Location"]).text
        assert "Approved. It is waiting to run." in page and "notice is-green" in page
    assert (Vote.objects.count(), Decision.objects.count(), Refusal.objects.count()) == (1, 1, 0)
    answer = click(browser, ask, maya, "approve_confirmed", comment="one more thing")
    assert answer.status_code == 409 and "You approved this on" in answer.text and "It counts once." in answer.text
    assert "Your comment was not sent: “one more thing”" in answer.text
    assert "notice is-green refusal" in answer.text and "notice is-red" not in answer.text
    answer = click(browser, ask, maya, "reject", comment="checked")
    assert answer.status_code == 409 and "notice is-red refusal" in answer.text
    assert "was not sent" not in answer.text  # the stored vote carries it


def test_the_same_click_after_it_was_carried_out_says_when_it_was_given(maya: User) -> None:
    ask = world.ask()
    world.operation(world.decide(ask, maya), to="succeeded")
    browser = signed_in(maya)
    page = browser.get(click(browser, ask, maya, "approve_confirmed").headers["Location"]).text
    assert "You approved this on" in page and "waiting to run" not in page
    assert not Refusal.objects.exists()


def test_the_last_one_leads_to_the_inbox_and_says_what_happened(maya: User) -> None:
    ask = world.ask()
    browser = signed_in(maya)
    answer = click(browser, ask, maya, "reject", comment="wrong invoice")
    assert answer.headers["Location"] == "/approvals/?tab=mine&done=1"
    assert "Rejected. What was asked will not be done." in browser.get("/approvals/").text
    assert not Decision.objects.get().approved


def test_rejecting_without_a_reason_keeps_the_page_and_decides_nothing(maya: User) -> None:
    ask = world.ask()
    answer = click(signed_in(maya), ask, maya, "reject", comment="   ")
    assert answer.status_code == 422 and "Say why you reject it" in answer.text
    assert not Decision.objects.exists() and Refusal.objects.get().code == "reason_needed"


@pytest.mark.parametrize("edge", ["expire", "withdraw"])
def test_a_closed_request_says_so_and_keeps_what_was_typed(maya: User, edge: str) -> None:
    ask = world.ask()
    world.close(ask, edge, "the run was cancelled")
    answer = click(signed_in(maya), ask, maya, "approve_confirmed", comment="typed for a while")
    assert answer.status_code == 409 and "takes no answers any more" in answer.text
    assert "Nothing was done" not in answer.text and "typed for a while" in answer.text
    assert not Decision.objects.exists() and Refusal.objects.count() == 1


def test_the_slower_of_two_hears_who_decided_what_and_when(maya: User) -> None:
    jonas = world.person("Jonas Weber", "manager")
    ask = world.ask()
    assert click(signed_in(jonas), ask, jonas, "reject", comment="no").status_code == 302
    answer = click(signed_in(maya), ask, maya, "approve_confirmed")
    assert answer.status_code == 409 and "Jonas Weber rejected this on" in answer.text
    assert Decision.objects.count() == 1 and not Decision.objects.get().approved


def test_a_superseded_request_shows_its_successor_with_what_changed(maya: User) -> None:
    old = world.ask(world.Story(invoice_version="2", amount=Money(124000, "USD")))
    new = world.ask(run=old.run, supersedes=old)
    answer = click(signed_in(maya), old, maya, "approve_confirmed", comment="typed")
    assert answer.status_code == 409 and f'value="{new.page_digest}"' in answer.text and 'value="typed"' in answer.text
    assert "$1,240.00 USD" in answer.text and "I have read what changed" in answer.text
    assert not Decision.objects.exists()


def test_changes_have_to_be_ticked(maya: User) -> None:
    old = world.ask(world.Story(invoice_version="2", amount=Money(124000, "USD")))
    new = world.ask(run=old.run, supersedes=old)
    browser = signed_in(maya)
    answer = click(browser, new, maya, "approve_confirmed")
    assert answer.status_code == 409 and "Something has changed" in answer.text
    answer = click(browser, new, maya, "approve_confirmed", acknowledged=str(old.pk))
    assert answer.status_code == 409 and not Decision.objects.exists()
    assert click(browser, new, maya, "approve_confirmed", acknowledged=str(new.pk)).status_code == 302
    assert Decision.objects.get().approved


@pytest.mark.parametrize(
    ("before", "said"), [(124_000, "The amount is now $1,200.00"), (120_000, "The amount is still $1,200.00")]
)
def test_what_is_ticked_says_whether_the_amount_moved(maya: User, before: int, said: str) -> None:
    old = world.ask(world.Story(invoice_version="2", amount=Money(before, "USD")))
    new = world.ask(run=old.run, supersedes=old)
    assert f"I have read what changed. {said}" in signed_in(maya).get(f"/approvals/{new.pk}/").text


def test_another_page_than_the_one_asked_is_refused(maya: User) -> None:
    ask = world.ask()
    answer = click(signed_in(maya), ask, maya, "approve_confirmed", page_digest="0" * 64)
    assert answer.status_code == 409 and Refusal.objects.get().code == "page_differs"


def test_a_form_of_somebody_else_is_not_done(maya: User) -> None:
    jonas = world.person("Jonas Weber", "manager")
    ask = world.ask()
    answer = click(signed_in(jonas), ask, maya, "approve_confirmed", comment="mine")
    assert answer.status_code == 409 and "signed in as someone else" in answer.text
    assert not Vote.objects.exists()


def test_a_right_lost_after_the_page_was_loaded(maya: User) -> None:
    ask = world.ask()
    browser = signed_in(maya)
    assert "Approve" in browser.get(f"/approvals/{ask.pk}/").text
    maya.groups.remove(Group.objects.get(name="manager"))
    answer = click(browser, ask, maya, "approve_confirmed")
    assert answer.status_code == 403 and "Your rights have changed" in answer.text
    assert not Decision.objects.exists() and Refusal.objects.get().code == "no_right"
    jonas = world.person("Jonas Weber", "manager")
    assert ask.ask in signed_in(jonas).get("/approvals/").text


def test_an_account_deactivated_after_the_page_was_loaded(maya: User) -> None:
    ask = world.ask()
    browser = signed_in(maya)
    User.objects.filter(pk=maya.pk).update(is_active=False)
    answer = click(browser, ask, maya, "approve_confirmed")
    assert answer.status_code == 403 and "no longer active" in answer.text
    assert not Decision.objects.exists() and Refusal.objects.get().code == "inactive"
    assert browser.get("/approvals/").status_code == 403


def test_whoever_may_only_look_sees_the_page_and_why_they_cannot_answer(maya: User) -> None:
    ask = world.ask()
    priya = world.person("Priya Raman", "support")
    browser = signed_in(priya)
    page = browser.get(f"/approvals/{ask.pk}/")
    assert (
        page.status_code == 200 and "your account is not one of them" in page.text and 'id="approve"' not in page.text
    )
    answer = click(browser, ask, priya, "approve_confirmed")
    assert answer.status_code == 403 and not Decision.objects.exists()


def test_a_get_changes_nothing_and_opening_is_a_post(maya: User, owner: psycopg.Connection) -> None:
    ask = world.ask()
    browser = signed_in(maya)
    for _ in range(2):
        browser.get(f"/approvals/{ask.pk}/")
    assert not Viewing.objects.exists()
    assert browser.get(f"/approvals/{ask.pk}/opened").status_code == 405
    for _ in range(2):
        assert browser.post(f"/approvals/{ask.pk}/opened").status_code == 204
    assert Viewing.objects.count() == 1
    ask.run.refresh_from_db()
    assert ask.run.facts_wanted_at is None, "what was read a moment ago is not read again for each look"
    owner.execute("UPDATE runs_evidence SET retrieved_at = now() - interval '1 day'")
    assert browser.post(f"/approvals/{ask.pk}/opened").status_code == 204
    ask.run.refresh_from_db()
    assert ask.run.facts_wanted_at is not None and ask.run.wake_at is not None


def test_the_open_page_hears_of_every_change(maya: User) -> None:
    jonas = world.person("Jonas Weber", "manager")
    old = world.ask(world.Story(amount=Money(124000, "USD")))
    browser = signed_in(maya)
    status = f"/approvals/{old.pk}/status"
    page = browser.get(f"/approvals/{old.pk}/").text
    version = page.split("status?v=")[1].split('"')[0]
    assert browser.get(f"{status}?v={version}").status_code == 204
    new = world.ask(run=old.run, supersedes=old)
    answer = browser.get(f"{status}?v={version}")
    assert answer.status_code == 204 and answer.headers["HX-Redirect"] == f"/approvals/{new.pk}/"
    decision = world.decide(new, jonas)
    decided = browser.get(f"/approvals/{new.pk}/status?v={version}").text
    assert "waiting to run" in decided and "Jonas Weber approved this" in decided and 'id="approve"' not in decided
    world.operation(decision, to="unknown")
    unsure = browser.get(f"/approvals/{new.pk}/status?v=x").text
    assert "Not confirmed" in unsure and "is-violet" in unsure and "Failed" not in unsure and "Completed" not in unsure
    assert "every 3s" in unsure


def test_expiry_is_recorded_by_the_refusal_itself(maya: User, owner: psycopg.Connection) -> None:
    ask = world.ask()
    owner.execute(
        "UPDATE approvals_approvalrequest SET respond_by = now() - interval '1 second' WHERE id = %s", [ask.pk]
    )
    answer = click(signed_in(maya), ask, maya, "approve_confirmed")
    assert answer.status_code == 409 and "The time to answer ended" in answer.text
    ask = ApprovalRequest.objects.get(pk=ask.pk)
    assert ask.state == "expired" and Refusal.objects.get().code == "expired" and not Decision.objects.exists()


def test_nonsense_is_answered_without_an_error(maya: User) -> None:
    ask = world.ask()
    browser = signed_in(maya)
    assert click(browser, ask, maya, "perhaps").status_code == 422
    assert browser.get("/approvals/0198f2c4-0000-7000-8000-000000000000/").status_code == 404
    assert browser.post("/approvals/0198f2c4-0000-7000-8000-000000000000/", {"as_user": maya.pk}).status_code == 404
    assert browser.get("/approvals/?after=nonsense&tab=nonsense").status_code == 200
    long = click(browser, ask, maya, "reject", comment="x" * 5000)
    assert long.status_code == 422 and "too long" in long.text
    nul = click(browser, ask, maya, "reject", comment="a\x00b\ud800".encode("utf-8", "replace").decode())
    assert nul.status_code == 302


def test_signed_out_people_are_led_back_and_nothing_is_done(maya: User) -> None:
    ask = world.ask()
    answer = click(Client(), ask, maya, "approve_confirmed")
    assert answer.status_code == 302 and answer.headers["Location"].startswith("/accounts/login/")
    assert not Vote.objects.exists() and not Refusal.objects.exists()


def test_the_title_names_the_currency_once(maya: User) -> None:
    shown_as = {Money(120000, "USD"): "$1,200.00 <small>USD</small>", Money(425050, "KWD"): "KWD 425.050"}
    for amount, shown in shown_as.items():
        page = signed_in(maya).get(f"/approvals/{world.ask(world.Story(amount=amount)).pk}/").text
        heading = page.partition('<span class="h1-money">')[2].partition("</span>")[0]
        assert heading.replace("\xa0", " ") == shown


def test_what_is_frozen_says_so_beside_the_buttons_and_approve_is_off_until_it_is_lifted(maya: User) -> None:
    browser, path = signed_in(maya), f"/approvals/{world.ask().pk}/"
    live, off = ('name="choice" value="approve">', 'value="approve" aria-describedby="held" disabled>')
    page = browser.get(path).text
    assert "is frozen" not in page and live in page
    version = page.partition("/status?v=")[2].partition('"')[0]
    assert browser.get(f"{path}status?v={version}").status_code == 204
    tomas = world.principal("system", "t", "T")
    froze = freezing.freeze(scope=freezes.of_tool(world.TOOL), principal=tomas, reason="twice").freeze
    assert froze is not None
    told = browser.get(f"{path}status?v={version}").text
    for bar in (told, browser.get(path).text.partition('id="bar"')[2]):
        assert "Tool billing.create_credit is frozen: approving is off until that is lifted" in bar
        assert off in bar and live not in bar and 'value="reject">' in bar
    first = {"choice": "approve", "as_user": str(maya.pk)}  # the first click, of a page without scripts
    asked = browser.post(path, first).text
    assert off in asked and "data-open " not in asked
    version = told.partition("/status?v=")[2].partition('"')[0]
    assert browser.get(f"{path}status?v={version}").status_code == 204
    assert freezing.lift(freeze_id=froze.pk, principal=tomas, reason="put right").ok
    lifted = browser.get(f"{path}status?v={version}").text
    assert live in lifted and off not in lifted


def test_the_run_says_in_a_sentence_why_an_answer_was_refused(maya: User) -> None:
    ask = world.ask()
    assert click(signed_in(maya), ask, maya, "approve_confirmed", page_digest="0" * 64).status_code == 409
    for tab in ("approvals", "file"):
        page = signed_in(maya).get(f"/runs/{ask.run_id}/?tab={tab}").text
        assert "“What you had before you is not what is asked. Look at it again before you decide.”" in page
        assert "refused (" not in page


def test_a_clock_that_a_freeze_stops_is_not_counted_down(maya: User) -> None:
    ask, shown = world.ask(), "stopped while frozen"
    pages = (f"/approvals/{ask.pk}/", "/approvals/")
    due = "data-due"
    assert all(due in page and shown not in page for page in (signed_in(maya).get(one).text for one in pages))
    tomas = world.principal("system", "t", "T")
    freezing.freeze(scope=freezes.of_tool(world.TOOL), principal=tomas, reason="twice")
    assert all(due not in page and shown in page for page in (signed_in(maya).get(one).text for one in pages))
    frozen = [signed_in(maya).get(one).text for one in (*pages, f"/runs/{ask.run_id}/?tab=approvals")]
    assert "Next deadline" not in frozen[1] and "The time to answer is stopped while frozen." in frozen[1]
    assert "when its time, stopped while frozen, is over" in frozen[0]
    assert "time to answer stopped while frozen" in frozen[2] and "answer until" not in frozen[2]
    ask.refresh_from_db()
    assert freezes.stops(request=ask, in_force=freezes.current())
    ask.valid_until = ask.respond_by
    assert not freezes.stops(request=ask, in_force=freezes.current()), "no approval is good for longer: it runs on"
