"""A big amount in small pieces: sums are judged with all that happened, may still happen, or is only proposed."""

import datetime as dt
import itertools
from typing import Any

import pytest
from django.db import transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from agentops import policy_trial
from approvals import policy_text
from approvals.advice import advise
from approvals.evaluation import Verdict, WindowNeed, evaluate
from approvals.forms import Typed, from_document
from approvals.models import PolicyVersion, Tally
from approvals.rule_diff import changes
from approvals.rules import validate
from approvals.services import tallying
from reconciliation import windows
from reconciliation.models import Operation
from runs import transitions
from runs.models import Proposal, Run
from runs.models.run import RunState
from runs.services import principals
from tests import published
from tests.approvals import world
from tests.approvals.world import TOOL, at_once

LIMIT = 100_000
HOURS = 24
NOW = dt.datetime(2026, 11, 29, 12, tzinfo=dt.UTC)
ASK = {"group": "manager", "quorum": 1, "respond_within_minutes": 240, "valid_for_minutes": 60}


def document(by: str = "account", **window: Any) -> dict[str, Any]:
    sums = {"by": by, "hours": HOURS, "above": {"USD": str(LIMIT)}} | window
    return {
        "rules": [
            {"id": "small", "effect": "allow", "text": "Small ones are automatic", "when": "currency == 'USD'"},
            {"id": "sums", "effect": "ask", "text": "Sums above $1,000 are asked", "when": "currency == 'USD'",
             "ask": ASK, "window": sums},
        ]
    }  # fmt: skip


def known(account: str = "ACC-1", minor: int = 60_000) -> dict[str, Any]:
    return {"account": account, "currency": "USD", "amount_minor": minor, "agent": "agent:x"}


def judged(of: Run, version: PolicyVersion, *, minor: int, account: str = "ACC-1") -> tuple[Proposal, Verdict]:
    """As a run is authorised: counted first, then judged, in one transaction."""
    with transaction.atomic(durable=True):
        Run.objects.select_for_update(of=("self",)).get(pk=of.pk)
        proposal = world.propose(of=of, rests_on=[], minor=minor)
        told = known(account, minor)
        tallying.tally(proposal=proposal, version=version, variables=told)
        found = evaluate(document=version.rules, variables=told, counted=windows.counted(proposal=proposal))
    return proposal, found


@pytest.fixture
def version(db: str) -> PolicyVersion:
    world.user("sofia")
    return published.publish(
        slug="service-credits", name="Service credits", tools=[TOOL], document=document(), note="sums"
    )


def end(run: Run, to: RunState = RunState.CANCELLED) -> None:
    with transaction.atomic(durable=True):
        locked = Run.objects.select_for_update(of=("self",)).get(pk=run.pk)
        transitions.move(run=locked, to=to, actor=principals.system(), outcome="over")


def test_small_ones_add_up_to_a_big_one(version: PolicyVersion) -> None:
    first, second, third = world.run(), world.run(), world.run()
    one, verdict = judged(first, version, minor=60_000)
    assert verdict.effect == "allow" and not verdict.windows[0].matches
    _, verdict = judged(second, version, minor=60_000)
    (counted,) = verdict.windows
    assert verdict.effect == "ask" and counted.total_minor == 120_000 and counted.proposals == (str(one.pk),)
    assert policy_text.together(found=counted) == "$1,200.00 USD for account ACC-1 in 1 day: this and 1 other"
    assert judged(third, version, minor=40_000, account="ACC-2")[1].effect == "allow", "another payee"
    end(second)
    assert judged(third, version, minor=40_000)[1].effect == "allow", "what is over counts no more"


def test_a_newer_proposal_of_a_run_takes_the_place_of_the_older(version: PolicyVersion) -> None:
    run = world.run()
    assert judged(run, version, minor=60_000)[1].effect == "allow"
    assert judged(run, version, minor=70_000)[1].effect == "allow", "its own older one is not added"
    (counted,) = judged(world.run(), version, minor=40_000)[1].windows
    assert counted.others_minor == 70_000


def test_judged_again_it_counts_only_what_came_before_it(version: PolicyVersion) -> None:
    proposal, _ = judged(world.run(), version, minor=60_000)
    judged(world.run(), version, minor=60_000)
    again = evaluate(document=version.rules, variables=known(), counted=windows.counted(proposal=proposal))
    assert again.effect == "allow", "so that one of two goes on, and not neither"


def test_of_many_judged_at_once_no_more_get_through_than_one_big_one(version: PolicyVersion) -> None:
    for round_ in range(4):
        runs = [world.run() for _ in range(6)]
        verdicts = at_once(
            *(lambda run=run, at=f"ACC-{round_}": judged(run, version, minor=45_000, account=at)[1] for run in runs)
        )
        assert sorted(one.effect for one in verdicts) == ["allow"] * 2 + ["ask"] * 4, verdicts


def test_without_the_sums_it_is_refused_and_absent_values_are_too() -> None:
    assert evaluate(document=document(), variables=known()).code == "window_unknown"
    for lost in ("account", "amount_minor"):
        told = known() | {lost: None}
        assert evaluate(document=document(), variables=told, counted=lambda need: (0, ())).code == "variable_missing"
    empty = evaluate(document=document(), variables=known(account=""), counted=lambda need: (0, ()))
    assert empty.code == "variable_missing"
    other = document(above={"EUR": "1"})
    assert evaluate(document=other, variables=known(), counted=lambda need: (0, ())).code == "no_window_limit"


# ---- what each state counts

counts = {"authorised": 60, "sending": 60, "unknown": 60, "accepted": 60, "succeeded": 60, "failed": 0, "abandoned": 0}


@pytest.mark.parametrize("more", [{}, {"settled_by": "person", "actual": {"actual_minor": "80", "other_minor": "5",
                                                                         "other_reference": "x"}}])  # fmt: skip
def test_what_each_state_counts(more: dict[str, Any]) -> None:
    for state, minor in counts.items():
        operation = Operation(state=state, amount_minor=60, settled_at=NOW, created_at=NOW, **more)
        proposal = Proposal(run=Run())
        proposal.operation = operation  # type: ignore[assignment]
        one = Tally(proposal=proposal, amount_minor=60)
        wanted = 85 if more and minor else minor
        assert windows._counts(one, None) == wanted, state


steps = st.tuples(
    st.integers(min_value=1, max_value=130_000),  # how much
    st.integers(min_value=0, max_value=30),  # how many hours after the one before
    st.sampled_from(["done", "unknown", "failed", "waits", "rejected"]),
)


@settings(max_examples=200)
@given(asked=st.lists(steps, max_size=12))
def test_no_split_gets_more_through_without_asking_than_one_big_one(asked: list[tuple[int, int, str]]) -> None:
    """Over any history, what went through without asking within a window is no more than what one big one may be."""
    history: list[tuple[dt.datetime, int, str, bool]] = []
    at = NOW
    for minor, hours, ends in asked:
        at += dt.timedelta(hours=hours)

        def counted(need: WindowNeed, at: dt.datetime = at) -> tuple[int, tuple[str, ...]]:
            since = at - dt.timedelta(hours=need.hours)
            return sum(
                amount for when, amount, state, _ in history if when >= since and state not in ("failed", "rejected")
            ), ()

        verdict = evaluate(document=document(), variables=known(minor=minor), counted=counted)
        assert (verdict.effect == "ask") is (counted(verdict.windows[0].need)[0] + minor > LIMIT)
        free = verdict.effect == "allow"
        history.append((at, minor, "unknown" if free and ends == "rejected" else ends, free))
    for first, last in itertools.combinations_with_replacement(range(len(history)), 2):
        if history[last][0] - history[first][0] <= dt.timedelta(hours=HOURS):
            through = [one for one in history[first : last + 1] if one[3] and one[2] != "failed"]
            assert sum(one[1] for one in through) <= LIMIT


def test_a_cap_for_each_agent_has_a_total_of_its_own() -> None:
    capped = {
        "policy": "credits",
        "rules": [{"id": "all", "effect": "allow", "text": "All", "when": "true"}],
        "totals": [{"id": "agent", "text": "An agent in a month", "key": ["agent", "month", "currency"],
                    "amount": "amount_minor", "limits": {"USD": "100000"}}],
    }  # fmt: skip
    (need,) = evaluate(document=capped, variables=known() | {"month": "2026-11"}).totals
    assert need.key == "credits/agent/agent:x/2026-11/USD"
    assert evaluate(document=capped, variables=known() | {"month": "2026-11", "agent": None}).effect == "deny"


# ---- the document's words


def test_documents_say_what_is_wrong_and_what_differs() -> None:
    assert validate(document=document()) == []
    wrong = document()
    wrong["rules"][0]["window"] = wrong["rules"][1]["window"]
    assert [(one.where, one.field) for one in validate(document=wrong)] == [("small", "window")]
    for window in ({"by": "month"}, {"hours": 0}, {"above": {}}, {"above": {"USD": "1e5"}}):
        (problem,) = validate(document=document(**({"by": "account"} | window)))
        assert problem.where == "sums" and problem.field.startswith("window"), problem
    (change,) = changes(old=document(), new=document(hours=48))
    assert change.fields[0].label == "Counted together" and "in 2 days" in change.fields[0].new


def test_a_rule_that_looks_at_sums_is_never_said_to_outweigh_or_to_cover() -> None:
    assert advise(document=document()).warnings == []
    plain = document()
    del plain["rules"][1]["window"]
    assert [one.where for one in advise(document=plain).warnings] == ["small"]
    (no_limit,) = advise(document=document(above={"EUR": "1"})).warnings
    assert (no_limit.where, no_limit.field) == ("sums", "window.above")


def test_a_trial_counts_what_there_was_then_and_says_since_when(version: PolicyVersion) -> None:
    judged(world.run(), version, minor=60_000)
    second, _ = judged(world.run(), version, minor=60_000)
    third, _ = judged(world.run(), version, minor=30_000)
    end(second.run)
    late = windows.counted(proposal=third, tools=[TOOL], as_of=third.created_at)
    need = WindowNeed(by="account", value="ACC-1", currency="USD", hours=HOURS)
    assert late(need)[0] == 120_000, "the second was not over then"
    assert windows.counted(proposal=third)(need)[0] == 60_000
    tried = policy_trial.try_document(policy=version.policy, document=version.rules, tools=[TOOL], last=10, seconds=5)
    assert tried.sums_since == Tally.objects.order_by("at")[0].at


def test_the_form_shows_and_keeps_it(db: str) -> None:
    shown = from_document(document=document(), like=Typed(mode="text", revision=1, note="", tools=[]))
    assert shown is not None and shown.rules[1]["above"] == "USD 1000.00"
    assert shown.document() == ({**document(), "totals": []}, [])
