"""Writing, reviewing, publishing and comparing policies in the browser's words, without a browser."""

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from approvals.models import PolicyDraft, PolicyVersion
from approvals.services import drafts
from runs.models import Event
from tests.pages import world
from tests.pages.test_hostile import read

pytestmark = pytest.mark.usefixtures("db")
AT = "/policies/service-credits"
HOSTILE = "</textarea><script>document.title='taken'</script><img src=x onerror=alert(1)>"


def signed_in(user: User) -> Client:
    browser = Client()
    browser.force_login(user)
    return browser


@pytest.fixture
def tomas(db: str) -> Client:
    """An admin, who writes; version 1 is in force."""
    maya = world.person("Maya Lindgren", "manager")
    assert maya.groups.exists() and world.policy().number == 1
    return signed_in(world.person("Tomas Reyes", "admin"))


@pytest.fixture
def maya(tomas: Client) -> Client:
    """A manager, who publishes."""
    return signed_in(User.objects.get(username="maya"))


def form_of(page: str, action: str) -> dict[str, Any]:
    """Every field of the form with this address, as a browser would post it."""
    found = re.search(rf'<form[^>]*action="{re.escape(action)}".*?</form>', page, re.DOTALL)
    assert found is not None, action
    reader = FieldReader()
    reader.feed(found[0])
    return {name: value for name, value in reader.fields.items() if name != "csrfmiddlewaretoken"}


class FieldReader(HTMLParser):
    """The fields of a form and their values."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.fields: dict[str, Any] = {}
        self.select = self.area = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        name = given.get("name") or ""
        if tag == "select":
            self.select = name
        elif tag == "option" and self.select and "selected" in given:
            self.fields[self.select] = given.get("value") or ""
        elif tag == "textarea":
            self.area = name
            self.fields[name] = ""
        elif tag == "input" and given.get("type") == "checkbox":
            if "checked" in given:
                self.fields.setdefault(name, []).append(given.get("value"))
        elif tag == "input" and name:
            self.fields[name] = given.get("value") or ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self.area = ""

    def handle_data(self, data: str) -> None:
        if self.area:
            self.fields[self.area] += data.removeprefix("\n") if not self.fields[self.area] else data


def editor(browser: Client, mode: str = "form") -> dict[str, Any]:
    return form_of(browser.get(f"{AT}/draft/?mode={mode}").text, f"{AT}/draft/")


def begin(browser: Client) -> dict[str, Any]:
    start = form_of(browser.get(f"{AT}/").text, f"{AT}/draft/start")
    assert browser.post(f"{AT}/draft/start", start).headers["Location"] == f"{AT}/draft/"
    return editor(browser)


def asked(browser: Client, **changes: str) -> None:
    fields = {**begin(browser), "note": "The auditors ask for it", "rule-1-text": "Small ones are automatic", **changes}
    assert browser.post(f"{AT}/draft/", fields).status_code == 302
    review = browser.get(f"{AT}/draft/review").text
    assert browser.post(f"{AT}/draft/ask", form_of(review, f"{AT}/draft/ask")).status_code == 302


def test_from_writing_to_in_force(tomas: Client, maya: Client) -> None:
    asked(tomas, **{"rule-1-when": "currency == 'USD' && amount_minor <= 50000"})
    page = maya.get(f"{AT}/draft/review").text
    assert 'aria-label="1 draft for you to publish"' in page
    assert 'aria-label="1 draft for you to publish"' not in tomas.get("/policies/").text
    assert "the currency is USD and the amount is at most $1,000.00 USD" in page
    assert "the currency is USD and the amount is at most $500.00 USD" in page
    assert "no rule covers amounts from $500.01 USD to $1,000.00 USD: that is refused" in page.replace(
        "No rule", "no rule"
    )
    assert "1 of manager, in which 1 person may vote" in " ".join(page.split())
    post = form_of(page, f"{AT}/draft/publish")
    assert maya.post(f"{AT}/draft/publish", post).headers["Location"] == f"{AT}/"
    version = PolicyVersion.objects.get(number=2)
    assert (version.published_by.label, version.note) == ("Maya Lindgren", "The auditors ask for it")
    listed = maya.get(f"{AT}/versions/").text
    assert "Tomas Reyes" in listed and "Maya Lindgren" in listed and "made at set-up" in listed
    assert "v1 → v2" in listed and maya.get(f"{AT}/versions/?from=2&to=1").status_code == 200
    for wrong in ("?from=1", "?from=1&to=9", "?from=x&to=1"):
        assert maya.get(f"{AT}/versions/{wrong}").status_code == 404


def test_the_writer_gets_no_button_and_no_way_round_it(tomas: Client, maya: Client) -> None:
    asked(tomas)
    page = tomas.get(f"{AT}/draft/review").text
    assert f'action="{AT}/draft/publish"' not in page and "You had a part in writing this" in page
    post = form_of(maya.get(f"{AT}/draft/review").text, f"{AT}/draft/publish")
    answer = tomas.post(f"{AT}/draft/publish", {**post, "as_user": str(User.objects.get(username="tomas").pk)})
    assert answer.status_code == 409 and "somebody else publishes it" in answer.text
    assert PolicyVersion.objects.count() == 1
    other = tomas.post(f"{AT}/draft/publish", post, follow=True)
    assert "another login" in other.text and PolicyVersion.objects.count() == 1


def test_a_page_that_is_out_of_date_publishes_nothing(tomas: Client, maya: Client) -> None:
    asked(tomas)
    post = form_of(maya.get(f"{AT}/draft/review").text, f"{AT}/draft/publish")
    assert tomas.post(f"{AT}/draft/", {**editor(tomas), "rule-1-text": "Worded anew"}).status_code == 302
    answer = maya.post(f"{AT}/draft/publish", post)
    assert answer.status_code == 409 and "Nobody asks for this to be published now" in answer.text
    review = tomas.get(f"{AT}/draft/review").text
    tomas.post(f"{AT}/draft/ask", form_of(review, f"{AT}/draft/ask"))
    answer = maya.post(f"{AT}/draft/publish", post)
    assert answer.status_code == 409 and "saved revision 3 after you opened this page" in answer.text
    assert PolicyVersion.objects.count() == 1
    fresh = form_of(answer.text, f"{AT}/draft/publish")
    assert maya.post(f"{AT}/draft/publish", fresh).status_code == 302 and PolicyVersion.objects.count() == 2
    late = maya.post(f"{AT}/draft/publish", fresh, follow=True)
    assert "This draft has ended: Maya Lindgren published it" in late.text


def test_an_empty_group_is_said_plainly_and_stops_it(tomas: Client, maya: Client) -> None:
    asked(tomas)
    jonas = world.person("Jonas Weber")
    jonas.user_permissions.add(*Group.objects.get(name="admin").permissions.all())
    User.objects.get(username="maya").groups.clear()
    browser = signed_in(jonas)
    page = " ".join(browser.get(f"{AT}/draft/review").text.split())
    assert "Nobody is in manager who may vote: every request of this rule would wait for nobody." in page
    answer = browser.post(f"{AT}/draft/publish", form_of(page, f"{AT}/draft/publish"))
    assert answer.status_code == 422 and PolicyVersion.objects.count() == 1
    assert maya.get(f"{AT}/draft/review").status_code == 403, "her rights went with the group"


def test_rules_are_added_moved_and_removed_and_nothing_is_saved_by_that(tomas: Client) -> None:
    fields = begin(tomas)
    assert [fields[f"rule-{at}-id"] for at in range(3)] == ["standing", "small", "above-1000"]

    def after(op: str) -> list[str]:
        page = tomas.post(f"{AT}/draft/", {**fields, "op": op, "rule-0-text": "Typed, not saved"}).text
        found = form_of(page, f"{AT}/draft/")
        assert "Typed, not saved" in found.values() or op == "remove:0"
        return [value for name, value in found.items() if re.fullmatch(r"rule-\d+-id", name)]

    assert after("up:1") == ["small", "standing", "above-1000"]
    assert after("down:0") == ["small", "standing", "above-1000"]
    assert after("remove:0") == ["small", "above-1000"]
    assert after("add") == ["standing", "small", "above-1000", ""]
    for nonsense in ("up:0", "down:2", "remove:9", "remove:-1", "up:٣", "remove:99999", "what"):
        assert after(nonsense) == ["standing", "small", "above-1000"]
    assert PolicyDraft.objects.get().revision == 1


def test_what_is_wrong_is_named_with_rule_field_and_remedy_and_stays_typed(tomas: Client) -> None:
    fields = {**begin(tomas), "rule-1-when": "amout_minor <= 5", "rule-2-quorum": "many"}
    answer = tomas.post(f"{AT}/draft/", fields)
    assert answer.status_code == 422 and PolicyDraft.objects.get().revision == 1
    typed = form_of(answer.text, f"{AT}/draft/")
    assert (typed["rule-1-when"], typed["rule-2-quorum"]) == ("amout_minor <= 5", "many")
    assert 'href="#id_rule-2-quorum"' in answer.text
    checked = tomas.post(f"{AT}/draft/check", {**fields, "rule-2-quorum": "1"}).text
    assert 'href="#id_rule-1-when"' in checked and "uses amout_minor, which is not a variable" in checked
    never = tomas.post(f"{AT}/draft/check", {**fields, "rule-1-when": "false", "rule-2-quorum": "1"}).text
    assert "It can be saved" in never and "can never match: its condition contradicts itself" in never
    assert Event.objects.filter(kind="policy.refused", data__code="invalid").count() == 1


def test_the_whole_document_as_text_and_back(tomas: Client) -> None:
    begin(tomas)
    fields = editor(tomas, "text")
    assert '"id": "standing"' in fields["document"] and '"policy"' not in fields["document"]
    twice = fields["document"].replace('"effect": "deny"', '"effect": "deny", "effect": "allow"', 1)
    for text, said in (
        (twice, "given twice"),
        ("{", "not JSON"),
        ("[1]", "not an object"),
        ("[" * 100_000, "not JSON"),
    ):
        answer = tomas.post(f"{AT}/draft/", {**fields, "document": text})
        assert answer.status_code == 422 and said in answer.text
        assert form_of(answer.text, f"{AT}/draft/")["document"] == text
    back = form_of(tomas.post(f"{AT}/draft/", {**fields, "op": "as_form"}).text, f"{AT}/draft/")
    assert back == editor(tomas)
    again = form_of(tomas.post(f"{AT}/draft/", {**back, "op": "as_text"}).text, f"{AT}/draft/")
    assert again["document"] == fields["document"]
    answer = tomas.post(f"{AT}/draft/", {**fields, "document": fields["document"].replace("100000", "90000")})
    assert answer.status_code == 302 and PolicyDraft.objects.get().revision == 2


def test_two_writers_do_not_overwrite_each_other(tomas: Client) -> None:
    fields = begin(tomas)
    other = signed_in(world.person("Nina Olsen", "admin"))
    mine = {**editor(other), "rule-0-text": "Nina's wording"}
    assert other.post(f"{AT}/draft/", mine).status_code == 302
    answer = tomas.post(f"{AT}/draft/", {**fields, "rule-0-text": "Mine"})
    assert answer.status_code == 409 and "Nina Olsen saved revision 2" in answer.text
    kept = form_of(answer.text, f"{AT}/draft/")
    assert (kept["rule-0-text"], kept["revision"]) == ("Mine", "2")
    assert "Nina&#x27;s wording" in tomas.get(f"{AT}/draft/revisions/2/").text
    assert tomas.post(f"{AT}/draft/", kept).status_code == 302, "knowing theirs"


def test_sent_back_and_gone_back(tomas: Client, maya: Client) -> None:
    asked(tomas)
    post = form_of(maya.get(f"{AT}/draft/review").text, f"{AT}/draft/send-back")
    empty = maya.post(f"{AT}/draft/send-back", {**post, "reason": " "})
    assert empty.status_code == 422 and "Say why you send it back" in empty.text
    assert maya.post(f"{AT}/draft/send-back", {**post, "reason": "Too strict"}).status_code == 302
    assert "Too strict" in tomas.get(f"{AT}/draft/").text
    review = tomas.get(f"{AT}/draft/review").text
    assert tomas.post(f"{AT}/draft/ask", form_of(review, f"{AT}/draft/ask")).status_code == 302
    maya.post(f"{AT}/draft/publish", form_of(maya.get(f"{AT}/draft/review").text, f"{AT}/draft/publish"))
    back = form_of(tomas.get(f"{AT}/versions/").text, f"{AT}/draft/start")
    assert back["back_to"] == "1" and tomas.post(f"{AT}/draft/start", back).status_code == 302
    assert "Back to version 1." in tomas.get(f"{AT}/draft/review").text
    discard = form_of(tomas.get(f"{AT}/draft/review").text, f"{AT}/draft/discard")
    assert tomas.post(f"{AT}/draft/discard", discard).headers["Location"] == f"{AT}/"
    assert "Nobody is writing a change" in tomas.get(f"{AT}/draft/", follow=True).text


def test_pages_and_acts_are_for_those_with_the_right(tomas: Client, maya: Client) -> None:
    asked(tomas)
    priya, stranger = signed_in(world.person("Priya Raman", "support")), signed_in(world.person("Sam Stranger"))
    for page in ("draft/review", "draft/try", "versions/"):
        assert Client().get(f"{AT}/{page}").status_code == 302 and stranger.get(f"{AT}/{page}").status_code == 403
        assert priya.get(f"{AT}/{page}").status_code == 200
    assert priya.get(f"{AT}/draft/").headers["Location"] == f"{AT}/draft/review"
    assert 'action="/policies' not in priya.get(f"{AT}/draft/review").text
    post = form_of(maya.get(f"{AT}/draft/review").text, f"{AT}/draft/publish")
    for act in ("start", "ask", "discard", "check", ""):
        assert maya.post(f"{AT}/draft/{act}", post).status_code in ((403,) if act else (302,))
    as_priya = {**post, "as_user": str(User.objects.get(username="priya").pk), "reason": "x"}
    for act in ("publish", "send-back"):
        assert priya.post(f"{AT}/draft/{act}", as_priya).status_code == 403
    assert PolicyVersion.objects.count() == 1 and PolicyDraft.objects.get().state == "asked"
    assert Event.objects.filter(kind="policy.refused", data__code="no_right").count() == 2
    assert maya.post(f"{AT}/draft/publish", {**post, "draft": "x"}).status_code == 404


def test_hostile_words_are_shown_and_do_nothing(tomas: Client, maya: Client) -> None:
    begin(tomas)
    fields = {**editor(tomas), "note": HOSTILE, "rule-1-text": HOSTILE, "rule-2-when": f'reason == "{HOSTILE}"'}
    fields["rule-2-when"] = fields["rule-2-when"].replace("'taken'", "1")
    assert tomas.post(f"{AT}/draft/", fields).status_code == 302
    drafts.ask(
        draft_id=PolicyDraft.objects.get().pk, revision=2, principal=PolicyDraft.objects.get().revisions.first().author
    )
    for path in ("draft/", "draft/?mode=text", "draft/review", "draft/revisions/2/"):
        page = read(tomas.get(f"{AT}/{path}").text)
        assert "img" not in page.tags and page.handlers == [], path
        assert "onerror=alert(1)" in "".join(page.text) or path == "draft/", path
    maya.post(f"{AT}/draft/publish", form_of(maya.get(f"{AT}/draft/review").text, f"{AT}/draft/publish"))
    assert PolicyVersion.objects.count() == 2
    for path in ("", "versions/", "?version=2"):
        page = read(maya.get(f"{AT}/{path}").text)
        assert "img" not in page.tags and page.handlers == [] and "onerror=alert(1)" in "".join(page.text)
