"""Several stages: each has its own distinct people before there is a yes, whatever the order of clicks."""

import datetime as dt
import json
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from approvals import queries, seating, voters
from approvals.models import Absence, Decision, PolicyVersion, Remit, Stage, Vote
from approvals.models.request import RequestState
from approvals.requirement import Person, StageNeed
from approvals.services import deciding
from approvals.words import sentence
from runs import clock, record
from runs.services import principals
from tests.approvals import world

pytestmark = pytest.mark.usefixtures("db")
FINANCE = StageNeed(name="Finance", groups=("finance",), quorum=1)
LEGAL = StageNeed(name="Legal", groups=("legal",), quorum=1)


def published() -> PolicyVersion:
    world.user("boss")  # the published rule asks managers, so there is one
    return world.policy()


def ask(*stages: StageNeed, in_order: bool = True, version: PolicyVersion | None = None, **kw: Any) -> world.Asked:
    quorum = sum(stage.quorum for stage in stages)
    return world.ask(
        version=version or PolicyVersion.objects.first() or published(),
        quorum=quorum,
        stages=stages,
        in_order=in_order,
        **kw,
    )


def of(group: str, *names: str) -> list[User]:
    return [world.user(name, group=group) for name in names]


def both(user: User, *groups: str) -> User:
    for group in groups:
        user.groups.add(world.voters(group))
    return user


def test_the_second_stage_is_asked_when_the_first_has_its_people() -> None:
    (anna,), (carla,) = of("finance", "anna"), of("legal", "carla")
    asked = ask(FINANCE, LEGAL)
    assert [queries.waiting_count(user=user) for user in (anna, carla)] == [1, 0]
    early = world.cast(asked, carla)
    assert early.code == "not_yet"
    assert sentence(code="not_yet", detail=early.detail).startswith("Legal is asked later: Finance answers first.")
    assert world.cast(asked, anna).code == "voted"
    assert [queries.waiting_count(user=user) for user in (anna, carla)] == [0, 1]
    done = world.cast(asked, carla)
    assert (done.code, done.detail["votes_for"], done.detail["quorum"]) == ("approved", 2, 2)
    assert asked.events("request.vote", "request.stage_opened", "request.approved") == [
        "request.vote",
        "request.stage_opened",
        "request.approved",
    ]
    assert record.verify(stream=f"run:{asked.run.pk}") is None


def test_one_person_counts_in_one_stage_only() -> None:
    anna = both(world.user("anna", group="finance"), "legal")
    (carla,) = of("legal", "carla")
    asked = ask(FINANCE, LEGAL)
    assert world.cast(asked, anna).code == "voted"
    again = world.cast(asked, anna, comment="Legal too")
    assert again.code == "already_voted" and Vote.objects.count() == 1
    assert world.cast(asked, carla).code == "approved"


def test_all_at_once_takes_the_stage_that_fewer_others_can_answer() -> None:
    """Anna could answer for both; Legal has nobody but her, so her yes goes there."""
    anna = both(world.user("anna", group="finance"), "legal")
    (bert,) = of("finance", "bert")
    asked = ask(FINANCE, LEGAL, in_order=False)
    assert world.cast(asked, anna).code == "voted"
    assert Vote.objects.get().stage.name == "Legal"
    assert world.cast(asked, bert).code == "approved"


def test_a_no_below_the_threshold_leaves_it_to_the_others_and_at_it_ends_it() -> None:
    anna, bert, carla = of("finance", "anna", "bert", "carla")
    two = StageNeed(name="Finance", groups=("finance",), quorum=1, reject_at=2)
    asked = ask(two)
    first = world.cast(asked, anna, "reject", comment="Not for me")
    assert (first.code, first.decision, asked.fresh().state) == ("voted_no", None, RequestState.OPEN)
    assert world.cast(asked, anna, "reject", comment="Not for me").repeated
    assert world.cast(asked, bert).code == "approved"
    other = ask(two)
    world.cast(other, anna, "reject", comment="Not for me")
    assert world.cast(other, carla, "reject", comment="Nor me").code == "rejected"


def test_whoever_loses_the_right_takes_their_stage_back() -> None:
    anna, bert = of("finance", "anna", "bert")
    (carla,) = of("legal", "carla")
    asked = ask(FINANCE, LEGAL)
    world.cast(asked, anna)
    anna.groups.clear()
    waits = world.cast(asked, carla)
    assert (waits.code, waits.detail["votes_for"]) == ("voted", 1)
    assert "request.stage_reopened" in asked.events()
    assert queries.waiting_count(user=bert) == 1
    assert world.cast(asked, bert).code == "approved"


def test_conditions_on_the_person() -> None:
    """Nothing set about a person meets nothing; a limit is one of the currency and covers the amount."""
    names = ("none", "low", "enough", "euros", "elsewhere")
    people = dict(zip(names, of("finance", *names), strict=True))
    limits = {"low": {"USD": 119_999}, "enough": {"USD": 120_000}, "euros": {"EUR": 900_000}}
    limits["elsewhere"] = {"USD": 10**9}
    for name, limit in limits.items():
        Remit.objects.create(user=people[name], team="emea" if name != "elsewhere" else "apac", limits=limit)
    need = Person(within_limit=True, team="emea")
    asked = ask(StageNeed(name="Finance", groups=("finance",), quorum=1, person=need))
    assert [name for name in names if queries.waiting_count(user=people[name])] == ["enough"]
    codes = {name: world.cast(asked, people[name]).code for name in names if name != "enough"}
    assert set(codes.values()) == {"no_right"}
    assert world.cast(asked, people["enough"]).code == "approved"


def test_what_the_inbox_finds_is_what_the_vote_takes() -> None:
    people = [world.user(f"p{number}", group=("finance", "legal", "")[number % 3]) for number in range(6)]
    Remit.objects.create(user=people[0], region="eu", limits={"USD": 500_000})
    Remit.objects.create(user=people[3], region="us", limits={"USD": 1})
    version = published()
    for person in (Person(), Person(region="eu"), Person(within_limit=True), Person(within_limit=True, region="us")):
        for groups in (("finance",), ("finance", "legal"), ("legal",)):
            asked = ask(StageNeed(name="Any", groups=groups, quorum=1, person=person), version=version)
            (stage,) = Stage.objects.filter(request=asked.request)
            for user, known in voters.known(user_ids=[one.pk for one in people]).items():
                found = Stage.objects.filter(seating.stages_for(person=known), pk=stage.pk).exists()
                assert found == seating.fits(stage=stage, person=known, proposal=asked.proposal), (user, person, groups)


def test_the_database_refuses_a_yes_without_every_stage(owner: psycopg.Connection) -> None:
    """Even for the tables' owner: decision, opening and votes are held by triggers."""
    (anna,) = of("finance", "anna")
    of("legal", "carla")
    asked = ask(FINANCE, LEGAL)
    world.cast(asked, anna)
    decide = (
        "INSERT INTO approvals_decision (id, kind, approved, proposal_id, request_id, policy_version_id, rules,"
        " binding_digest, decided_at, valid_until) SELECT gen_random_uuid(), 'people', {}, proposal_id, id,"
        " policy_version_id, rules, binding_digest, now(), valid_until FROM approvals_approvalrequest WHERE id = %s"
    )
    for approved in ("TRUE", "FALSE"):
        with pytest.raises(psycopg.errors.RestrictViolation):
            owner.execute(decide.format(approved), [asked.request.pk])
    with pytest.raises(psycopg.errors.RestrictViolation):
        owner.execute("UPDATE approvals_stage SET met_at = now() WHERE name = 'Legal'")
    fresh = ask(FINANCE, LEGAL)
    with pytest.raises(psycopg.errors.RestrictViolation):
        owner.execute("UPDATE approvals_stage SET opened_at = now() WHERE request_id = %s", [fresh.request.pk])
    with pytest.raises(psycopg.errors.RestrictViolation):
        owner.execute("UPDATE approvals_stage SET also = '[\"finance\"]' WHERE request_id = %s", [fresh.request.pk])
    assert Decision.objects.count() == 0


def test_the_database_takes_a_decision_only_of_its_own_votes(
    owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Enough are there; what it names must be those, all of its request and none that said otherwise."""
    anna, bert, dora = of("finance", "anna", "bert", "dora")
    need = StageNeed(name="Finance", groups=("finance",), quorum=2, reject_at=2)
    asked, other = ask(need), ask(need)
    with monkeypatch.context() as patch:
        patch.setattr(deciding, "all_met", lambda seating: False)
        codes = [world.cast(asked, one, choice).code for one, choice in ((anna, "approve"), (dora, "reject"))]
        codes += [world.cast(one, bert).code for one in (asked, other)]
    assert codes == ["voted", "voted_no", "voted", "voted"]
    mine = {vote.principal.label: str(vote.pk) for vote in Vote.objects.filter(request=asked.request)}
    elsewhere = str(Vote.objects.get(request=other.request).pk)

    def decides(approved: bool, *votes: str, kind: str = "people") -> None:
        owner.execute(
            "INSERT INTO approvals_decision (id, kind, approved, proposal_id, request_id, policy_version_id, rules,"
            " votes, binding_digest, decided_at, valid_until) SELECT gen_random_uuid(), %s, %s, proposal_id, id,"
            " policy_version_id, rules, %s, binding_digest, now(), valid_until FROM approvals_approvalrequest"
            " WHERE id = %s",
            [kind, approved, json.dumps(votes), asked.request.pk],
        )

    pair = mine["Anna"], mine["Bert"]
    wrong = ((), pair[:1], (pair[0], pair[0]), (pair[0], elsewhere), (*pair, elsewhere), (*pair, mine["Dora"]))
    for votes in wrong:
        with pytest.raises(psycopg.errors.RestrictViolation):
            decides(True, *votes)
    for votes in ((mine["Dora"],), pair):
        with pytest.raises(psycopg.errors.RestrictViolation):
            decides(False, *votes)
    with pytest.raises(psycopg.errors.RestrictViolation):
        decides(True, *pair, kind="policy")
    decides(True, *pair)
    assert Decision.objects.get().votes == list(pair)


def test_the_last_votes_of_two_stages_at_once() -> None:
    """Both by the last person of their stage: one decision, by whoever came second."""
    (anna,), (carla,) = of("finance", "anna"), of("legal", "carla")
    version = published()
    for _ in range(15):
        asked = ask(FINANCE, LEGAL, in_order=False, version=version)
        results = world.at_once(
            lambda asked=asked: world.cast(asked, anna), lambda asked=asked: world.cast(asked, carla)
        )  # fmt: skip
        assert sorted(result.code for result in results) == ["approved", "voted"]
        assert Decision.objects.filter(request=asked.request).count() == 1
        assert asked.events("request.vote", "request.approved") == ["request.vote", "request.approved"]


@pytest.fixture
def crowd(db: str) -> list[User]:
    """Six people in one, two or no group."""
    people = [world.user(f"q{number}", group="") for number in range(6)]
    for number, groups in enumerate((("finance",), ("legal",), ("finance", "legal"), ("finance",), ("legal",), ())):
        both(people[number], *groups)
    return people


@given(
    quorums=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    reject_at=st.integers(1, 2),
    in_order=st.booleans(),
    away=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda pair: pair[0] != pair[1]), max_size=3),
    clicks=st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["approve"] * 3 + ["reject"])), max_size=9),
)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_yes_without_every_quorum_of_distinct_entitled_people(
    crowd: list[User],
    quorums: tuple[int, int],
    reject_at: int,
    in_order: bool,
    away: list[tuple[int, int]],
    clicks: list[tuple[int, str]],
) -> None:
    """Whoever clicks what in which order, and whoever stands in for whom meanwhile."""
    version = PolicyVersion.objects.first() or published()
    groups = ("finance", "legal")
    stages = [
        StageNeed(name=group, groups=(group,), quorum=quorum, reject_at=reject_at)
        for group, quorum in zip(groups, quorums, strict=True)
    ]
    asked = ask(*stages, in_order=in_order, version=version)
    now, system = clock.read(), principals.system()
    Absence.objects.filter(ended_at=None).update(ended_at=now, ended_by=system)
    day = dt.timedelta(days=1)
    for person, stand_in in away:
        Absence.objects.create(
            person=crowd[person],
            stand_in=crowd[stand_in],
            begins=now - day,
            ends=now + day,
            made_by=system,
            made_at=now,
        )
    for who, choice in clicks:
        assert world.cast(asked, crowd[who], choice).code != "approved" or choice == "approve"
    votes = list(Vote.objects.filter(request=asked.request).select_related("stage", "principal", "instead_of"))
    concerned = [user_id for vote in votes for user_id in {vote.principal.user_id, vote.counts_for}]
    assert len(set(concerned)) == len(concerned)  # nobody twice, as themselves or as anybody's stand-in
    by_id = {user.pk: number for number, user in enumerate(crowd)}
    for vote in votes:
        assert vote.counts_for is not None
        assert User.objects.filter(pk=vote.counts_for, groups__name=vote.stage.name).exists()
        if vote.instead_of is not None:
            assert (by_id[vote.counts_for], by_id[vote.principal.user_id or 0]) in away
    yes = [sum(vote.stage.name == group and vote.choice == "approve" for vote in votes) for group in groups]
    no = [sum(vote.stage.name == group and vote.choice == "reject" for vote in votes) for group in groups]
    state = asked.fresh().state
    if all(count >= quorum for count, quorum in zip(yes, quorums, strict=True)):
        assert state == RequestState.APPROVED
    else:
        assert state == (RequestState.REJECTED if max(no) >= reject_at else RequestState.OPEN)
    assert all(count <= quorum for count, quorum in zip(yes, quorums, strict=True))
    assert max(no) <= reject_at
    if in_order and yes[0] < quorums[0]:
        assert yes[1] == no[1] == 0


def test_a_late_click_asks_nobody_again_for_what_is_decided() -> None:
    anna, bert = of("finance", "anna", "bert")
    asked = ask(FINANCE)
    assert world.cast(asked, anna).code == "approved"
    anna.groups.clear()
    assert world.cast(asked, bert).code == "decided"
    assert Stage.objects.get().met_at is not None and "request.stage_reopened" not in asked.events()


def test_whom_a_later_stage_cannot_do_without_leaves_an_earlier_one_to_others() -> None:
    """Legal has Anna alone: her yes for Finance would leave nobody, so it is not taken while Bert could give it."""
    anna = both(world.user("anna", group="finance"), "legal")
    (bert,) = of("finance", "bert")
    asked = ask(FINANCE, LEGAL)
    refused = world.cast(asked, anna)
    assert (refused.code, refused.detail) == ("needed_elsewhere", {"stage": "Legal"})
    assert world.cast(asked, bert).code == "voted"
    assert world.cast(asked, anna).code == "approved"
    other = ask(FINANCE, LEGAL)
    assert world.cast(other, anna, "reject").code == "rejected"
