"""Who is told of what, once each: from the record itself, in the transaction that wrote it."""

import datetime as dt
from collections.abc import Callable

import psycopg
import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.db import transaction

from agentops.telling.mailer import send_next
from approvals.models import Announcement, ApprovalRequest, Notice
from approvals.models.request import RequestState
from approvals.services import outgoing, preferences, requests, telling
from runs import record
from runs.models import Event, Run
from runs.services import principals
from tests.approvals import world
from tests.telling.conftest import person, spread

pytestmark = pytest.mark.usefixtures("db")


def names(kind: str = "asked", **wanted: object) -> list[str]:
    found = Notice.objects.filter(kind=kind, **wanted)
    return sorted(found.values_list("recipient__username", flat=True))


def close(asked: world.Asked, to: RequestState, why: str, actor: object = None) -> None:
    with transaction.atomic(durable=True):
        run = Run.objects.select_for_update(of=("self",)).get(pk=asked.run.pk)
        requests.close_open(run=run, to=to, why=why, actor=actor or principals.system())


def test_those_who_can_answer_are_asked_and_nobody_about_their_own() -> None:
    maya, jonas = person("maya"), person("jonas")
    person("priya", group="")  # sees the request and cannot answer it
    person("gone", is_active=False)
    world.ask(initiator=principals.of_user(user=maya), proposer=principals.of_user(user=jonas))
    ada = person("ada")
    spread()
    assert names() == ["ada"] and Notice.objects.get().recipient == ada


def test_the_starter_hears_the_outcome_and_not_what_they_did_themselves() -> None:
    maya, jonas = person("maya"), person("jonas")
    first = world.ask(initiator=principals.of_user(user=maya))
    second = world.ask(initiator=principals.of_user(user=maya), version=first.version)
    third = world.ask(initiator=principals.of_user(user=maya), version=first.version)
    assert world.cast(first, jonas).code == "approved"
    assert world.cast(second, jonas, "reject", comment="Not this quarter").code == "rejected"
    close(third, RequestState.WITHDRAWN, "cancelled", principals.of_user(user=maya))
    spread()
    assert names("outcome") == ["maya", "maya"]
    while send_next():
        pass
    told = {one.subject: one.body for one in mail.outbox}
    assert set(told) == {
        f"Approved: $1,200.00 USD for “{first.run.subject}”",
        f"Rejected: $1,200.00 USD for “{second.run.subject}”",
    }
    assert "Not this quarter" in told[f"Rejected: $1,200.00 USD for “{second.run.subject}”"]
    assert all(one.to == ["maya@agentops.example"] for one in mail.outbox)


def test_the_announcement_is_part_of_the_transaction_that_wrote_the_record() -> None:
    person("maya")
    asked = world.ask()
    assert Announcement.objects.filter(event__kind="request.opened").count() == 1
    run = Run.objects.get(pk=asked.run.pk)
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        record.append(run=run, kind="request.approved", actor=principals.system(), request=str(asked.request.pk))
        raise ZeroDivisionError
    assert not Announcement.objects.filter(event__kind="request.approved").exists()
    told = set(Announcement.objects.values_list("event_id", flat=True))
    assert told == set(Event.objects.filter(kind__startswith="request.").values_list("pk", flat=True))


def test_several_that_spread_at_once_tell_each_person_once() -> None:
    for number in range(6):
        person(f"manager{number}")
    version = world.policy()
    for _ in range(8):
        world.ask(version=version)
    results = world.at_once(*[spread] * 4)
    assert sum(results) == 8
    assert Notice.objects.count() == 48 and len(set(Notice.objects.values_list("event", "recipient"))) == 48


def test_several_that_send_at_once_send_each_mail_once() -> None:
    for number in range(5):
        person(f"manager{number}")
    world.ask()
    spread()
    Notice.objects.update(due_at=dt.datetime(2026, 1, 1, tzinfo=dt.UTC))

    def all_of_them() -> int:
        done = 0
        while sent := send_next():
            done += sent
        return done

    assert sum(world.at_once(*[all_of_them] * 4)) == 5
    assert sorted(one.to[0] for one in mail.outbox) == sorted(f"manager{n}@agentops.example" for n in range(5))
    assert len({one.extra_headers["Message-ID"] for one in mail.outbox}) == 5
    assert names(result="sent") == [f"manager{n}" for n in range(5)]


def test_fifty_are_told_within_a_minute_and_not_at_one_moment() -> None:
    voters = [person(f"manager{number:02}") for number in range(50)]
    world.ask()
    spread()
    due = sorted(Notice.objects.values_list("due_at", flat=True))
    assert len(set(due)) == len(voters) and due[-1] - due[0] <= dt.timedelta(seconds=60)
    send_next()
    assert send_next() == 0 and len(mail.outbox) == 1  # the next one is not due yet


def test_a_request_that_was_closed_meanwhile_is_not_sent_as_open(later: Callable[..., None]) -> None:
    maya, jonas = person("maya"), person("jonas")
    version = world.policy(quorum=2)
    decided, withdrawn, gone = (world.ask(version=version, quorum=2) for _ in range(3))
    spread()
    assert world.cast(decided, maya).code == "voted"  # she has answered; jonas still can
    close(withdrawn, RequestState.WITHDRAWN, "cancelled")
    later(minutes=2)
    jonas.groups.clear()
    while send_next():
        pass
    assert [(one.to[0], one.subject.partition(":")[0]) for one in mail.outbox] == [
        ("maya@agentops.example", "Waiting for you")
    ]
    assert gone.run.subject in mail.outbox[0].subject
    ended = Notice.objects.filter(kind="asked").exclude(result="sent")
    assert set(ended.values_list("result", "problem")) == {
        ("not_needed", "no_right"), ("not_needed", "already_voted"), ("not_needed", "withdrawn"),
    }  # fmt: skip


def test_wishes_are_kept_to(later: Callable[..., None]) -> None:
    at_once, digest, none, nowhere = (person(name) for name in ("ada", "ben", "cyd", "dan"))
    User.objects.filter(pk=nowhere.pk).update(email="")
    preferences.save(user=digest, mail="digest", digest_hours=1)
    preferences.save(user=none, mail="none", digest_hours=4)
    version = world.policy()
    first, second = world.ask(version=version), world.ask(version=version)
    spread()
    assert names(result="not_wanted") == ["cyd", "cyd"] and names(result="no_address") == ["dan", "dan"]
    later(minutes=1)
    while send_next():
        pass
    assert [one.to for one in mail.outbox] == [[at_once.email], [at_once.email]]
    later(hours=1)
    assert send_next() == 2
    (together,) = [one for one in mail.outbox if one.to == [digest.email]]
    assert together.subject == "Approvals: 2 waiting for you"
    assert all(str(one.request.pk) in together.body for one in (first, second))


def test_what_cannot_wait_for_a_digest_is_sent_at_once() -> None:
    preferences.save(user=person("ben"), mail="digest", digest_hours=24)
    world.ask()  # may be answered for four hours
    spread()
    notice, wish = Notice.objects.get(), preferences.of(user=User.objects.get(username="ben"))
    soon = preferences.digest_at(wish=wish, now=notice.created_at) < ApprovalRequest.objects.get().respond_by
    assert notice.digest is soon and (send_next() == 0) is soon


def test_a_new_wish_holds_for_what_waits() -> None:
    ben = person("ben")
    preferences.save(user=ben, mail="digest", digest_hours=1)
    world.ask()
    spread()
    assert send_next() == 0
    preferences.save(user=ben, mail="at_once", digest_hours=1)
    assert send_next() == 1 and len(mail.outbox) == 1


def test_a_sender_that_speaks_up_late_changes_nothing(later: Callable[..., None]) -> None:
    person("maya")
    world.ask()
    spread()
    (slow,) = outgoing.take_notices()
    assert outgoing.take_notices() == []
    later(minutes=3)
    (second,) = outgoing.take_notices()
    assert second.pk == slow.pk
    outgoing.retry_notices(notices=[slow], problem="late word")
    assert Notice.objects.get().problem == ""
    outgoing.end_notices(notices=[second], result=Notice.Result.SENT)
    assert Notice.objects.get().result == "sent"


def test_one_that_cannot_be_passed_on_holds_up_no_other(owner: psycopg.Connection) -> None:
    person("maya")
    version = world.policy()
    odd, good = world.ask(version=version), world.ask(version=version)
    owner.execute("UPDATE runs_event SET data = jsonb_set(data, '{request}', '\"no id\"') WHERE id = (SELECT min(id)"
                  " FROM runs_event WHERE kind = 'request.opened')")  # fmt: skip
    with pytest.raises(telling.NotSpread, match="1 of 2"):
        spread()
    assert [one.request for one in Notice.objects.all()] == [good.request]
    assert Announcement.objects.filter(done_at=None).count() == 1 and odd.request.pk
