"""Standing approvals: who may give them, what covers an action, what never does, and what the database itself holds."""

import copy
import datetime as dt
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import IntegrityError, transaction
from django.db.utils import InternalError
from hypothesis import given
from hypothesis import strategies as st

from approvals import standing
from approvals.evaluation import Verdict, evaluate
from approvals.models import Decision, StandingApproval
from approvals.models.standing import Period, StandingState
from approvals.requirement import Person, Requirement, StageNeed
from approvals.rules import validate
from approvals.services import standing as acts
from approvals.services import standing_use
from approvals.standing_words import consequences, sentence
from runs import clock, record
from runs.models import Event, Principal, Run
from runs.money import Money
from runs.services import principals
from tests import published
from tests.approvals import world
from tests.approvals.world import TOOL, at_once

DAY = dt.timedelta(days=1)
FACTS = {"account": "ACC-1", "ticket": "CS-1", "incident": "INC-1", "reason": "sla_breach"}


def document(**more: Any) -> dict[str, Any]:
    made = copy.deepcopy(world.document())
    made["rules"][0]["ask"]["standing"] = True
    made["standing"] = {
        "group": "manager", "most": {"USD": "500000"}, "alone_up_to": {"USD": "200000"}, "longest_days": 92,
    } | more  # fmt: skip
    return made


def publish(**more: Any) -> Any:
    if not User.objects.filter(username="sofia").exists():
        world.user("sofia")  # somebody there is to ask
    return published.publish(
        slug="service-credits", name="Service credits", tools=[TOOL], document=document(**more), note="terms"
    )


def terms(**more: Any) -> acts.Terms:
    now = clock.now()
    given_ = {
        "tool": TOOL, "only": {"account": "ACC-1"}, "each": Money(150_000, "USD"), "total": Money(400_000, "USD"),
        "count": 3, "period": Period.WHOLE, "starts_at": now - DAY, "ends_at": now + 30 * DAY, "reason": "agreed",
    }  # fmt: skip
    return acts.Terms(**(given_ | more))


def person(name: str, group: str = "manager") -> tuple[User, Principal]:
    user = world.user(name, group=group)
    return user, principals.of_user(user=user)


def asked(principal: Principal, **more: Any) -> StandingApproval:
    result = acts.ask(terms=terms(**more), principal=principal)
    assert result.standing is not None, result
    return result.standing


def granted(author: Principal, second: Principal, **more: Any) -> StandingApproval:
    one = asked(author, **more)
    done = acts.grant(standing_id=one.pk, principal=second, seen=acts.seen_digest(standing=one))
    assert done.ok, done
    return StandingApproval.objects.select_related("asked_by", "granted_by").get(pk=one.pk)


def verdict(*, quorum: int = 1, most: int | None = 500_000, group: str = "manager", **more: Any) -> Verdict:
    need = Requirement(
        group=group,
        quorum=quorum,
        respond_within=dt.timedelta(hours=1),
        valid_for=dt.timedelta(hours=1),
        standing=None if most is None else {"USD": most},
        **more,
    )
    return Verdict(effect="ask", rules=[{"id": "ask", "text": "x"}], need=need)


def covers(run: Run, *, minor: int = 120_000, known: dict[str, Any] | None = None, **of: Any) -> Any:
    proposal = world.propose(of=run, rests_on=[], minor=minor)
    return standing.find(run=run, proposal=proposal, verdict=verdict(**of), variables=FACTS if known is None else known)


def test_two_people_or_one_within_the_policys_bounds(db: str) -> None:
    publish()
    (_, maya), (_, jonas) = person("maya"), person("jonas")
    wide = asked(maya)
    seen = acts.seen_digest(standing=wide)
    assert not wide.one_is_enough
    assert acts.grant(standing_id=wide.pk, principal=maya, seen=seen).code == "own"
    assert acts.grant(standing_id=wide.pk, principal=jonas, seen="0" * 64).code == "page_differs"
    assert acts.decline(standing_id=wide.pk, principal=maya, reason="x").code == "own_decline"
    assert acts.withdraw(standing_id=wide.pk, principal=jonas, reason="x").code == "not_yours"
    assert acts.revoke(standing_id=wide.pk, principal=jonas, reason="x").code == "closed"
    done = acts.grant(standing_id=wide.pk, principal=jonas, seen=seen)
    assert done.ok and done.standing is not None and done.standing.by == "Maya and Jonas"
    assert acts.grant(standing_id=wide.pk, principal=jonas, seen=seen).code == "closed"

    small = asked(maya, total=Money(200_000, "USD"))
    assert small.one_is_enough
    assert acts.grant(standing_id=small.pk, principal=maya, seen=acts.seen_digest(standing=small)).ok
    kinds = Event.objects.filter(stream="system:standing").order_by("seq").values_list("kind", flat=True)
    assert list(kinds).count("standing.refused") == 6 and list(kinds)[-1] == "standing.in_force"
    assert record.verify(stream="system:standing") is None


def test_a_policy_published_meanwhile_counts_when_it_is_put_in_force(db: str) -> None:
    publish()
    (_, maya), (_, jonas) = person("maya"), person("jonas")
    one, small = asked(maya), asked(maya, total=Money(200_000, "USD"))
    publish(most={"USD": "300000"}, alone_up_to={"USD": "100000"})
    assert acts.grant(standing_id=one.pk, principal=jonas, seen=acts.seen_digest(standing=one)).code == "over"
    assert acts.grant(standing_id=small.pk, principal=maya, seen=acts.seen_digest(standing=small)).code == "own"


def test_what_is_never_approved_beforehand(db: str) -> None:
    publish()
    _, maya = person("maya")
    for field, more in (
        ("account", {"only": {}}),
        ("account", {"only": {"reason": "sla_breach"}}),
        ("account", {"only": {"account": "ACC-1", "currency": "USD"}}),
        ("ticket", {"only": {"account": "ACC-1", "ticket": ""}}),
        ("total", {"total": Money(500_001, "USD")}),
        ("currency", {"each": Money(1000, "EUR"), "total": Money(2000, "EUR")}),
        ("each", {"each": Money(400_001, "USD")}),
        ("count", {"count": 0}),
        ("reason", {"reason": "  "}),
    ):
        result = acts.ask(terms=terms(**more), principal=maya)
        assert result.code == "invalid" and result.faults[field].endswith("."), (field, result)
    assert not StandingApproval.objects.exists()


def test_dates_are_bounded(db: str) -> None:
    publish()
    _, maya = person("maya")
    now = clock.now()
    for more in ({"ends_at": now - DAY}, {"starts_at": now + 9 * DAY, "ends_at": now + 8 * DAY},
                 {"ends_at": now + 120 * DAY}):  # fmt: skip
        assert set(acts.ask(terms=terms(**more), principal=maya).faults) == {"ends"}


def test_only_people_of_the_group_and_only_where_the_policy_opens_it(db: str) -> None:
    (_, maya), (_, vera) = person("maya"), person("vera", "looks")
    world.policy()
    assert acts.ask(terms=terms(), principal=maya).code == "not_opened"
    publish()
    assert acts.ask(terms=terms(), principal=vera).code == "no_right"
    for kind in (Principal.Kind.AGENT, Principal.Kind.INTEGRATION, Principal.Kind.SERVICE):
        assert acts.ask(terms=terms(), principal=world.machine(kind, f"{kind}:x")).code == "no_right"
    one = asked(maya)
    for who in (vera, world.machine(Principal.Kind.AGENT, "agent:x"), principals.system()):
        assert acts.grant(standing_id=one.pk, principal=who, seen=acts.seen_digest(standing=one)).code == "no_right"


def test_what_covers_an_action(db: str) -> None:
    publish()
    (_, maya), (jonas_user, jonas) = person("maya"), person("jonas")
    one = granted(maya, jonas, only={"account": "ACC-1", "incident": "INC-1"})
    run = world.run()
    assert covers(run).pk == one.pk and covers(run, minor=150_000).pk == one.pk
    assert covers(run, minor=150_001) is None
    assert covers(run, most=None) is None and covers(run, most=399_999) is None
    assert covers(run, group="finance") is None
    assert covers(run, quorum=2).pk == one.pk and covers(run, quorum=3) is None
    for absent in ({}, {"account": "ACC-1"}, FACTS | {"incident": None}, FACTS | {"incident": ""},
                   FACTS | {"account": "ACC-2"}, FACTS | {"account": True}, FACTS | {"account": "acc-1"}):  # fmt: skip
        assert covers(run, known=absent) is None, absent
    assert covers(world.run(initiator=maya)) is None, "never for one's own request"
    other = world.run()
    world.propose(of=other, rests_on=[], by=jonas)
    assert covers(other) is None, "never for what one proposed"
    jonas_user.groups.clear()
    assert covers(run) is None
    jonas_user.groups.add(Group.objects.get(name="manager"))
    assert covers(run).pk == one.pk
    assert acts.revoke(standing_id=one.pk, principal=maya, reason="over").ok
    assert covers(run) is None


def test_stages_and_people_of_a_certain_kind_are_asked_when_it_is_time(db: str) -> None:
    publish()
    (_, maya), (_, jonas) = person("maya"), person("jonas")
    one, run = granted(maya, jonas), world.run()
    plain = StageNeed(name="Managers", groups=("manager",), quorum=1)
    assert covers(run, stages=(plain,)).pk == one.pk
    for stages in (
        (plain, StageNeed(name="Finance", groups=("finance",), quorum=1)),
        (plain, StageNeed(name="Managers again", groups=("manager",), quorum=1)),
        (StageNeed(name="Either", groups=("manager", "finance"), quorum=1),),
        (StageNeed(name="Within", groups=("manager",), quorum=1, person=Person(within_limit=True)),),
    ):
        proposal = world.propose(of=run, rests_on=[])
        said = {"run": run, "proposal": proposal, "verdict": verdict(stages=stages), "variables": FACTS}
        assert standing.find(**said) is None
        assert standing.unfit(standing=one, **said).endswith("are asked, which nobody answers beforehand")


def test_before_and_after_its_days_it_covers_nothing(db: str) -> None:
    publish()
    (_, maya), (_, jonas) = person("maya"), person("jonas")
    now = clock.now()
    granted(maya, jonas, starts_at=now + DAY)
    run = world.run()
    assert covers(run) is None
    soon = granted(maya, jonas, ends_at=now + dt.timedelta(seconds=2))
    proposal = world.propose(of=run, rests_on=[])
    assert soon.state == "in_force"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "now", lambda: now + dt.timedelta(seconds=3))
        why = standing.unfit(standing=soon, run=run, proposal=proposal, verdict=verdict(), variables=FACTS)
    assert why == f"the standing approval {soon.short} by Maya and Jonas is over"


values = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8), st.just("ACC-1"), st.just("INC-1"))


@given(known=st.dictionaries(st.sampled_from(["account", "incident", "ticket", "reason"]), values))
def test_an_absent_value_never_matches(known: dict[str, Any]) -> None:
    now = dt.datetime(2026, 11, 29, tzinfo=dt.UTC)
    one = StandingApproval(
        state="in_force", tool=TOOL, group="manager", only={"account": "ACC-1", "incident": "INC-1"}, currency="USD",
        each_minor=10, total_minor=10, count=1, period="whole", starts_at=now - DAY, ends_at=now + DAY,
    )  # fmt: skip
    proposal = world.Proposal(tool=TOOL, currency="USD", amount_minor=5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "now", lambda: now)
        patch.setattr(standing, "_people", lambda *_: "")
        patch.setattr(StandingApproval, "by", "somebody")
        why = standing.unfit(standing=one, run=Run(), proposal=proposal, verdict=verdict(), variables=known)
    assert (why == "") is (known.get("account") == "ACC-1" and known.get("incident") == "INC-1")


def test_periods_are_those_of_utc(db: str) -> None:
    east = dt.timezone(dt.timedelta(hours=14))
    at = dt.datetime(2027, 1, 1, 9, tzinfo=east)  # 2026-12-31 19:00 UTC
    found = {period: standing.period_of(standing=StandingApproval(period=period), at=at) for period in Period.values}
    assert found == {"whole": "", "day": "2026-12-31", "week": "2026-W53", "month": "2026-12"}


def test_the_database_refuses_what_must_never_be(db: str) -> None:
    version = publish()
    (_, maya), (_, jonas) = person("maya"), person("jonas")
    one = asked(maya)
    for change in ({"state": "in_force"}, {"state": "in_force", "granted_by": maya, "granted_at": clock.now()}):
        with pytest.raises(IntegrityError), transaction.atomic():
            StandingApproval.objects.filter(pk=one.pk).update(**change)
    proposal = world.propose(of=world.run(), rests_on=[])

    def decide(**more: Any) -> Decision:
        now = clock.now()
        given_ = {
            "kind": "standing", "approved": True, "proposal": proposal, "standing": one, "policy_version": version,
            "rules": [], "binding_digest": "0" * 64, "decided_at": now, "valid_until": now + DAY,
        }  # fmt: skip
        with transaction.atomic():
            return Decision.objects.create(**(given_ | more))

    with pytest.raises(IntegrityError):  # not in force
        decide()
    assert acts.grant(standing_id=one.pk, principal=jonas, seen=acts.seen_digest(standing=one)).ok
    big = world.propose(of=world.run(), rests_on=[], minor=150_001)
    for more in ({"proposal": big}, {"standing": None}, {"kind": "policy"}, {"approved": False},
                 {"valid_until": one.ends_at + DAY}, {"decided_at": one.starts_at - DAY}):  # fmt: skip
        with pytest.raises((IntegrityError, InternalError)):
            decide(**more)
    assert decide().standing_id == one.pk
    acts.revoke(standing_id=one.pk, principal=maya, reason="x")
    with pytest.raises(IntegrityError):
        decide(proposal=world.propose(of=world.run(), rests_on=[]))
    with pytest.raises(IntegrityError), transaction.atomic():
        StandingApproval.objects.filter(pk=one.pk).update(state=StandingState.IN_FORCE, ended_by=None, ended_at=None)


def test_revoked_by_one_and_granted_by_another_at_once(db: str) -> None:
    publish()
    (_, maya), (_, jonas), (_, ines) = person("maya"), person("jonas"), person("ines")
    for _ in range(8):
        one = asked(maya)
        seen = acts.seen_digest(standing=one)
        codes = [
            result.code
            for result in at_once(
                lambda one=one, seen=seen: acts.grant(standing_id=one.pk, principal=jonas, seen=seen),
                lambda one=one, seen=seen: acts.grant(standing_id=one.pk, principal=ines, seen=seen),
                lambda one=one: acts.withdraw(standing_id=one.pk, principal=maya, reason="x"),
            )
        ]
        assert codes.count("ok") == 1 and codes.count("closed") == 2, codes


def test_a_sender_holds_it_until_its_transaction_ends(db: str) -> None:
    publish()
    (_, maya), (_, jonas) = person("maya"), person("jonas")
    one = granted(maya, jonas)
    seen: list[str] = []

    def send() -> None:
        with transaction.atomic():
            seen.append(standing_use.hold(standing_id=one.pk).state)
            assert world.somebody_waits()
            seen.append(standing_use.hold(standing_id=one.pk).state)

    def revoke() -> Any:
        while not seen:
            pass
        return acts.revoke(standing_id=one.pk, principal=maya, reason="x").code

    assert at_once(send, revoke) == [None, "ok"]
    assert seen == ["in_force", "in_force"] and standing_use_state(one) == "revoked"


def standing_use_state(one: StandingApproval) -> str:
    return str(StandingApproval.objects.get(pk=one.pk).state)


def test_words(db: str) -> None:
    publish()
    (_, maya), (_, jonas) = person("maya"), person("jonas")
    said = " ".join(consequences(standing=granted(maya, jonas, period=Period.MONTH)))
    assert "Where the account is ACC-1, billing.create_credit is carried out without asking anybody" in said
    assert "Up to $1,500.00 USD each; together $4,000.00 USD and 3 actions a month." in said
    assert sentence(code="closed", detail={"state": "revoked"}).startswith(
        "This has been answered meanwhile: it is rev"
    )
    assert "nothing_known" in sentence(code="nothing_known")


def test_the_document_says_what_is_wrong_with_its_terms() -> None:
    assert validate(document=document()) == []
    for more, where in (
        ({"group": "finance"}, "ask"),
        ({"alone_up_to": {"USD": "500001"}}, "standing"),
        ({"alone_up_to": {"EUR": "1"}}, "standing"),
    ):
        assert [one.where for one in validate(document=document(**more))] == [where]
    closed = document()
    del closed["standing"]
    assert [one.field for one in validate(document=closed)] == ["ask.standing"]
    unused = document()
    del unused["rules"][0]["ask"]["standing"]
    assert [(one.where, one.field) for one in validate(document=unused)] == [("standing", "group")]


def test_only_one_stage_of_its_group_is_answered_beforehand() -> None:
    def staged(*stages: dict[str, Any]) -> dict[str, Any]:
        made = document()
        ask = made["rules"][0]["ask"]
        del ask["group"], ask["quorum"]
        ask |= {"stages": list(stages)} | ({"order": "sequential"} if len(stages) > 1 else {})
        return made

    one = {"name": "Managers", "groups": ["manager"], "quorum": 1}
    assert validate(document=staged(one)) == []
    need = evaluate(document=staged(one), variables={}).need
    assert need is not None and need.standing == {"USD": 500_000}
    for stages in (
        [one, {"name": "Finance", "groups": ["finance"], "quorum": 1}],
        [one | {"groups": ["finance", "manager"]}],
        [one | {"person": {"within_limit": True}}],
    ):
        assert [found.field for found in validate(document=staged(*stages))] == ["ask.standing"]
        need = evaluate(document=staged(*stages), variables={}).need
        assert need is not None and need.standing is None
