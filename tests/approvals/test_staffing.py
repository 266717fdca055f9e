"""Too few people for what is asked: found whoever left, shown to those who could help, escalated where it is late."""

import datetime as dt

import psycopg
import pytest
from django.contrib.auth.models import User

from approvals import queries, seating, staffing
from approvals.models import Prompt, Remit, Stage
from approvals.requirement import Escalation, Person, StageNeed
from approvals.services import prompting
from approvals.services import staffing as looking
from runs.models import Run
from runs.services import principals
from tests.approvals import world

pytestmark = pytest.mark.usefixtures("db")
FINANCE = StageNeed(name="Finance", groups=("finance",), quorum=1)
LEGAL = StageNeed(name="Legal", groups=("legal",), quorum=1)
HOUR = dt.timedelta(hours=1)


def missing(asked: world.Asked, *escalating: str) -> str:
    chain = seating.stages_of(request=asked.request)
    short = staffing.missing(request=asked.fresh(), stages=chain, escalating=escalating)
    return "" if short is None else short.stage.name


def gone(*users: User) -> None:
    User.objects.filter(pk__in=[one.pk for one in users]).update(is_active=False)


def due() -> int:
    """How many the look made due."""
    Run.objects.update(wake_at=None)
    looking.work_off()
    return Run.objects.filter(wake_at__isnull=False).count()


def test_who_counts_as_somebody_who_could_answer() -> None:
    anna, bert = world.user("anna"), world.user("bert")
    asked = world.ask(initiator=principals.of_user(user=anna))
    assert missing(asked) == ""
    gone(bert)
    assert missing(asked) == "manager"  # Anna started it
    world.user("fred", group="finance")
    assert (missing(asked, "finance"), missing(asked, "legal")) == ("", "manager")
    other = world.ask(version=asked.version, quorum=2)
    assert missing(other) == "manager"
    User.objects.filter(pk=bert.pk).update(is_active=True)
    assert missing(other) == ""


def test_a_stage_that_loses_its_last_person_is_found_whatever_took_them() -> None:
    anna = world.user("anna")
    asked = world.ask()
    added = world.user("added", group="legal")
    Stage.objects.create(
        request=asked.request, position=2, name="Added", person=added, quorum=1, added_by=principals.system(),
        added_why="knows it", opened_at=asked.request.created_at,
    )  # fmt: skip
    assert due() == 0
    gone(added)
    assert due() == 1
    added.groups.clear()
    User.objects.filter(pk=added.pk).update(is_active=True)
    assert due() == 1  # without the right to vote
    added.groups.add(world.voters("legal"))
    assert due() == 0
    anna.groups.clear()
    assert due() == 1
    Run.objects.update(waits_for=f"{staffing.NOBODY}: one of managers")
    anna.groups.add(world.voters("manager"))
    assert due() == 1  # to say that somebody is there again


def test_a_stage_is_found_whose_last_person_could_not_answer_it() -> None:
    """Members are left with the right to vote: one started it, one's limit does not cover it, one has answered."""
    anna, bert = world.user("anna"), world.user("bert")
    asked = world.ask(initiator=principals.of_user(user=anna))
    assert due() == 0
    gone(bert)
    assert due() == 1
    User.objects.filter(pk=bert.pk).update(is_active=True)
    assert due() == 0
    assert world.cast(asked, bert).code == "approved"

    small = StageNeed(name="Small", groups=("finance",), quorum=1, person=Person(within_limit=True))
    chris, carla = world.user("chris", group="finance"), world.user("carla", group="finance")
    Remit.objects.create(user=chris, limits={"USD": 120_000})
    Remit.objects.create(user=carla, limits={"USD": 119_999})
    world.ask(version=asked.version, stages=(small,))
    assert due() == 0
    Remit.objects.filter(user=chris).update(limits={"EUR": 120_000})
    assert due() == 1

    two = StageNeed(name="Two", groups=("legal",), quorum=2)
    lena, lars = world.user("lena", group="legal"), world.user("lars", group="legal")
    both = world.ask(version=asked.version, quorum=2, stages=(two,))
    assert world.cast(both, lena).code == "voted" and due() == 1
    gone(lars)
    assert due() == 2


def test_a_stage_is_found_that_is_left_with_fewer_than_it_takes() -> None:
    anna, bert = world.user("anna"), world.user("bert")
    asked = world.ask(quorum=2)
    assert due() == 0
    gone(anna)
    assert due() == 1
    User.objects.filter(pk=anna.pk).update(is_active=True)
    assert due() == 0
    assert world.cast(asked, anna).code == "voted" and due() == 0
    anna.groups.clear()  # so that her yes counts no more
    assert due() == 1
    chris = world.user("chris")
    assert due() == 0
    assert [world.cast(asked, who).code for who in (bert, chris)] == ["voted", "approved"]


def test_a_stage_is_found_whose_only_person_an_other_one_needs_or_whose_turn_comes_later() -> None:
    world.user("boss")
    version = world.policy()
    anna = world.user("anna", group="finance")
    carla = world.user("carla", group="legal")
    for in_order in (True, False):
        world.ask(version=version, quorum=2, stages=(FINANCE, LEGAL), in_order=in_order)
    assert due() == 0
    gone(carla)
    assert due() == 2
    anna.groups.add(world.voters("legal"))
    assert due() == 2  # who answers once
    world.user("anton", group="finance")
    assert due() == 0


def test_what_was_handed_to_a_group_that_has_nobody_any_more_waits_for_all() -> None:
    anna, lead = world.user("anna"), world.user("lead")
    leads = world.voters("leads")
    lead.groups.add(leads)
    asked = world.ask()
    Stage.objects.filter(request=asked.request).update(handed_group=leads)
    assert [queries.waiting_count(user=one) for one in (anna, lead)] == [0, 1]
    gone(lead)
    assert queries.waiting_count(user=anna) == 1
    asks = seating.asked_now(request=asked.request, stages=seating.stages_of(request=asked.request), votes=[])
    assert [person.name for _, person in asks] == ["Anna"]


def test_a_stage_that_opens_after_the_time_of_an_escalation_is_escalated(owner: psycopg.Connection) -> None:
    anna, chris = world.user("anna", group="finance"), world.user("chris", group="chiefs")
    world.user("carla", group="legal")
    world.user("boss")
    asked = world.ask(
        version=world.policy(),
        quorum=2,
        stages=(FINANCE, LEGAL),
        in_order=True,
        escalations=(Escalation(after=HOUR, group="chiefs"),),
    )
    owner.execute("UPDATE approvals_prompt SET asked_for = clock_timestamp(), due_at = clock_timestamp()")
    assert prompting.work_off() == 1
    assert world.cast(asked, anna).code == "voted"
    assert [stage.also for stage in seating.stages_of(request=asked.request)] == [["chiefs"], ["chiefs"]]
    assert asked.events("request.escalated", "request.stage_opened") == [
        "request.escalated", "request.stage_opened", "request.escalated",
    ]  # fmt: skip
    assert world.cast(asked, chris).code == "approved"


def test_a_stage_that_opens_before_it_waits_for_the_escalation(owner: psycopg.Connection) -> None:
    anna = world.user("anna", group="finance")
    for name, group in (("chris", "chiefs"), ("carla", "legal"), ("boss", "manager")):
        world.user(name, group=group)
    asked = world.ask(
        version=world.policy(),
        quorum=2,
        stages=(FINANCE, LEGAL),
        in_order=True,
        escalations=(Escalation(after=HOUR, group="chiefs"),),
    )
    assert world.cast(asked, anna).code == "voted"
    assert [stage.also for stage in seating.stages_of(request=asked.request)] == [[], []]
    assert Prompt.objects.get().ended_at is None
