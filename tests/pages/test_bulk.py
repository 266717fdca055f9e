"""Several requests answered together: what goes together, that every vote passes every check, and each one's result."""

import threading
import uuid
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connections, transaction
from django.test import Client

from agentops import bulk_votes
from approvals import bulk, locks
from approvals.models import ApprovalRequest, BulkItem, BulkVote, Decision, Refusal, Viewing, Vote
from approvals.services import bulk as writing
from approvals.services import freezing, requests, votes
from runs.ids import new_id
from runs.models import Principal
from runs.money import Money
from runs.one_by_one import LOCK_NOT_AVAILABLE
from runs.services import principals
from tests.approvals.world import at_once, somebody_waits
from tests.pages import world

pytestmark = pytest.mark.usefixtures("db")


def signed_in(user: User) -> Client:
    browser = Client()
    browser.force_login(user)
    return browser


@pytest.fixture
def maya(db: str) -> User:
    return world.person("Maya Lindgren", "manager")


def several(number: int = 3, **story: Any) -> list[ApprovalRequest]:
    return [world.ask(world.Story(customer=f"Customer {n}", **story)) for n in range(number)]


def start(asks: list[ApprovalRequest], by: User, choice: str = "approve", **more: Any) -> writing.BulkResult:
    given: dict[str, Any] = {
        "key": new_id(),
        "user": by,
        "choice": choice,
        "comment": "not ours" if choice == "reject" else "",
        "digests": {one.pk: one.page_digest for one in asks},
        "authenticated_by": "password 2026-11-17T13:02:11+00:00",
    }
    return writing.start(**{**given, **more})


def carry_out() -> None:
    while bulk_votes.work_off():
        pass


def results() -> dict[str, str]:
    """By customer."""
    return dict(BulkItem.objects.values_list("request__run__customer", "code"))


def posted(asks: list[ApprovalRequest], user: User, choice: str = "approve", **more: str) -> dict[str, Any]:
    digests = {f"digest-{one.pk}": one.page_digest for one in asks}
    ids = [str(one.pk) for one in asks]
    return {"as_user": str(user.pk), "key": str(new_id()), "choice": choice, "request": ids, **digests, **more}


def test_the_page_shows_each_with_its_amount_the_totals_and_what_is_left_out(maya: User) -> None:
    asks = [*several(3), world.ask(world.Story(customer="Large", amount=Money(990_000, "USD")))]
    asks.append(world.ask(world.Story(customer="Yen", amount=Money(120_000, "JPY"))))
    old = world.ask(world.Story(customer="Moved", invoice_version="2", amount=Money(124_000, "USD")))
    asks.append(world.ask(world.Story(customer="Moved"), run=old.run, supersedes=old))
    asks.append(world.ask(world.Story(customer="Decided")))
    world.decide(asks[-1], maya)
    browser = signed_in(maya)
    page = browser.get("/approvals/bulk/", {"choice": "approve", "request": [str(one.pk) for one in asks] + ["x"]}).text
    assert "Approve 4 requests?" in page and "Approve 4 for ¥120,000 JPY + $3,600.00 USD" in page
    assert all(f'name="digest-{one.pk}" value="{one.page_digest}"' in page for one in [*asks[:3], asks[4]])
    left = page[page.index("Left out") :]
    assert "more than three times what is usual" in left and "what changed has to be read" in left
    assert "You approved this on" in left and f"digest-{asks[3].pk}" not in page
    page = browser.get("/approvals/bulk/", {"choice": "reject", "request": [str(asks[3].pk), str(asks[5].pk)]}).text
    assert "Reject 2 requests?" in page and "one for all" in page  # no is always safe
    assert "Nothing to approve together" in browser.get("/approvals/bulk/?choice=approve").text
    assert browser.get("/approvals/bulk/?choice=pay").status_code == 404
    assert signed_in(world.person("Priya Raman", "support")).get("/approvals/bulk/?choice=approve").status_code == 403
    browser.post("/approvals/bulk/opened", {"request": [str(asks[0].pk), str(asks[-1].pk)]})
    assert [seen.request_id for seen in Viewing.objects.all()] == [asks[0].pk]
    assert not BulkVote.objects.exists() and Vote.objects.count() == 1


def test_each_vote_is_its_own_and_says_what_became_of_it(maya: User, owner: psycopg.Connection) -> None:
    jonas = world.person("Jonas Weber", "manager")
    asks, browser = several(6), signed_in(maya)
    body = posted(asks, maya, list="due=day")
    world.decide(asks[1], jonas)
    world.ask(world.Story(customer="Customer 2"), run=asks[2].run, supersedes=asks[2])
    world.read(asks[3].run, reading=2, story=world.Story(customer="Customer 3", invoice_version="4"))
    owner.execute("UPDATE approvals_approvalrequest SET respond_by = clock_timestamp() WHERE id = %s", [asks[4].pk])
    body[f"digest-{asks[5].pk}"] = asks[0].page_digest[::-1]
    answer = browser.post("/approvals/bulk/do", body)
    made = BulkVote.objects.get()
    assert answer.headers["Location"] == f"/approvals/bulk/{made.pk}/?list=due%3Dday"
    page = browser.get(answer.headers["Location"], headers={"HX-Request": "true"}).text
    assert page.count("not yet") == 6 and "every 1s" in page and not Vote.objects.filter(principal__user=maya).exists()
    carry_out()
    assert results() == {
        "Customer 0": "approved", "Customer 1": "decided", "Customer 2": "superseded", "Customer 3": "out_of_date",
        "Customer 4": "expired", "Customer 5": "page_differs",
    }  # fmt: skip
    page = browser.get(answer.headers["Location"]).text
    assert "every 1s" not in page and "Jonas Weber approved this" in page and "The time to answer ended on" in page
    assert page.count("Changed since you opened it</span>") == 3 and page.count("Counted</span>") == 1
    assert page.index("Not counted</span>") < page.index("Counted</span> Approved")
    assert Decision.objects.filter(request=asks[0]).get().approved and Decision.objects.count() == 2
    assert Vote.objects.get(principal__user=maya).authenticated_by == made.authenticated_by
    assert Refusal.objects.count() == 5
    assert signed_in(jonas).get(f"/approvals/bulk/{made.pk}/").status_code == 404


def test_the_same_form_twice_is_one_word_and_a_crash_repeats_nothing(
    maya: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks, browser = several(2), signed_in(maya)
    body = posted(asks, maya)
    places = {browser.post("/approvals/bulk/do", body).headers["Location"] for _ in range(2)}
    assert len(places) == 1 and BulkVote.objects.count() == 1 and BulkItem.objects.count() == 2
    key = new_id()
    found = at_once(*[lambda: start(asks, maya, key=key)] * 3)
    assert {result.code for result in found} == {"ok"} and BulkVote.objects.count() == 2
    jonas = world.person("Jonas Weber", "manager")
    assert start(asks, jonas, key=key).code == "not_yours"
    cast = votes.cast

    def dies(**given: Any) -> None:
        cast(**given)
        raise KeyboardInterrupt

    monkeypatch.setattr(votes, "cast", dies)
    with pytest.raises(KeyboardInterrupt):
        bulk_votes.work_off()
    assert Vote.objects.count() == 1 and not BulkItem.objects.exclude(code="").exists()
    monkeypatch.setattr(votes, "cast", cast)
    carry_out()
    codes = list(BulkItem.objects.order_by("id").values_list("code", flat=True))
    assert codes == ["approved"] * 4 and Vote.objects.count() == 2 and Decision.objects.count() == 2


def test_reject_takes_one_reason_for_all(maya: User) -> None:
    asks, browser = several(3), signed_in(maya)
    empty = browser.post("/approvals/bulk/do", posted(asks, maya, "reject", comment=" "))
    assert empty.status_code == 422 and "the reason is empty" in empty.text and not BulkVote.objects.exists()
    browser.post("/approvals/bulk/do", posted(asks, maya, "reject", comment="The outage was planned"))
    carry_out()
    assert set(Vote.objects.values_list("choice", "comment")) == {("reject", "The outage was planned")}
    assert set(ApprovalRequest.objects.values_list("state", flat=True)) == {"rejected"}


def test_what_may_not_go_together_is_refused_by_the_server_too(maya: User) -> None:
    asks = [*several(3), world.ask(world.Story(customer="Large", amount=Money(990_000, "USD")))]
    assert start(asks, maya).code == "ok"
    assert results()["Large"] == "outlier"
    carry_out()
    assert results() == {**{f"Customer {n}": "approved" for n in range(3)}, "Large": "outlier"}
    assert not Vote.objects.filter(request=asks[3]).exists()
    assert start([], maya).code == "none_chosen" and start(asks, maya, digests={uuid.uuid4(): ""}).code == "none_chosen"
    many = {uuid.uuid4(): "" for _ in range(bulk.MOST + 1)}
    assert start(asks, maya, digests=many).code == "too_many"
    assert start(asks, world.person("Priya Raman", "support")).code == "no_right"
    with pytest.raises(ValueError, match="approve or reject"):
        start(asks, maya, choice="pay")
    body = {"as_user": "0", **posted(asks, maya)}
    assert signed_in(world.person("Tomas Reyes", "admin")).post("/approvals/bulk/do", body).status_code == 403


def test_a_rule_that_wants_more_than_a_click_is_approved_on_its_own_page(maya: User, owner: psycopg.Connection) -> None:
    asks, late = several(2), world.ask(world.Story(customer="Late"))
    owner.execute("UPDATE approvals_approvalrequest SET confirm = 'retype'")
    page = signed_in(maya).get("/approvals/bulk/", {"choice": "approve", "request": [str(one.pk) for one in asks]}).text
    assert page.count("wants the approval confirmed on its own page") == 2 and "Nothing to approve together" in page
    made = start(asks, maya).bulk
    assert made is not None and set(results().values()) == {"confirm_on_page"}
    BulkItem.objects.create(bulk=made, request=late, page_digest=late.page_digest)
    carry_out()  # however it came here, the vote itself refuses it
    assert set(results().values()) == {"confirm_on_page"} and not Vote.objects.exists()


def test_four_eyes_freezes_and_lost_rights_hold_here_as_well(maya: User) -> None:
    asks = several(3)
    assert start(asks[:1], maya).code == start(asks[1:2], maya).code == "ok"
    frozen = freezing.freeze(scope="all", principal=principals.of_user(user=world.person("Tomas R", "admin")),
                             reason="checking")  # fmt: skip
    assert frozen is not None
    bulk_votes.work_off()
    assert results() == {"Customer 0": "frozen", "Customer 1": "frozen"}
    page = signed_in(maya).get("/approvals/bulk/", {"choice": "approve", "request": str(asks[2].pk)}).text
    assert "Held by" in page and "Nothing to approve together" in page and "Approve together" in page
    assert "not counted" not in page, "nothing was answered yet"
    assert start(asks[2:], maya, "reject").code == "ok"
    maya.groups.clear()
    carry_out()
    assert results()["Customer 2"] == "no_right" and not Vote.objects.exists()


def test_a_locked_run_is_tried_again_after_the_others(maya: User, monkeypatch: pytest.MonkeyPatch) -> None:
    asks = several(2)
    start(asks, maya)
    cast = votes.cast

    class Locked(psycopg.Error):
        sqlstate = LOCK_NOT_AVAILABLE

    def busy(**given: Any) -> Any:
        if given["request_id"] == asks[0].pk:
            raise OperationalError from Locked()
        return cast(**given)

    monkeypatch.setattr(votes, "cast", busy)
    assert bulk_votes.work_off() == 1
    assert results() == {"Customer 0": "", "Customer 1": "approved"}
    BulkItem.objects.filter(code="").update(tries=60, try_after=None)
    bulk_votes.work_off()
    assert results()["Customer 0"] == "busy" and BulkVote.objects.get().finished_at is not None


def test_what_fails_on_one_request_is_that_ones_result_and_ends_nothing(
    maya: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A word that is nobody's, and a request on which the vote breaks off."""
    asks = several(3)
    desk = principals.find_or_make(kind=Principal.Kind.INTEGRATION, key="integration:desk", label="Desk")
    nobodys = BulkVote.objects.create(principal=desk, choice="approve", authenticated_by="x", total=1)
    BulkItem.objects.create(bulk=nobodys, request=asks[0], page_digest=asks[0].page_digest)
    start(asks[1:], maya)
    cast = votes.cast

    def broken(**given: Any) -> Any:
        if given["request_id"] == asks[1].pk:
            raise ValueError("nobody foresaw it")
        return cast(**given)

    monkeypatch.setattr(votes, "cast", broken)
    carry_out()
    assert results() == {"Customer 0": "broke_off", "Customer 1": "broke_off", "Customer 2": "approved"}
    assert not BulkVote.objects.filter(finished_at=None).exists()


def test_digests_with_what_no_text_can_hold_are_just_not_these(maya: User) -> None:
    (ask,) = several(1)
    browser, given = signed_in(maya), posted([ask], maya)
    given[f"digest-{ask.pk}"] = "\x00"
    assert browser.post("/approvals/bulk/do", given).status_code == 302
    carry_out()
    assert results() == {"Customer 0": "page_differs"}
    single = {"as_user": str(maya.pk), "choice": "approve_confirmed", "page_digest": ask.page_digest}
    browser.post(f"/approvals/{ask.pk}/", single)
    assert browser.post(f"/approvals/{ask.pk}/", {**single, "page_digest": "\x00"}).status_code == 409


def test_writing_down_several_and_a_vote_of_the_same_person_do_not_block_each_other(maya: User) -> None:
    """A vote holds its request, then its person; so does whoever writes down several."""
    (ask,) = several(1)
    with transaction.atomic():
        requests.lock_with_run(request_id=ask.pk)
        waiting = threading.Thread(target=lambda: (start([ask], maya), connections.close_all()))
        waiting.start()
        assert somebody_waits()
        locks.share_users(user_ids=[maya.pk], groups=[])
    waiting.join(timeout=120)
    assert BulkVote.objects.get().total == 1


def test_the_same_form_posted_twice_at_once_is_one_word(maya: User) -> None:
    asks, key = several(2), new_id()
    told = at_once(*(lambda: start(asks, maya, key=key) for _ in range(4)))
    assert {one.code for one in told} == {"ok"} and BulkItem.objects.count() == 2
