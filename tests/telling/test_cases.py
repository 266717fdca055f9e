"""Whoever may settle cases is told of new ones and of those that stay open: once each, and only while it helps."""

import datetime as dt
import smtplib
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.core import mail

from agentops.telling import case_mail
from agentops.telling.case_mail import tell_next
from approvals.models import Preference
from reconciliation.models import Case, CaseNotice
from tests.runpages import scenes, world

AGO = world.NOW - dt.timedelta(hours=5)


@pytest.fixture
def tomas(db: str) -> User:
    return _person("tomas")


def _person(name: str) -> User:
    user = world.person(name, "reconciliation.settle_case")
    user.email = f"{name}@agentops.example"
    user.save()
    return user


def opened(number: int = 1) -> Case:
    return world.open_case(scenes.unknown(AGO, subject=f"CS-{number}")[1], "asked 8 times; <b>last answer</b>: none")


def later(owner: psycopg.Connection, **by: float) -> None:
    gone = dt.timedelta(**by)
    owner.execute("UPDATE reconciliation_casenotice SET due_at = due_at - %s WHERE ended_at IS NULL", [gone])
    owner.execute("UPDATE reconciliation_case SET opened_at = opened_at - %s", [gone])


def work() -> None:
    while tell_next():
        pass


def results() -> list[str]:
    return sorted(CaseNotice.objects.values_list("result", flat=True))


def test_new_cases_go_out_together_and_once(tomas: User, owner: psycopg.Connection) -> None:
    cases = [opened(1), opened(2)]
    work()
    assert mail.outbox == [] and results() == ["", ""], "they wait a moment for each other"
    later(owner, minutes=2)
    work()
    work()
    [sent] = mail.outbox
    assert (sent.subject, sent.to) == ("Cases to settle: 2 new", ["tomas@agentops.example"])
    assert sent.body.count("$1,200.00 USD") == 2 and f"/cases/{cases[0].pk}/" in sent.body
    assert "&lt;b&gt;" in str(sent.alternatives[0][0]), "what was recorded is data"  # type: ignore[attr-defined]
    assert results() == ["sent", "sent"]


@pytest.mark.parametrize(
    "text", ["</td><script>alert(1)</script>", "x\nAmount: $1.00 USD\nBcc: a@b.example", "W" * 50_000]
)
def test_d13_a_cases_mail_says_the_amount_whatever_its_reason_says(
    tomas: User, owner: psycopg.Connection, text: str
) -> None:
    case = world.open_case(scenes.unknown(AGO, subject="CS-1", customer=text[:300])[1], text)
    work()
    later(owner, minutes=2)
    work()
    [sent] = mail.outbox
    html = str(sent.alternatives[0][0])  # type: ignore[attr-defined]
    assert sent.subject.startswith(f"Case {case.label}: $1,200.00 USD") and "\n" not in sent.subject
    assert sent.to == ["tomas@agentops.example"] and not sent.bcc and "<script>" not in html
    assert "$1,200.00 USD" in sent.body and "$1,200.00 USD" in html and len(sent.body) + len(html) < 250_000
    forged = [line for line in sent.body.splitlines() if line.startswith(("Amount", "Bcc"))]
    assert forged == [], "what was recorded stands behind a bar"


def test_what_stays_open_is_told_of_once_more(tomas: User, owner: psycopg.Connection) -> None:
    case = opened()
    work()
    later(owner, minutes=2)
    work()
    later(owner, hours=25)
    work()
    later(owner, minutes=2)
    work()
    first, second = mail.outbox
    assert first.subject.startswith(f"Case {case.label}: $1,200.00 USD, Create credit for “Acme Corp”")
    assert second.subject.startswith(f"Case {case.label} is still open: $1,200.00 USD")


def test_only_who_may_wants_and_can_be_told_is(
    tomas: User, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.person("priya", "runs.view_run")
    for name, wish in (("noor", "none"), ("otto", "digest")):
        Preference.objects.create(user=_person(name), mail=wish, digest_hours=4)
    silent = _person("silent")
    silent.email = ""
    silent.save()
    opened()
    work()
    later(owner, minutes=2)
    work()
    assert [one.to for one in mail.outbox] == [["tomas@agentops.example"]]
    assert results() == ["", "no_address", "not_wanted", "sent"], "otto's waits for its hours"
    later(owner, hours=4)
    owner.execute("UPDATE auth_user SET is_active = false WHERE username = 'otto'")
    work()
    assert results() == ["no_address", "not_needed", "not_wanted", "sent"]


def test_a_mail_that_was_not_sent_is_tried_again(
    tomas: User, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened()
    work()
    later(owner, minutes=2)

    def down(letter: Any) -> None:
        raise smtplib.SMTPServerDisconnected("gone")

    with monkeypatch.context() as patch:
        patch.setattr(case_mail, "send", down)
        assert tell_next() == 1
    assert tell_next() == 0 and results() == [""]
    later(owner, minutes=3)
    work()
    assert len(mail.outbox) == 1 and results() == ["sent"]
