"""What is written on a request is kept as it is, told to those concerned, and stops nobody from deciding."""

import datetime as dt
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import Permission, User
from django.db import Error, transaction

from agentops.telling import letters
from approvals import talk
from approvals.models import Claim, Notice, Remark
from approvals.models.request import RequestState
from approvals.services import claiming, requests, talking
from approvals.services.acting import Acted
from approvals.services.telling import spread
from approvals.words import sentence
from runs import record
from runs.models import Event, Principal, Run
from runs.services import principals
from tests.approvals import world

pytestmark = pytest.mark.usefixtures("db")


def seeing(name: str, *, group: str = "manager", operates: bool = False) -> User:
    user = world.user(name, group=group, email=f"{name}@example.com")
    wanted = ["view_approvalrequest", *(["operate_run"] if operates else [])]
    user.user_permissions.add(*Permission.objects.filter(codename__in=wanted))
    return user


def do(what: Any, asked: world.Asked, who: User | Principal, **more: Any) -> Acted:
    me = who if isinstance(who, Principal) else principals.of_user(user=who)
    result: Acted = what(request_id=asked.request.pk, principal=me, channel="page", **more)
    assert "?" not in sentence(code=result.code, detail=result.detail)
    return result


def test_a_comment_is_kept_recorded_and_never_changed(owner: psycopg.Connection) -> None:
    anna, asked = seeing("anna"), world.ask()
    assert do(talking.comment, asked, anna, text="  <b>see</b> \x00 the report  ").ok
    (remark,) = talk.remarks(requests=[asked.request])
    assert (remark.text, remark.kind, str(remark.author)) == ("<b>see</b> \ufffd the report", "comment", "Anna")
    event = Event.objects.get(stream=f"run:{asked.run.pk}", kind="request.commented")
    assert event.data["comment"] == remark.text and record.verify(stream=f"run:{asked.run.pk}") is None
    for change in ({"text": "other"}, {"author": asked.run.initiator}):
        with pytest.raises(Error), transaction.atomic():
            Remark.objects.filter(pk=remark.pk).update(**change)
    with pytest.raises(psycopg.errors.CheckViolation):
        owner.execute("UPDATE approvals_remark SET text = repeat('x', 4001)")


def test_who_may_see_may_write_and_nobody_else() -> None:
    anna, outsider = seeing("anna"), world.user("otto", group="")
    asked = world.ask()
    stranger = world.machine(Principal.Kind.INTEGRATION, "integration:other")
    assert do(talking.comment, asked, outsider, text="hello").code == "may_not_see"
    assert do(talking.comment, asked, stranger, text="hello").code == "may_not_see"
    assert do(talking.comment, asked, asked.run.initiator, text="from the desk").ok
    for text, code in ((" \u200b ", "text_needed"), ("x" * 4001, "comment_too_long")):
        assert do(talking.comment, asked, anna, text=text).code == code
    assert world.cast(asked, anna).code == "approved"
    assert do(talking.comment, asked, anna, text="afterwards, too").ok
    assert Remark.objects.count() == 2
    User.objects.filter(pk=anna.pk).update(is_active=False)
    anna.refresh_from_db()
    assert do(talking.comment, asked, anna, text="gone").code in ("inactive", "no_right")


def test_a_question_waits_keeps_the_place_and_stops_no_vote() -> None:
    anna, bert, sue = seeing("anna"), seeing("bert"), seeing("sue", group="", operates=True)
    asked = world.ask(quorum=2)
    before = asked.request.respond_by
    assert do(talking.ask, asked, sue, text="why?", asked_of="support").code == "no_right"
    assert do(talking.ask, asked, anna, text="Which outage?", asked_of="support").ok
    (question,) = talk.open_questions(request=asked.fresh())
    assert asked.fresh().respond_by == before and asked.fresh().state == "open"
    assert Run.objects.get(pk=asked.run.pk).wake_at is not None  # it says anew what it waits for
    assert world.cast(asked, bert).code == "voted"
    assert do(talking.answer, asked, anna, text="me", question_id=question.pk).code == "own_question"
    assert do(talking.answer, asked, sue, text="x", question_id=asked.request.pk).code == "no_question"
    assert do(talking.answer, asked, sue, text="That of 22 October", question_id=question.pk).ok
    assert do(talking.answer, asked, bert, text="too", question_id=question.pk).code == "answered"
    assert talk.open_questions(request=asked.fresh()) == []
    assert world.cast(asked, anna).code == "approved"
    assert do(talking.ask, asked, bert, text="late", asked_of="support").code == "decided"


def test_one_of_two_answers_at_once_counts() -> None:
    anna, bert, cora = seeing("anna"), seeing("bert"), seeing("cora")
    asked = world.ask()
    do(talking.ask, asked, anna, text="Which?", asked_of="support")
    (question,) = talk.open_questions(request=asked.request)
    told = world.at_once(
        *(lambda who=who: do(talking.answer, asked, who, text="this", question_id=question.pk) for who in (bert, cora))
    )
    assert sorted(one.code for one in told) == ["answered", "ok"]


def test_those_concerned_are_told_and_the_author_is_not() -> None:
    anna, bert, sue = seeing("anna"), seeing("bert"), seeing("sue", group="", operates=True)
    asked = world.ask()
    spread(limit=50)

    def told(kind: str = "talk") -> set[str]:
        spread(limit=50)
        return set(Notice.objects.filter(kind=kind, ended_at=None).values_list("recipient__username", flat=True))

    do(talking.comment, asked, anna, text="first")
    assert told() == set()
    do(talking.ask, asked, bert, text="Which outage is it?", asked_of="requester")  # a machine raised it: support hears
    assert told() == {"sue"}
    letter = letters.compose(notices=[Notice.objects.get(kind="talk", recipient=sue)])
    assert letter.subject.startswith("A question for you: $1,200.00 USD")
    assert "Which outage is it?" in letter.text and "“Bert” asked for information" in letter.text
    (question,) = talk.open_questions(request=asked.request)
    do(talking.answer, asked, sue, text="The one of October", question_id=question.pk)
    assert told() == {"sue", "anna", "bert"}


def test_a_claim_keeps_another_out_for_a_while_and_no_vote() -> None:
    anna, bert, asked = seeing("anna"), seeing("bert"), world.ask()
    first = do(claiming.claim, asked, anna)
    assert first.ok
    other = do(claiming.claim, asked, bert)
    assert other.code == "claimed_by_other" and "Anna is looking at this until" in sentence(
        code=other.code, detail=other.detail
    )
    assert do(claiming.claim, asked, anna).ok  # renewed
    assert do(claiming.release, asked, bert).code == "not_claimed"
    Claim.objects.update(until=Claim.objects.get().at - dt.timedelta(seconds=1))
    assert do(claiming.claim, asked, bert).ok  # it had lapsed by itself
    assert do(claiming.release, asked, bert).ok and do(claiming.claim, asked, bert).ok
    assert do(claiming.claim, asked, asked.run.initiator).code == "no_right"
    assert world.cast(asked, anna).code == "approved"  # whoever claimed it
    assert do(claiming.claim, asked, bert).code == "decided"
    assert talk.holder(request=asked.fresh(), now=Claim.objects.get().at) is None


def test_claim_against_claim() -> None:
    anna, bert, version = seeing("anna"), seeing("bert"), world.policy()
    for _ in range(8):
        asked = world.ask(version=version)
        told = world.at_once(*(lambda who=who, one=asked: do(claiming.claim, one, who) for who in (anna, bert)))
        assert sorted(one.code for one in told) == ["claimed_by_other", "ok"]
        assert asked.events("request.claimed") == ["request.claimed"]


def test_the_claim_of_whoever_lost_the_right_is_no_claim() -> None:
    anna, bert, asked = seeing("anna"), seeing("bert"), world.ask()
    assert do(claiming.claim, asked, anna).ok
    anna.groups.clear()
    assert talk.holder(request=asked.fresh(), now=Claim.objects.get().at) is None
    assert do(claiming.claim, asked, bert).ok


def test_of_too_many_remarks_the_newest_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talk, "SHOWN", 2)
    anna = seeing("anna")
    version = world.policy()
    asks = [world.ask(version=version) for _ in range(2)]
    for asked in asks:
        for number in range(2):
            assert do(talking.comment, asked, anna, text=f"{asked.run.subject} {number}").ok
    shown = talk.remarks(requests=[one.request for one in asks])
    assert [one.text for one in shown] == [f"{asks[1].run.subject} {number}" for number in range(2)]


def test_a_question_goes_along_to_the_request_that_replaces_its_own() -> None:
    """What was not answered yet is still to be answered, and whoever asked hears the answer."""
    anna, bert = seeing("anna"), seeing("bert")
    asked = world.ask()
    assert do(talking.ask, asked, anna, text="Which outage?", asked_of="support").ok
    assert do(talking.ask, asked, bert, text="And since when?", asked_of="support").ok
    which, since = talk.open_questions(request=asked.fresh())
    assert do(talking.answer, asked, anna, text="At noon", question_id=since.pk).ok
    first = asked.fresh()
    for number in (4, 5):
        with transaction.atomic(durable=True):
            run = Run.objects.select_for_update(of=("self",)).get(pk=asked.run.pk)
            system = principals.system()
            old = requests.close_open(run=run, to=RequestState.SUPERSEDED, why="moved", actor=system)
            asked.request = world.open_one(
                run, asked.proposal, asked.version, shown=world.rows(version=str(number)), supersedes=old
            )
    first.refresh_from_db()
    assert talk.open_questions(request=first) == [] and talk.open_questions(request=asked.fresh()) == [which]
    other = world.ask(version=asked.version)
    assert talk.questioned(requests=[asked.fresh(), other.fresh(), first]) == {asked.request.pk: [which]}
    assert do(talking.answer, other, bert, text="22 October", question_id=which.pk).code == "no_question"
    assert do(talking.answer, asked, bert, text="That of 22 October", question_id=which.pk).ok
    assert talk.open_questions(request=asked.fresh()) == []
    assert talk.to_tell(remark=which.answer) == [anna]
    assert do(talking.answer, asked, bert, text="once more", question_id=which.pk).code == "answered"
