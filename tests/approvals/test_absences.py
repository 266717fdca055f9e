"""Standing in for somebody: for a time, for one person, never for their own affairs, and the two count once."""

import datetime as dt
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import Permission, User

from approvals import queries
from approvals.models import Absence, Vote
from approvals.requirement import StageNeed
from approvals.services import absences
from approvals.words import sentence
from runs import clock
from runs.money import Money
from runs.services import principals
from tests.approvals import world

pytestmark = pytest.mark.usefixtures("db")
DAY = dt.timedelta(days=1)


def away(person: User, stand_in: User, *, by: User | None = None, after: dt.timedelta = -DAY, **kw: Any) -> Any:
    now = clock.read()
    given = {"begins": now + after, "ends": now + after + 2 * DAY, "note": "On leave", **kw}
    return absences.arrange(person_id=person.pk, stand_in_id=stand_in.pk, by=by or person, **given)


@pytest.fixture
def anna(db: str) -> User:
    return world.user("anna")


@pytest.fixture
def dora(db: str) -> User:
    """May vote, but not in the group that is asked."""
    return world.user("dora", group="other")


def test_a_stand_in_answers_for_whoever_is_away_and_the_vote_says_so(anna: User, dora: User) -> None:
    asked = world.ask()
    assert queries.waiting_count(user=dora) == 0
    assert away(anna, dora).ok
    assert queries.waiting_count(user=dora) == 1
    assert world.cast(asked, dora).code == "approved"
    vote = Vote.objects.get()
    assert (vote.whose, vote.group, vote.instead_of) == ("Dora for Anna", "manager", principals.of_user(user=anna))


def test_the_two_count_once(anna: User, dora: User) -> None:
    bert, dora_too = world.user("bert"), world.user("eva", group="other")
    asked = world.ask(quorum=2)
    away(anna, dora)
    assert world.cast(asked, dora).code == "voted"
    late = world.cast(asked, anna)
    assert late.code == "stand_in_voted" and sentence(code=late.code, detail=late.detail).startswith(
        "Dora has answered"
    )
    assert queries.waiting_count(user=anna) == 0
    other = world.ask(version=asked.version, quorum=2)
    assert world.cast(other, anna).code == "voted"
    assert world.cast(other, dora).code == "away_has_voted"
    away(bert, dora_too)
    assert world.cast(other, dora_too).code == "approved"
    assert world.cast(asked, bert).code == "approved"


def test_the_database_counts_them_once_as_well(anna: User, dora: User, owner: psycopg.Connection) -> None:
    world.user("bert")
    asked = world.ask(quorum=2)
    away(anna, dora)
    world.cast(asked, dora)
    copy = (
        "INSERT INTO approvals_vote (id, request_id, stage_id, principal_id, choice, comment, page_digest,"
        ' binding_digest, authenticated_by, "group", channel, at) SELECT gen_random_uuid(), request_id, stage_id, %s,'
        ' choice, comment, page_digest, binding_digest, authenticated_by, "group", channel, at FROM approvals_vote'
    )
    with pytest.raises(psycopg.errors.UniqueViolation):
        owner.execute(copy, [principals.of_user(user=anna).pk])


def test_nothing_before_it_begins_after_it_ends_or_once_it_is_called_off(anna: User, dora: User) -> None:
    asked = world.ask()
    later = away(anna, dora, after=DAY)
    assert world.cast(asked, dora).code == "no_right"
    assert absences.end(absence_id=later.absence.pk, by=anna).ok
    now = away(anna, dora)
    assert now.ok and queries.waiting_count(user=dora) == 1
    assert absences.end(absence_id=now.absence.pk, by=anna).ok
    assert world.cast(asked, dora).code == "no_right"
    assert absences.end(absence_id=now.absence.pk, by=anna).code == "ended_before"


def test_it_ends_at_its_time(anna: User, dora: User, owner: psycopg.Connection) -> None:
    asked = world.ask()
    away(anna, dora)
    owner.execute("UPDATE approvals_absence SET ends = clock_timestamp()")
    assert queries.waiting_count(user=dora) == 0
    assert world.cast(asked, dora).code == "no_right"


def test_nobody_stands_in_for_a_stand_in(anna: User, dora: User) -> None:
    eva = world.user("eva", group="other")
    assert away(anna, dora).ok
    assert away(dora, eva).ok  # Dora's own affairs; Anna's do not go with them
    asked = world.ask()
    assert world.cast(asked, eva).code == "no_right"
    assert away(world.user("bert"), dora).code == "away_too"


def test_never_for_ones_own_affairs(anna: User, dora: User) -> None:
    world.user("bert")
    away(anna, dora)
    version = world.policy()
    raised = world.ask(version=version, initiator=principals.of_user(user=anna))
    assert world.cast(raised, dora).code == "no_right"
    proposed = world.ask(version=version, proposer=principals.of_user(user=dora))
    assert world.cast(proposed, dora).code == "own_request"
    assert queries.waiting_count(user=dora) == 0


def test_what_was_lost_meanwhile_does_not_count(anna: User, dora: User) -> None:
    bert = world.user("bert")
    asked = world.ask(quorum=2)
    away(anna, dora)
    world.cast(asked, dora)
    anna.groups.clear()
    waits = world.cast(asked, bert)
    assert (waits.code, waits.detail["votes_for"]) == ("voted", 1)


def test_a_stage_of_two_takes_two_people_not_a_person_and_their_stand_in(anna: User, dora: User) -> None:
    world.user("bert")
    asked = world.ask(quorum=2, stages=(StageNeed(name="Managers", groups=("manager",), quorum=2),))
    away(anna, dora)
    assert world.cast(asked, anna).code == "voted"
    assert world.cast(asked, dora).code == "away_has_voted"
    assert asked.fresh().state == "open"


def test_what_is_refused(anna: User, dora: User) -> None:
    bert, nobody = world.user("bert"), world.user("nobody", group="")
    assert away(anna, dora, by=bert).code == "no_right"
    assert away(anna, anna).code == "nobody_else"
    assert away(anna, nobody).code == "cannot_vote"
    assert away(anna, dora, after=-5 * DAY).code == "over"
    now = clock.read()
    assert away(anna, dora, begins=now + DAY, ends=now + DAY).code == "backwards"
    assert away(anna, dora, begins=now, ends=now + 400 * DAY).code == "too_long"
    far = dt.datetime(9999, 12, 31, 21, tzinfo=dt.timezone(dt.timedelta(hours=-5)))  # in UTC a year that none can read
    assert away(anna, dora, begins=far, ends=far + dt.timedelta(hours=2)).code == "too_far"
    assert away(anna, dora).ok
    assert away(anna, bert).code == "overlaps"
    bert.user_permissions.add(Permission.objects.get(codename="arrange_absence"))
    assert away(dora, anna, by=bert, after=3 * DAY).ok
    assert Absence.objects.count() == 2


def test_nobody_sets_their_own_limit(anna: User) -> None:
    bert = world.user("bert")
    given: dict[str, Any] = {"team": "emea", "region": "", "limits": {"USD": Money(500_000, "USD")}}
    assert absences.set_remit(user_id=anna.pk, by=bert, **given).code == "no_right"
    bert.user_permissions.add(Permission.objects.get(codename="arrange_absence"))
    assert absences.set_remit(user_id=bert.pk, by=bert, **given).code == "own_remit"
    assert absences.set_remit(user_id=anna.pk, by=bert, **given).ok
    anna.refresh_from_db()
    assert anna.remit.limits == {"USD": 500_000}


def test_nobody_makes_themselves_the_stand_in_of_another(anna: User, dora: User) -> None:
    dora.user_permissions.add(Permission.objects.get(codename="arrange_absence"))
    asked = world.ask()
    assert away(anna, dora, by=dora).code == "own_stand_in"
    assert world.cast(asked, dora).code == "no_right"
