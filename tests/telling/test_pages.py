"""The page where people choose how they are told, and the links in mail, which only show."""

import re

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client

from agentops.permissions import ensure_groups
from agentops.telling.mailer import send_next
from approvals.models import Notice, Preference, Viewing
from approvals.services import preferences
from runs.models import Event, Run
from tests.approvals import world
from tests.telling.conftest import person, spread

pytestmark = pytest.mark.usefixtures("db")


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def maya(db: str) -> User:
    ensure_groups()
    return person("maya")


def test_however_often_a_link_is_fetched_nothing_changes(maya: User) -> None:
    """A mail's scanner has no session; a reader's own program may have one. Neither votes, opens or changes a thing."""
    asked = world.ask()
    spread()
    assert send_next() == 1
    links = sorted(set(re.findall(r"http://localhost:8000(/[^\s\"<>]*)", str(mail.outbox[0].message()))))
    assert f"/approvals/{asked.request.pk}/" in links and "/account/mail/" in links

    def all_there_is() -> list[object]:
        return [
            list(Event.objects.order_by("pk").values_list("hash", flat=True)),
            list(Run.objects.values()),
            list(Notice.objects.values()),
            asked.fresh().state,
            Viewing.objects.count(),
            Preference.objects.count(),
        ]

    before = all_there_is()
    for client, expected in ((Client(), 302), (signed_in(maya), 200)):
        for link in links:
            for _ in range(5):
                assert client.get(link).status_code == expected
                assert client.head(link).status_code == expected
    assert all_there_is() == before
    assert world.cast(asked, maya).code == "approved"


def test_a_person_chooses_for_themselves(maya: User) -> None:
    client = signed_in(maya)
    assert "At once" in client.get("/account/mail/").content.decode()
    sent = {"mail": "digest", "digest_hours": "8", "as_user": str(maya.pk)}
    assert client.post("/account/mail/", sent).status_code == 302
    wish = preferences.of(user=maya)
    assert (wish.mail, wish.digest_hours) == ("digest", 8)
    page = client.get("/account/mail/").content.decode()
    assert re.findall(r'<input[^>]*value="(\w+)"[^>]* checked', page)[-1] == "digest"
    assert '<option value="8" selected>every 8 hours</option>' in page


@pytest.mark.parametrize(
    "wrong", [{"mail": "all"}, {"digest_hours": "0"}, {"digest_hours": "²"}, {"mail": ""}, {"digest_hours": "9" * 99}]
)
def test_nonsense_is_told_and_changes_nothing(maya: User, wrong: dict[str, str]) -> None:
    sent = {"mail": "none", "digest_hours": "4", "as_user": str(maya.pk), **wrong}
    answer = signed_in(maya).post("/account/mail/", sent)
    assert answer.status_code == 422 and "field-error" in answer.content.decode()
    assert not Preference.objects.exists()


def test_a_form_of_somebody_else_changes_nothing(maya: User) -> None:
    sent = {"mail": "none", "digest_hours": "4", "as_user": str(maya.pk + 1)}
    assert signed_in(maya).post("/account/mail/", sent).status_code == 302
    assert not Preference.objects.exists()
    assert Client().get("/account/mail/").status_code == 302


def test_the_page_shows_what_became_of_each_mail_and_only_ones_own(maya: User) -> None:
    jonas = person("jonas")
    world.ask()
    spread()
    Notice.objects.filter(recipient=jonas).update(problem="mine alone")
    page = signed_in(maya).get("/account/mail/").content.decode()
    assert "on its way" in page and "is tried again" not in page
    assert "is tried again" in signed_in(jonas).get("/account/mail/").content.decode()


def test_the_overview_counts_what_waits(maya: User) -> None:
    world.ask()
    client = signed_in(maya)
    page = client.get("/overview/").content.decode()
    assert "1 event not passed on yet" in page
    spread()
    page = client.get("/overview/").content.decode()
    assert "not passed on yet" not in page and "Telling people and systems" in page
