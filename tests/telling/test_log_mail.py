"""Mail without a mail server: a line for each, whatever the texts in it try."""

from typing import Any

import pytest
from django.core.mail import EmailMultiAlternatives, get_connection

from agentops.mail_address import mail_settings
from agentops.telling.mailer import send_next
from tests.approvals import world
from tests.telling.conftest import person, spread


@pytest.fixture
def no_mail_server(settings: Any) -> None:
    settings.EMAIL_BACKEND = mail_settings(url="console:")["EMAIL_BACKEND"]


@pytest.mark.usefixtures("db", "no_mail_server")
def test_a_request_is_told_in_one_line_with_its_link(settings: Any, capsys: pytest.CaptureFixture[str]) -> None:
    person("wanda")
    asked = world.ask(shown=world.rows())
    spread()
    while send_next():
        pass
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("mail to ")] == lines
    mine = next(line for line in lines if "wanda@" in line)
    assert ": Waiting for you: $1,200.00 USD for " in mine
    assert mine.endswith(f", {settings.PUBLIC_URL}/approvals/{asked.request.pk}/")


@pytest.mark.usefixtures("no_mail_server")
def test_no_text_makes_lines_of_its_own(settings: Any, capsys: pytest.CaptureFixture[str]) -> None:
    body = f"Words\n| {settings.PUBLIC_URL}/elsewhere/\n"
    mail = EmailMultiAlternatives("One\u202e\x1b[2J\u2028two", body, to=["a@b.example"], connection=get_connection())
    assert mail.send() == 1
    assert capsys.readouterr().out == "mail to a@b.example: One[2Jtwo\n"
