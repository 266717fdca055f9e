"""Whether a request can still have its people: the relay's look, the run that wakes and the vote say the same of it."""

import datetime as dt
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from approvals import places, seating, staffing
from approvals.models import Absence, ApprovalRequest, PolicyVersion, Remit, Stage, Vote
from approvals.models.request import RequestState
from approvals.requirement import Escalation, Person, StageNeed
from approvals.services import requests, stages
from runs import clock
from runs.services import principals
from tests.approvals import world

DAY = dt.timedelta(days=1)
PEOPLE = 5
GROUPS = ("finance", "legal")
LOW, HIGH = 90_000, 120_000


def enough(needed: Sequence[int], able: Sequence[set[int]]) -> bool:
    """By Hall's theorem: any stages together have as many people as they need together."""
    some = itertools.chain.from_iterable(
        itertools.combinations(range(len(needed)), size) for size in range(1, len(needed) + 1)
    )
    return all(len(set[int]().union(*(able[one] for one in of))) >= sum(needed[one] for one in of) for of in some)


def test_the_first_stage_that_lacks_people_is_found_with_how_many_there_are() -> None:
    """All the ways in which three people can fit three stages of which each needs up to three."""
    subsets = [set(of) for size in range(4) for of in itertools.combinations(range(3), size)]
    for able in itertools.product(subsets, repeat=3):
        for needed in itertools.product(range(4), repeat=3):
            found = places.lacking(needed=needed, able=able)
            assert (found is None) == enough(needed, able), (needed, able)
            if found is not None:
                at, before = found.place, list(needed[: found.place])
                assert found.needed == needed[at] and found.able == len(able[at])
                assert enough([*before, found.there], able[: at + 1]), (needed, able)
                assert not enough([*before, found.there + 1], able[: at + 1]), (needed, able)


@dataclass(frozen=True)
class Somebody:
    """What is set about a person: their groups, their limit in dollars, their team, and whether they are active."""

    groups: tuple[str, ...]
    limit: int | None
    team: str
    active: bool

    def become(self, user: User) -> None:
        user.groups.set(Group.objects.filter(name__in=self.groups))
        User.objects.filter(pk=user.pk).update(is_active=self.active)
        limits = {} if self.limit is None else {"USD": self.limit}
        Remit.objects.update_or_create(user=user, defaults={"limits": limits, "team": self.team})


@dataclass(frozen=True)
class Wanted:
    """A request: whom it asks, who has a part in it, and who answered before things changed."""

    chain: tuple[StageNeed, ...]
    in_order: bool
    minor: int
    initiator: int | None
    proposer: int | None
    added: int | None
    escalated: bool
    clicks: tuple[tuple[int, str], ...]


somebody = st.builds(
    Somebody,
    groups=st.sampled_from([(), *(((one,)) for one in GROUPS), GROUPS, GROUPS]),
    limit=st.sampled_from([None, LOW - 1, LOW, HIGH]),
    team=st.sampled_from(["", "emea"]),
    active=st.sampled_from([True] * 4 + [False]),
)
person = st.integers(0, PEOPLE - 1)
need = st.builds(
    StageNeed,
    name=st.just("Stage"),
    groups=st.sampled_from([("finance",), ("legal",), GROUPS]),
    quorum=st.integers(1, 3),
    reject_at=st.just(2),
    person=st.builds(Person, within_limit=st.booleans(), team=st.sampled_from(["", "", "emea"])),
)
wanted = st.builds(
    Wanted,
    chain=st.lists(need, min_size=1, max_size=3).map(tuple),
    in_order=st.booleans(),
    minor=st.sampled_from([LOW, HIGH, HIGH + 1]),
    initiator=st.none() | person,
    proposer=st.none() | st.none() | person,
    added=st.none() | person,
    escalated=st.booleans(),
    clicks=st.lists(st.tuples(person, st.sampled_from(["approve"] * 3 + ["reject"])), max_size=4).map(tuple),
)
away = st.lists(st.tuples(person, person).filter(lambda pair: pair[0] != pair[1]), max_size=3)


@pytest.fixture
def crowd(db: str) -> list[User]:
    for name in GROUPS:
        world.voters(name)
    world.user("boss")  # the published rule asks managers, so there is one
    world.policy()
    return [world.user(f"q{number}", group="") for number in range(PEOPLE)]


def ask(one: Wanted, crowd: list[User]) -> world.Asked:
    """Open it, and let those answer who are to answer first."""
    more: dict[str, Any] = {
        name: principals.of_user(user=crowd[number])
        for name, number in (("initiator", one.initiator), ("proposer", one.proposer))
        if number is not None
    }
    if one.escalated:
        more["escalations"] = (Escalation(after=DAY / 24, group="legal"),)
    quorum = sum(stage.quorum for stage in one.chain)
    asked = world.ask(
        version=PolicyVersion.objects.get(),
        stages=one.chain,
        in_order=one.in_order,
        quorum=quorum,
        minor=one.minor,
        **more,
    )
    if one.added is not None:
        Stage.objects.create(
            request=asked.request, position=len(one.chain) + 1, name="Added", person=crowd[one.added], quorum=1,
            added_by=principals.system(), added_why="knows it", opened_at=asked.request.created_at,
        )  # fmt: skip
    if one.escalated:
        with transaction.atomic(durable=True):
            request = requests.lock_with_run(request_id=asked.request.pk)
            stages.escalate_now(request=request, run=request.run, now=clock.now())
    for number, choice in one.clicks:
        world.cast(asked, crowd[number], choice)
    return asked


def stand_in(crowd: list[User], pairs: list[tuple[int, int]]) -> None:
    now, system = clock.read(), principals.system()
    Absence.objects.filter(ended_at=None).update(ended_at=now, ended_by=system)
    for one, other in pairs:
        Absence.objects.create(
            person=crowd[one], stand_in=crowd[other], begins=now - DAY, ends=now + DAY, made_by=system, made_at=now
        )


def approved(asked: world.Asked, order: Sequence[User]) -> bool:
    """Whether the votes bring it to a yes, where everybody says yes once more after each that counted."""
    left = list(order)
    while left and asked.fresh().state == RequestState.OPEN:
        counted = next((who for who in left if world.cast(asked, who).accepted), None)
        left = [who for who in left if who != counted] if counted else []
    return asked.fresh().state == RequestState.APPROVED


def counts_anew(request: ApprovalRequest, chain: Sequence[Stage], votes: Sequence[Vote]) -> bool:
    """Whether a stage has its people and is not met, or is met and has lost them."""
    seated = seating.of_voters(request=request, stages=chain, votes=votes)
    opened = [stage for stage in chain if stage.opened_at is not None]
    return any((seated.yes(stage) >= stage.quorum) != (stage.met_at is not None) for stage in opened)


@given(
    before=st.tuples(*[somebody] * PEOPLE),
    after=st.tuples(*[st.none() | st.none() | somebody] * PEOPLE),
    asks=st.lists(wanted, min_size=2, max_size=4),
    away=away,
    order=st.permutations(range(PEOPLE)),
)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_what_the_look_finds_is_what_no_votes_can_bring_to_a_yes(
    crowd: list[User],
    before: tuple[Somebody, ...],
    after: tuple[Somebody | None, ...],
    asks: list[Wanted],
    away: list[tuple[int, int]],
    order: list[int],
) -> None:
    """Whoever is asked by which stages, has a part, has answered and stands in for whom, before and after people come
    and go."""
    for user, one in zip(crowd, before, strict=True):
        one.become(user)
    stand_in(crowd, away)
    every = [ask(one, crowd) for one in asks]
    for user, changed in zip(crowd, after, strict=True):
        if changed is not None:
            changed.become(user)
    opened = [one for one in every if one.fresh().state == RequestState.OPEN]
    seen = staffing.look(requests={one.request.pk: one.run.pk for one in opened})
    found = seen.short
    for one in opened:
        request = one.fresh()
        chain, votes = seating.stages_of(request=request), seating.votes_of(request=request)
        short = staffing.missing(request=request, stages=chain, votes=votes)
        assert (one.request.pk in found) == (short is not None)
        assert (one.request.pk in seen.moved) == counts_anew(request, chain, votes)
        assert (one.request.pk in found) != approved(one, [crowd[number] for number in order])
