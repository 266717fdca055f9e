"""Reminders, escalation and what is late: once, by the database's clock, later by what a freeze has stopped."""

import datetime as dt
import zoneinfo
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from hypothesis import given
from hypothesis import strategies as st

from approvals import queries, working_time
from approvals.models import Notice, Prompt
from approvals.models.request import RequestState
from approvals.requirement import Escalation
from approvals.services import freezing, prompting, telling
from approvals.words import sentence
from runs.models import Principal
from runs.services import principals
from tests.approvals import world

LONDON = zoneinfo.ZoneInfo("Europe/London")
OFFICE = working_time.Calendar(
    zone=LONDON,
    days=frozenset(range(5)),
    begins=dt.time(9),
    ends=dt.time(17),
    holidays=frozenset({dt.date(2026, 12, 25)}),
)
HOUR = dt.timedelta(hours=1)


@pytest.fixture
def anna(db: str) -> User:
    return world.user("anna", email="anna@example.com")


def ask(**more: Any) -> world.Asked:
    return world.ask(**more)


def make_due(owner: psycopg.Connection, asked: world.Asked) -> None:
    owner.execute(
        "UPDATE approvals_prompt SET asked_for = clock_timestamp() - interval '1 s', due_at = clock_timestamp()"
        " WHERE request_id = %s AND ended_at IS NULL",
        [asked.request.pk],
    )


def test_nothing_is_done_before_its_time(anna: User) -> None:
    asked = ask(remind_after=HOUR)
    found = list(Prompt.objects.filter(request=asked.request).order_by("due_at"))
    assert [one.due_at - asked.request.created_at for one in found] == [HOUR, 2 * HOUR, 3 * HOUR]
    assert prompting.work_off() == 0


def test_a_reminder_goes_once_to_whoever_has_not_answered(anna: User, owner: psycopg.Connection) -> None:
    bert = world.user("bert", email="bert@example.com")
    asked = ask(quorum=2, remind_after=3 * HOUR)
    world.cast(asked, bert)
    make_due(owner, asked)
    done = world.at_once(prompting.work_off, prompting.work_off, prompting.work_off)
    assert sum(done) == 1
    assert asked.events("request.reminded") == ["request.reminded"]
    telling.spread(limit=50)
    again = Notice.objects.filter(event__kind="request.reminded")
    assert [notice.recipient for notice in again] == [anna]


def test_an_escalation_asks_the_next_as_well_and_is_the_systems(anna: User, owner: psycopg.Connection) -> None:
    hanna = world.user("hanna", group="heads")
    asked = ask(escalations=(Escalation(after=HOUR, group="heads"),))
    assert (queries.waiting_count(user=hanna), world.cast(asked, hanna).code) == (0, "no_right")
    make_due(owner, asked)
    assert prompting.work_off() == 1
    assert queries.waiting_count(user=hanna) == queries.waiting_count(user=anna) == 1
    event = world.Event.objects.get(kind="request.escalated")
    assert (event.actor.kind, event.data["also"]) == (Principal.Kind.SYSTEM, "heads")
    assert world.cast(asked, hanna).code == "approved"


def test_nothing_is_done_for_what_is_decided(anna: User, owner: psycopg.Connection) -> None:
    asked = ask(remind_after=HOUR)
    world.cast(asked, anna)
    make_due(owner, asked)
    prompting.work_off()
    assert set(Prompt.objects.values_list("result", flat=True)) == {"not_needed"}
    assert asked.events("request.reminded") == []


def test_a_freeze_stops_the_clock(anna: User, owner: psycopg.Connection) -> None:
    asked = ask(remind_after=3 * HOUR)
    made = freezing.freeze(scope="all", principal=principals.system(), reason="looking")
    assert made.freeze is not None
    owner.execute("UPDATE approvals_approvalrequest SET created_at = created_at - interval '2 hours'")
    owner.execute("UPDATE approvals_freeze SET since = since - interval '1 hour'")
    make_due(owner, asked)
    assert prompting.work_off() == 0
    prompt = Prompt.objects.get()
    assert prompt.due_at - prompt.asked_for > dt.timedelta(minutes=59)
    assert freezing.lift(freeze_id=made.freeze.pk, principal=principals.system(), reason="done").ok
    owner.execute("UPDATE approvals_prompt SET due_at = clock_timestamp()")
    assert prompting.work_off() == 0
    assert Prompt.objects.get().due_at - prompt.asked_for < dt.timedelta(minutes=61)


@pytest.mark.parametrize(("when_late", "state"), [("expire", RequestState.EXPIRED), ("reject", RequestState.REJECTED)])
def test_late_is_what_the_rule_says_and_never_a_yes(
    anna: User, owner: psycopg.Connection, when_late: str, state: RequestState
) -> None:
    asked = ask(when_late=when_late)
    owner.execute("UPDATE approvals_approvalrequest SET respond_by = clock_timestamp()")
    late = world.cast(asked, anna)
    assert (late.code, asked.fresh().state) == ("expired", state)
    assert sentence(code="expired", detail=late.detail).startswith("The time to answer ended")
    assert world.cast(asked, anna).code == "expired"
    assert not hasattr(asked.fresh(), "decision")


def test_working_time_is_what_the_request_gets(anna: User, settings: Any) -> None:
    settings.WORKING_TIME = OFFICE
    request = ask(clock="working").request
    assert working_time.between(calendar=OFFICE, since=request.created_at, until=request.respond_by) == 4 * HOUR


@pytest.mark.parametrize(
    ("since", "hours", "until"),
    [
        ("2026-11-30 10:00", 4, "2026-11-30 14:00"),  # a Monday
        ("2026-11-27 16:00", 4, "2026-11-30 12:00"),  # over the weekend
        ("2026-11-28 12:00", 8, "2026-11-30 17:00"),
        ("2026-12-24 16:00", 2, "2026-12-28 10:00"),  # a holiday and the weekend
        ("2026-03-27 16:00", 2, "2026-03-30 10:00"),  # the clocks change in between
    ],
)
def test_working_time_by_the_calendar(since: str, hours: int, until: str) -> None:
    def at(text: str) -> dt.datetime:
        return dt.datetime.fromisoformat(text).replace(tzinfo=LONDON)

    assert working_time.later(calendar=OFFICE, since=at(since), by=hours * HOUR) == at(until)


@given(
    since=st.integers(1_767_225_600, 1_798_761_600).map(lambda at: dt.datetime.fromtimestamp(at, dt.UTC)),
    minutes=st.integers(0, 10_000),
)
def test_adding_and_measuring_agree(since: dt.datetime, minutes: int) -> None:
    by = dt.timedelta(minutes=minutes)
    until = working_time.later(calendar=OFFICE, since=since, by=by)
    assert until >= since and working_time.between(calendar=OFFICE, since=since, until=until) == by
