"""People lose the right between two votes and get it back: what they said before is counted without another vote, with
all that a yes takes, and never otherwise."""

import datetime as dt
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connections, transaction

from approvals import queries, seating
from approvals.evaluation import Verdict
from approvals.models import ApprovalRequest, Decision, Policy, PolicyVersion, Refusal, Remit, Stage, Vote
from approvals.models.request import RequestState
from approvals.requirement import Escalation, Person, StageNeed
from approvals.services import counting, freezing, prompting, requests
from approvals.services import staffing as looking
from approvals.services.deciding import Reevaluate
from runs import record
from runs.models import Event, Run
from runs.services import principals
from tests import published
from tests.approvals import world
from tests.statements_sent import statements_sent

pytestmark = pytest.mark.usefixtures("db")
FINANCE = StageNeed(name="Finance", groups=("finance",), quorum=1)
LEGAL = StageNeed(name="Legal", groups=("legal",), quorum=1)


@pytest.fixture
def anna(db: str) -> User:
    return world.user("anna")


@pytest.fixture
def bert(db: str) -> User:
    return world.user("bert")


def same(*, request: ApprovalRequest, version: PolicyVersion) -> Verdict:
    """The newer policy asks what was asked."""
    return world.verdict(quorum=request.quorum)


def count(*, reevaluate: Reevaluate = same) -> int:
    """What the relay does: of how many its look has changed anything."""
    return counting.work_off(requests=looking.work_off().to_count, reevaluate=reevaluate)


def back_again(anna: User, bert: User) -> world.Asked:
    """Two have to approve, and both have, but never while both were entitled; now they are."""
    asked = world.ask(quorum=2)
    left(asked, anna, bert)
    return asked


def left(asked: world.Asked, anna: User, bert: User) -> None:
    assert world.cast(asked, anna).code == "voted"
    groups = [*anna.groups.all()]
    anna.groups.clear()
    assert world.cast(asked, bert).code == "voted"
    assert count() == 0 and asked.fresh().state == RequestState.OPEN
    anna.groups.set(groups)


def unchanged(asked: world.Asked) -> bool:
    return count() == 0 and asked.fresh().state == RequestState.OPEN and not Decision.objects.exists()


def test_it_is_decided_once_enough_of_those_who_approved_are_entitled_again(anna: User, bert: User) -> None:
    asked = back_again(anna, bert)
    Run.objects.update(wake_at=None)
    assert count() == 1
    decision, request = Decision.objects.get(), asked.fresh()
    assert (decision.approved, decision.kind, decision.request_id) == (True, "people", request.pk)
    assert (request.state, request.closed_at) == (RequestState.APPROVED, decision.decided_at)
    assert Run.objects.get(pk=asked.run.pk).wake_at is not None
    with transaction.atomic(durable=True):
        run = Run.objects.select_for_update(of=("self",)).get(pk=asked.run.pk)
        authority = requests.lock_for_sending(run=run, proposal=asked.proposal)
    assert authority is not None and (authority.problem, authority.votes_for) == ("", 2)
    assert count() == 0 and not Refusal.objects.exists()


def test_the_record_says_who_voted_and_that_the_system_counted(anna: User, bert: User) -> None:
    asked = back_again(anna, bert)
    count()
    assert asked.events("request.vote", "request.counted", "request.approved") == [
        "request.vote", "request.vote", "request.counted", "request.approved",
    ]  # fmt: skip
    votes = [str(pk) for pk in Vote.objects.order_by("at").values_list("pk", flat=True)]
    for event in Event.objects.filter(kind__in=["request.counted", "request.approved"]):
        assert event.actor.key == principals.system().key
        assert (event.data["counted"], event.data["votes"], "vote" in event.data) == ("Anna, Bert", votes, False)
    assert record.verify(stream=f"run:{asked.run.pk}") is None
    assert world.cast(asked, anna).code == "voted"  # the same click again is told what it was told


def test_the_record_of_a_click_that_decides_names_whom_it_counted(anna: User, bert: User) -> None:
    asked, carla = world.ask(quorum=2), world.user("carla")
    assert world.cast(asked, anna).code == "voted"
    anna.groups.clear()
    assert world.cast(asked, bert).code == "voted"
    assert world.cast(asked, carla).code == "approved"
    assert Event.objects.get(kind="request.approved").data["counted"] == "Bert, Carla"


@pytest.mark.parametrize("how", ["active", "limit", "team", "escalated"])
def test_whatever_gives_the_right_back(anna: User, bert: User, how: str, owner: psycopg.Connection) -> None:
    need = StageNeed(
        name="Managers", groups=("manager",), quorum=2, person=Person(within_limit=True, region="north", team="emea")
    )
    for who in (anna, bert):
        Remit.objects.create(user=who, limits={"USD": 120_000}, team="emea", region="north")
    world.user("boss")
    asked = world.ask(
        version=world.policy(),
        quorum=2,
        stages=(need,),
        escalations=(Escalation(after=dt.timedelta(hours=1), group="chiefs"),),
    )
    mine, people = Remit.objects.filter(user=anna), User.objects.filter(pk=anna.pk)
    assert world.cast(asked, anna).code == "voted"
    taken: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "active": (lambda: people.update(is_active=False), lambda: people.update(is_active=True)),
        "limit": (lambda: mine.update(limits={"USD": 119_999}), lambda: mine.update(limits={"USD": 120_000})),
        "team": (lambda: mine.update(team=""), lambda: mine.update(team="emea")),
        "escalated": (lambda: anna.groups.set([world.voters("chiefs")]), prompting.work_off),
    }
    take, give = taken[how]
    take()
    assert world.cast(asked, bert).code == "voted"
    assert unchanged(asked)
    owner.execute("UPDATE approvals_prompt SET asked_for = clock_timestamp(), due_at = clock_timestamp()")
    give()
    assert (count(), asked.fresh().state) == (1, RequestState.APPROVED)


def test_a_stage_is_asked_again_and_met_again_without_a_vote() -> None:
    """Finance has answered and Legal is asked; who answered for Finance comes and goes."""
    world.user("boss")
    anna, bert = world.user("anna", group="finance"), world.user("bert", group="finance")
    carla = world.user("carla", group="legal")
    asked = world.ask(version=world.policy(), quorum=2, stages=(FINANCE, LEGAL), in_order=True)
    assert world.cast(asked, anna).code == "voted"
    assert count() == 0
    anna.groups.clear()
    assert (count(), queries.waiting_count(user=bert), count()) == (1, 1, 0)
    assert asked.events("request.stage_reopened") == ["request.stage_reopened"]
    anna.groups.add(world.voters("finance"))
    assert (count(), queries.waiting_count(user=bert), count()) == (1, 0, 0)
    assert asked.events("request.counted", "request.approved") == ["request.counted"]
    assert world.cast(asked, carla).code == "approved"


def test_the_next_stage_is_asked_when_the_one_before_it_has_its_people_again() -> None:
    world.user("boss")
    two = StageNeed(name="Finance", groups=("finance",), quorum=2)
    anna, bert = world.user("anna", group="finance"), world.user("bert", group="finance")
    carla = world.user("carla", group="legal")
    asked = world.ask(version=world.policy(), quorum=3, stages=(two, LEGAL), in_order=True)
    left(asked, anna, bert)
    assert queries.waiting_count(user=carla) == 0
    assert (count(), queries.waiting_count(user=carla)) == (1, 1)
    assert asked.events("request.counted", "request.stage_opened") == ["request.counted", "request.stage_opened"]
    assert world.cast(asked, carla).code == "approved"


# ---- never where a yes would not count


def test_not_while_it_is_frozen(anna: User, bert: User) -> None:
    asked, system = back_again(anna, bert), principals.system()
    made = freezing.freeze(scope="all", principal=system, reason="looking")
    assert made.freeze is not None and unchanged(asked)
    assert Stage.objects.get().met_at is None
    assert freezing.lift(freeze_id=made.freeze.pk, principal=system, reason="done").ok
    assert (count(), asked.fresh().state) == (1, RequestState.APPROVED)


def test_not_on_other_facts(anna: User, bert: User) -> None:
    asked = back_again(anna, bert)
    world.read(of=asked.run, reading=2, version="4")
    assert unchanged(asked)
    wanted = Run.objects.get(pk=asked.run.pk).facts_wanted_at
    assert wanted is not None  # they are read again, once
    assert unchanged(asked) and Run.objects.get(pk=asked.run.pk).facts_wanted_at == wanted


def stricter(*, request: ApprovalRequest, version: PolicyVersion) -> Verdict:
    return world.verdict(quorum=3)


@pytest.mark.parametrize(("now", "state"), [(stricter, RequestState.OPEN), (same, RequestState.APPROVED)])
def test_not_under_a_policy_that_asks_for_more(anna: User, bert: User, now: Reevaluate, state: RequestState) -> None:
    world.user("cleo")
    asked = back_again(anna, bert)
    published.publish(
        slug="service-credits", name="Service credits", tools=[world.TOOL], document=world.document(quorum=3), note=""
    )
    count(reevaluate=now)
    assert asked.fresh().state == state
    assert (Run.objects.get(pk=asked.run.pk).facts_wanted_at is not None) == (state == RequestState.OPEN)


def run_of(asked: world.Asked, **fields: Any) -> None:
    with transaction.atomic(durable=True):
        run = Run.objects.select_for_update(of=("self",)).get(pk=asked.run.pk)
        for name, value in fields.items():
            setattr(run, name, value)
        run.save(update_fields=list(fields))


def test_not_what_is_late_or_cancelled_or_no_longer_granted(anna: User, bert: User, owner: psycopg.Connection) -> None:
    asked = back_again(anna, bert)
    run_of(asked, cancel_requested_at=asked.request.created_at)
    assert unchanged(asked)
    run_of(asked, cancel_requested_at=None)
    owner.execute("UPDATE runs_run SET capabilities = '[]'")
    assert unchanged(asked)
    owner.execute("UPDATE runs_run SET capabilities = %s", [psycopg.types.json.Jsonb([world.TOOL])])
    owner.execute("UPDATE approvals_approvalrequest SET respond_by = clock_timestamp()")
    assert unchanged(asked)


def test_not_of_somebody_who_has_a_part_in_the_run_by_now(anna: User, bert: User) -> None:
    asked = back_again(anna, bert)
    world.propose(of=asked.run, rests_on=[], by=principals.of_user(user=anna))
    assert unchanged(asked)


def test_a_no_that_ends_nothing_turns_nothing_into_a_yes(anna: User, bert: User) -> None:
    """Nothing that a yes takes is asked of it; what stands is counted by the next look."""
    world.user("boss")
    two = StageNeed(name="Managers", groups=("manager",), quorum=2, reject_at=2)
    asked = world.ask(version=world.policy(), quorum=2, stages=(two,))
    left(asked, anna, bert)
    made = freezing.freeze(scope="all", principal=principals.system(), reason="looking")
    cleo = world.user("cleo")
    assert world.cast(asked, cleo, "reject").code == "voted_no"
    assert unchanged(asked) and Stage.objects.get().met_at is None
    assert made.freeze is not None
    freezing.lift(freeze_id=made.freeze.pk, principal=principals.system(), reason="done")
    assert (count(), asked.fresh().state) == (1, RequestState.APPROVED)


# ---- at the same time


def beside(others_work: Callable[[], Any], *, waits: bool, then: Callable[[], Any] = lambda: None) -> int:
    """What counting changed, begun while another's transaction had done its work and not yet committed."""
    found = looking.work_off().to_count
    assert len(found) == 1
    results: list[int] = []

    def look() -> None:
        try:
            results.append(counting.work_off(requests=found, reevaluate=same))
        finally:
            connections.close_all()

    thread = threading.Thread(target=look)
    with transaction.atomic(durable=True):
        others_work()
        thread.start()
        if waits:
            assert world.somebody_waits(), "it did not wait"
            then()
        else:
            assert not world.somebody_waits(seconds=0.5)
            thread.join(timeout=120)
    thread.join(timeout=120)
    return results[0]


def test_it_waits_for_whoever_takes_the_right_away(anna: User, bert: User) -> None:
    asked = back_again(anna, bert)
    assert beside(lambda: bert.groups.clear(), waits=True) == 0
    assert asked.fresh().state == RequestState.OPEN


def test_what_comes_to_be_late_while_it_waits_is_not_counted(anna: User, bert: User, owner: psycopg.Connection) -> None:
    """As for a vote: the time is what it is once everything is held."""
    asked = back_again(anna, bert)
    soon = "UPDATE approvals_approvalrequest SET respond_by = clock_timestamp() + interval '1 second'"

    def publish() -> None:
        owner.execute(soon)
        Policy.objects.select_for_update(of=("self",)).get()

    assert beside(publish, waits=True, then=partial(time.sleep, 1.5)) == 0
    assert asked.fresh().state == RequestState.OPEN and not Decision.objects.exists()


def test_what_somebody_else_has_locked_is_left_for_the_next_look(anna: User, bert: User) -> None:
    asked = back_again(anna, bert)
    hold = partial(Run.objects.select_for_update(of=("self",)).get, pk=asked.run.pk)
    assert beside(hold, waits=False) == 0
    assert (count(), asked.fresh().state) == (1, RequestState.APPROVED)


def test_two_relays_and_a_vote_at_once_decide_once(anna: User, bert: User) -> None:
    version, cleo = world.policy(quorum=2), world.user("cleo")
    for _ in range(10):
        asked = world.ask(version=version, quorum=2)
        left(asked, anna, bert)
        look = partial(counting.work_off, requests=[asked.request.pk], reevaluate=same)
        first, second, vote = world.at_once(look, look, lambda asked=asked: world.cast(asked, cleo, "reject"))
        assert (first + second, vote.code) in ((1, "decided"), (0, "rejected"))
        assert Decision.objects.filter(request=asked.request).count() == 1
        assert record.verify(stream=f"run:{asked.run.pk}") is None


def test_one_that_fails_holds_up_no_other(anna: User, bert: User, monkeypatch: pytest.MonkeyPatch) -> None:
    version = world.policy(quorum=2)
    every = [world.ask(version=version, quorum=2) for _ in range(3)]
    for asked in every:
        left(asked, anna, bert)
    bad = min(one.request.pk for one in every)
    lock = requests.lock_with_run

    def broken(*, request_id: Any) -> ApprovalRequest:
        if request_id == bad:
            raise ValueError("nobody foresaw it")
        return lock(request_id=request_id)

    monkeypatch.setattr(requests, "lock_with_run", broken)
    with pytest.raises(counting.one_by_one.NotAll):
        count()
    assert {one.fresh().state for one in every if one.request.pk != bad} == {RequestState.APPROVED}


def test_a_look_takes_a_fixed_number_of_statements(anna: User, bert: User) -> None:
    version = world.policy(quorum=2)

    def looked() -> tuple[int, int]:
        with statements_sent() as sent:
            found = looking.work_off().to_count
        return len(sent), len(found)

    def more(number: int) -> None:
        for _ in range(number):
            left(world.ask(version=version, quorum=2), anna, bert)
            Run.objects.update(waits_for="")

    more(1)
    few = looked()
    with statements_sent() as sent:
        assert count() == 1
    assert len(sent) <= few[0] + 32
    more(2)
    assert (looked(), looking.work_off(limit=1).last is not None) == ((few[0], 2), True)


def test_all_are_counted_in_turn_a_part_at_a_look(anna: User, bert: User) -> None:
    version = world.policy(quorum=2)
    every = [world.ask(version=version, quorum=2) for _ in range(5)]
    for asked in every:
        left(asked, anna, bert)
    seen, last = [], None
    while True:
        found = looking.work_off(after=last, limit=2)
        seen += found.to_count
        last = found.last
        if last is None:
            break
    runs = dict(ApprovalRequest.objects.values_list("pk", "run_id"))
    assert [runs[pk] for pk in seen] == sorted(one.run.pk for one in every)
    assert seating.stages_of(request=every[0].fresh())[0].met_at is None
