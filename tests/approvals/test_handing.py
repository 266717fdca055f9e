"""Handing a request on and adding somebody who has to approve: to people who may answer, and it decides nothing."""

import pytest
from django.contrib.auth.models import Group, Permission, User

from approvals import queries, seating
from approvals.models import Notice, Stage
from approvals.models.request import RequestState
from approvals.requirement import StageNeed
from approvals.services import handing, telling
from approvals.services.handing import HandingResult
from runs.services import principals
from tests.approvals import world

pytestmark = pytest.mark.usefixtures("db")


@pytest.fixture
def people(db: str) -> dict[str, User]:
    made = {name: world.user(name, email=f"{name}@example.com") for name in ("anna", "bert", "lead")}
    made["other"] = world.user("other", group="other")
    made["lead"].user_permissions.add(Permission.objects.get(codename="reassign"))
    return made


def hand(asked: world.Asked, to: User | Group, by: User, reason: str = "Knows the customer") -> HandingResult:
    stage = Stage.objects.filter(request=asked.request).latest("position")
    return handing.hand_on(request_id=asked.request.pk, stage_id=stage.pk, to=to, reason=reason, by=by)


def add(asked: world.Asked, person: User, by: User, reason: str = "Their budget") -> HandingResult:
    return handing.add_approver(request_id=asked.request.pk, person=person, reason=reason, by=by)


def test_a_stage_handed_on_waits_for_that_person_alone(people: dict[str, User]) -> None:
    asked = world.ask()
    assert hand(asked, people["anna"], people["lead"]).ok
    counts = {name: queries.waiting_count(user=user) for name, user in people.items()}
    assert counts == {"anna": 1, "bert": 0, "lead": 0, "other": 0}
    telling.spread(limit=50)
    event = world.Event.objects.get(kind="request.handed_on")
    assert (event.data["to"], event.data["why"]) == ("Anna", "Knows the customer")
    assert world.cast(asked, people["bert"]).code == "approved"  # whoever satisfies the stage may still answer


def test_to_a_group_those_of_it_who_satisfy_the_stage_are_asked(people: dict[str, User]) -> None:
    asked, night = world.ask(), world.voters("night")
    people["bert"].groups.add(night)
    people["other"].groups.add(night)
    assert hand(asked, night, people["lead"]).ok
    assert [name for name, user in people.items() if queries.waiting_count(user=user)] == ["bert"]


def test_what_handing_on_refuses(people: dict[str, User]) -> None:
    anna, lead = people["anna"], people["lead"]
    asked = world.ask(quorum=2, proposer=principals.of_user(user=people["bert"]))
    assert hand(asked, anna, people["other"]).code == "no_right"
    assert hand(asked, people["other"], lead).code == "does_not_fit"
    assert hand(asked, people["bert"], lead).code == "has_part"
    assert hand(asked, world.voters("empty"), lead).code == "does_not_fit"
    assert hand(asked, anna, lead, reason=" \n").code == "reason_needed"
    world.cast(asked, anna)
    assert hand(asked, anna, lead).code == "has_answered"
    own = world.ask(version=asked.version, initiator=principals.of_user(user=lead))
    assert hand(own, anna, lead).code == "own_request"
    world.cast(own, anna, "reject")
    assert hand(own, anna, people["lead"]).code == "own_request"
    assert Stage.objects.filter(handed_user__isnull=False).count() == 0


def test_an_added_approver_has_to_approve_as_well(people: dict[str, User]) -> None:
    asked = world.ask()
    assert add(asked, people["other"], people["lead"]).ok
    assert [name for name, user in people.items() if queries.waiting_count(user=user)] == list(people)
    waits = world.cast(asked, people["anna"])
    assert (waits.code, waits.detail["quorum"]) == ("voted", 2)
    assert world.cast(asked, people["bert"]).code == "stage_met"
    assert world.cast(asked, people["other"]).code == "approved"


def test_what_adding_refuses(people: dict[str, User]) -> None:
    lead = people["lead"]
    asked = world.ask(quorum=2, proposer=principals.of_user(user=people["bert"]))
    assert add(asked, people["anna"], people["other"]).code == "no_right"
    assert add(asked, people["bert"], lead).code == "has_part"
    assert add(asked, world.user("nobody", group=""), lead).code == "cannot_vote"
    world.cast(asked, people["anna"])
    assert add(asked, people["anna"], lead).code == "has_answered"
    assert add(asked, people["other"], lead).ok
    assert add(asked, people["other"], lead).code == "there_already"
    world.cast(asked, people["other"], "reject")
    assert add(asked, lead, lead).code == "closed"


def test_whoever_was_added_is_asked_again_by_the_successor(people: dict[str, User]) -> None:
    asked = world.ask()
    add(asked, people["other"], people["lead"])
    with world.transaction.atomic(durable=True):
        run = world.Run.objects.select_for_update().get(pk=asked.run.pk)
        actor = principals.system()
        world.requests.close_open(run=run, to=RequestState.SUPERSEDED, why="moved", actor=actor)
        next_one = world.open_one(run, asked.proposal, asked.version, supersedes=asked.request)
    assert [one.name for one in next_one.stages.order_by("position")] == ["manager", "Other"]


def test_handed_to_one_of_two_it_waits_for_the_others_once_that_one_has_answered(people: dict[str, User]) -> None:
    asked = world.ask(quorum=2)
    assert hand(asked, people["bert"], people["lead"]).ok
    assert world.cast(asked, people["bert"]).code == "voted"
    assert queries.waiting_count(user=people["anna"]) == 1
    event = world.Event.objects.get(kind="request.stage_reopened")
    assert event.data["stage_id"] == str(Stage.objects.get().pk)
    before = Notice.objects.filter(event=event).count()
    telling.spread(limit=50)
    told = Notice.objects.filter(event=event).values_list("recipient__username", flat=True)
    assert before == 0 and set(told) == {"anna", "lead"}
    assert world.cast(asked, people["anna"]).code == "approved"


def test_handed_to_somebody_who_is_gone_it_waits_for_all_whom_it_asks(people: dict[str, User]) -> None:
    asked = world.ask()
    hand(asked, people["bert"], people["lead"])
    User.objects.filter(pk=people["bert"].pk).update(is_active=False)
    assert queries.waiting_count(user=people["anna"]) == 1
    asks = seating.asked_now(request=asked.request, stages=seating.stages_of(request=asked.request), votes=[])
    assert {person.name for _, person in asks} == {"Anna", "Lead"}


def test_nobody_is_added_without_whom_a_stage_could_not_have_its_people(people: dict[str, User]) -> None:
    """Each answers once, so the only one of finance cannot be asked by name as well."""
    sole = world.user("sole", group="finance")
    finance = StageNeed(name="Finance", groups=("finance",), quorum=1)
    managers = StageNeed(name="Managers", groups=("manager",), quorum=2)
    asked = world.ask(version=world.policy(), quorum=3, stages=(finance, managers))
    refused = add(asked, sole, people["lead"])
    assert (refused.code, refused.detail) == ("needed_elsewhere", {"to": "Sole", "stage": "Finance"})
    assert add(asked, people["bert"], people["lead"]).ok  # two managers are left
    assert add(asked, people["anna"], people["lead"]).code == "needed_elsewhere"
    sole.groups.add(world.voters("manager"))
    world.user("fred", group="finance")
    assert add(asked, people["anna"], people["lead"]).ok  # one of finance may answer for the managers
    people["other"].first_name, people["other"].last_name = "x" * 150, "y" * 150
    people["other"].save()
    assert add(asked, people["other"], people["lead"]).ok


@pytest.mark.parametrize("how", ["has a part", "may not vote"])
def test_whoever_was_added_and_could_not_answer_is_not_asked_by_the_successor(
    people: dict[str, User], how: str
) -> None:
    asked = world.ask()
    add(asked, people["other"], people["lead"])
    if how == "may not vote":
        people["other"].groups.clear()
    else:
        rests_on = list(world.Evidence.objects.filter(run=asked.run))
        world.propose(of=asked.run, rests_on=rests_on, by=principals.of_user(user=people["other"]))
    with world.transaction.atomic(durable=True):
        run = world.Run.objects.select_for_update().get(pk=asked.run.pk)
        world.requests.close_open(run=run, to=RequestState.SUPERSEDED, why="another amount", actor=principals.system())
        next_one = world.open_one(run, asked.proposal, asked.version, supersedes=asked.request)
    assert [one.name for one in next_one.stages.all()] == ["manager"]
