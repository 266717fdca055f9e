"""A decision page that was opened from a list stays a page of that list, whatever is done on it."""

from html import unescape
from html.parser import HTMLParser
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agentops.pages import decision_facts
from approvals.binding import differences
from approvals.models import ApprovalRequest, Remark
from approvals.services import freezing, talking
from runs.models import Run
from runs.services import principals
from tests.pages import world

pytestmark = pytest.mark.usefixtures("db")
LIST = "tab=all&q=Acme"


class Page(HTMLParser):
    """Its posting forms with their fields, and its links and what refreshes itself."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.forms: list[tuple[str, dict[str, str]]] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form" and given.get("method") == "post":
            self.forms.append((given["action"], {}))
        elif "name" in given and self.forms:
            self.forms[-1][1][given["name"]] = given.get("value", "")
        self.links += [given[name] for name in ("href", "hx-get") if name in given]


@pytest.fixture
def maya(db: str) -> User:
    world.person("Jonas Weber", "manager")
    return world.person("Maya Lindgren", "manager", "support")


def page_of(ask: ApprovalRequest, who: User, more: str = "") -> tuple[Client, str]:
    browser = Client()
    browser.force_login(who)
    return browser, browser.get(f"/approvals/{ask.pk}/", {"list": LIST} | parse_qs(more)).text


def in_list(address: str) -> bool:
    return parse_qs(urlsplit(address).query).get("list") == [LIST]


def test_every_form_and_link_of_the_page_keeps_its_list(maya: User) -> None:
    ask = world.ask(confirm="reauthenticate")
    by = principals.of_user(user=User.objects.get(username="jonas"))
    assert talking.ask(request_id=ask.pk, principal=by, text="Which outage?", asked_of="support", channel="page").ok
    question = ask.remarks.get()
    own = f"/approvals/{ask.pk}/"
    for more in ("", f"way=answer&question={question.pk}"):
        page = Page(page_of(ask, maya, more)[1])
        forms = [(action, fields) for action, fields in page.forms if action.startswith(own)]
        assert len(forms) >= 7 and [action for action, fields in forms if fields.get("list") != LIST] == []
        links = [link for link in page.links if link.startswith(own) and not link.startswith(f"{own}opened")]
        assert len(links) >= 8 and [link for link in links if not in_list(link)] == []
        (proof,) = [link for link in page.links if link.startswith("/accounts/reauthenticate/")]
        assert in_list(parse_qs(urlsplit(proof).query)["next"][0])


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("do/comment", {"text": "Looks right"}),
        ("do/claim", {}),
        ("hand-on", {"to": "user:0", "reason": "away"}),
        ("add-approver", {"person": "0", "reason": "more eyes"}),
    ],
)
def test_what_is_done_leads_back_to_the_page_of_the_list(maya: User, path: str, fields: dict[str, str]) -> None:
    ask = world.ask()
    browser, _ = page_of(ask, maya)
    sent = {"as_user": str(maya.pk), "list": LIST, **fields}
    answer = browser.post(f"/approvals/{ask.pk}/{path}", sent)
    assert answer.status_code == 302 and in_list(answer.headers["Location"])


def test_a_login_is_proved_before_the_amount_is_typed(maya: User) -> None:
    """What is typed first would be gone after it."""
    shown = page_of(world.ask(confirm="reauthenticate"), maya)[1]
    assert "Approving takes the amount typed again and a fresh login. Confirm your login first" in unescape(shown)
    assert 'id="retyped"' not in shown and 'id="retyped"' in page_of(world.ask(confirm="retype"), maya)[1]


def test_what_an_approval_took_before_is_said_and_not_called_nothing(maya: User) -> None:
    old = world.ask()
    new = world.ask(run=old.run, supersedes=old, confirm="retype")
    new.page = [*new.page, {"key": "confirm", "label": "An approval takes", "value": "the amount typed again"}]
    new.changes = differences(old_rows=old.page, new_rows=new.page)
    rows = decision_facts.changes(user=maya, request=new)["rows"]
    assert [(one["old"], one["new"]) for one in rows] == [("one confirmation", "the amount typed again")]


def test_a_frozen_request_says_nothing_of_what_a_yes_takes(maya: User) -> None:
    """The bar of a phone is short of height, and nobody can say yes now."""
    ask = world.ask(confirm="retype")
    by = world.principal("system", "t", "T")
    assert freezing.freeze(scope="all", principal=by, reason="twice").ok
    bar = page_of(ask, maya)[1].partition('id="bar"')[2].partition("</p>")[0]
    assert "approving is off until that is lifted" in bar and "Approving takes" not in bar


def test_a_question_of_an_earlier_version_is_answered_on_the_page_of_what_is_asked_now(maya: User) -> None:
    old = world.ask(world.Story(invoice_version="2"))
    by = principals.of_user(user=User.objects.get(username="jonas"))
    assert talking.ask(request_id=old.pk, principal=by, text="Which outage?", asked_of="support", channel="page").ok
    new = world.ask(run=Run.objects.get(), supersedes=ApprovalRequest.objects.get())
    browser, shown = page_of(new, maya)
    question = old.remarks.get()
    assert "Waiting for an answer." in shown and "on an earlier version" in shown
    assert f"?way=answer&amp;question={question.pk}" in shown
    answer = {"as_user": str(maya.pk), "question": str(question.pk), "text": "That of October"}
    assert browser.post(f"/approvals/{new.pk}/do/answer", answer).status_code == 302
    assert Remark.objects.get(answers=question).request == new
    assert "Waiting for an answer." not in browser.get(f"/approvals/{new.pk}/").text
