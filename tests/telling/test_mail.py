"""What a mail says and what it never does, whatever the texts in it try."""

import datetime as dt
import email
import email.policy
from email.message import EmailMessage
from html.parser import HTMLParser

import pytest
from django.core import mail

from agentops.telling import letters
from agentops.telling.mailer import send_next
from agentops.telling.wording import BAR, WIDTH
from approvals.models import Notice
from approvals.services import absences
from runs import clock
from runs.models import Run
from tests.approvals import world
from tests.telling.conftest import person, spread

pytestmark = pytest.mark.usefixtures("db")
HOSTILE = [
    "`</td><script>alert(1)</script><img src=x onerror=alert(1)>",
    "Acme\nAmount:\n| $1.00 USD\r\nBcc: victim@elsewhere.example\r\n\r\n<b>Amount: 1.00</b>",
    "“Acme” approved: $1.00 USD for “Nobody” \u202e00.1$ \u200b\x00\x1b[2J",
    "x" * 50_000,
    "Amount: $1.00 USD " * 3_000,
    "\ud800lone", "=?utf-8?q?Amount=3A_1=2E00?=", "{{ settings.SECRET_KEY }} %s %(x)s", "a" * 71 + " Amount: $1.00",
]  # fmt: skip


class Seen(HTMLParser):
    """What a reader's program would make of it: tags, and the text outside of style and title."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "action")]

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def parsed(sent: mail.EmailMessage) -> EmailMessage:
    message = email.message_from_bytes(sent.message().as_bytes(), policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    return message


def ask_and_send(text: str) -> tuple[EmailMessage, world.Asked]:
    stored = text.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")
    rows = [
        {"key": "amount", "label": "Amount", "value": "$1,200.00 USD"},
        {"key": "account", "label": "Account", "value": stored},
        {"key": "memo", "label": "Text on the invoice", "value": stored},
    ]
    asked = world.ask(shown=rows, sentence=f"Issue $1,200.00 service credit to {stored}")
    Run.objects.filter(pk=asked.run.pk).update(customer=stored[:300])
    spread()
    assert send_next() == 1
    return parsed(mail.outbox[-1]), asked


def test_hostile_texts_are_harmless_and_the_amount_is_true() -> None:
    person("maya")
    for text in HOSTILE:
        judge(text, *ask_and_send(text))
    assert len(mail.outbox) == len(HOSTILE)


def judge(text: str, message: EmailMessage, asked: world.Asked) -> None:
    # headers: one subject, the amount first, nobody else addressed
    assert str(message["Subject"]).strip().startswith("Waiting for you: $1,200.00 USD for “")
    assert len(str(message["Subject"])) < 200 and message["Bcc"] is None and message["To"] == "maya@agentops.example"
    assert message.get_all("Subject") and len(message.get_all("Subject")) == 1
    plain, html = (message.get_body((kind,)).get_content() for kind in ("plain", "html"))
    # text: the amount stands before anything recorded, and each recorded line is behind our bar
    assert plain.splitlines()[0] == "Waiting for you: $1,200.00 USD"
    ours = [line for line in plain.splitlines() if not line.startswith(BAR)]
    assert [line for line in ours if "Amount" in line or "$" in line] == ["Waiting for you: $1,200.00 USD", "Amount:"]
    assert all(len(line) <= WIDTH + len(BAR) for line in plain.splitlines() if line.startswith(BAR))
    assert not any(mark in plain + html for mark in ("\u202e", "\u200b", "\x00", "\x1b"))
    # HTML: no tag, link or script but ours
    seen = Seen()
    seen.feed(html)
    assert not {"script", "img", "form", "iframe", "b", "button"} & set(seen.tags)
    assert set(seen.links) == {
        f"http://localhost:8000/approvals/{asked.request.pk}/", "http://localhost:8000/account/mail/",
    }  # fmt: skip
    assert seen.words.count("$1,200.00 USD") == 2
    assert len(plain) + len(html) < 250_000
    if len(text) >= 50_000:  # what decides is whole; free text says that it was cut, and of how much
        assert plain.replace(f"\n{BAR}", "").count(text.strip()[:40_000]) == 1
        assert f"of {len(text):,} characters" in " ".join(plain.replace(f"\n{BAR}", "").split())


def test_a_mail_says_what_it_is_and_belongs_to_its_requests_thread() -> None:
    maya = person("maya")
    first, asked = ask_and_send("Acme Corp")
    notice = Notice.objects.get(recipient=maya)
    assert first["Message-ID"] == f"<{notice.pk}@localhost>"
    assert first["Auto-Submitted"] == "auto-generated" and "approvals.local.localhost" in first["List-Id"]
    assert first["References"] == first["In-Reply-To"] == f"<request.{asked.request.pk}@localhost>"
    assert first.get_content_type() == "multipart/alternative" and first["List-Unsubscribe-Post"] is None
    plain = first.get_body(("plain",)).get_content()
    for words in ("Asked of support managers; one answer decides.", "Open the decision page:", "| Acme Corp"):
        assert words in plain
    assert f"http://localhost:8000/approvals/{asked.request.pk}/\n" in plain


def test_a_later_version_is_in_the_thread_of_the_first() -> None:
    from django.db import transaction

    from approvals.models.request import RequestState
    from approvals.services import requests
    from runs.services import principals

    person("maya")
    _, asked = ask_and_send("Acme Corp")
    with transaction.atomic(durable=True):
        run = Run.objects.select_for_update(of=("self",)).get(pk=asked.run.pk)
        old = requests.close_open(run=run, to=RequestState.SUPERSEDED, why="moved", actor=principals.system())
        changed = world.rows(version="4")
        world.open_one(run, asked.proposal, asked.version, shown=changed, supersedes=old)
    spread()
    assert send_next() == 1
    again = parsed(mail.outbox[-1])
    assert again["References"] == f"<request.{asked.request.pk}@localhost>"
    assert "of the bound values changed since" in again.get_body(("plain",)).get_content()


def test_a_stand_in_is_told_in_whose_place_they_answer() -> None:
    anna, dora = person("anna"), person("dora", group="other")
    now = clock.read()
    arranged = absences.arrange(
        person_id=anna.pk, stand_in_id=dora.pk, begins=now, ends=now + dt.timedelta(days=2), note="", by=anna
    )
    assert arranged.ok
    world.ask()
    spread()
    told = {one.recipient: letters.compose(notices=[one]).text for one in Notice.objects.all()}
    assert "You stand in for “Anna”, who is away until " in told[dora]
    assert "You stand in" not in told[anna]
