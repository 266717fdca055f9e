"""Verdicts: deny outweighs ask outweighs allow, requirements add up, and nothing unknown ever allows."""

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.evaluation import Verdict, evaluate, satisfied
from approvals.requirement import Answered, Requirement, StageNeed
from approvals.rules import validate
from approvals.seed_policies import AUTOMATIC_UP_TO, SERVICE_CREDITS, TICKET_COMMENTS, TICKET_WORK

ASK = {"group": "manager", "quorum": 1, "respond_within_minutes": 240, "valid_for_minutes": 60}
CREDIT = {
    "account": "ACC-1093",
    "month": "2026-11",
    "account_standing": "good",
    "incident_final": True,
    "currency": "USD",
    "amount_minor": 120_000,
}


def rule(effect: str, when: str = "true", number: int = 1, **ask: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"id": f"r{number}", "effect": effect, "text": f"Rule {number}", "when": when}
    return {**made, "ask": {**ASK, **ask}} if effect == "ask" else made


def credit(*, before: int = 0, **changes: Any) -> Verdict:
    known = {key: value for key, value in {**CREDIT, **changes}.items() if value is not ...}
    return evaluate(
        document={**SERVICE_CREDITS.document, "policy": "service-credits"},
        variables=known,
        counted=lambda need: (before, ("one",) if before else ()),
    )


@given(st.lists(st.tuples(st.sampled_from(["allow", "ask", "deny"]), st.booleans()), min_size=1, max_size=8))
def test_deny_outweighs_ask_outweighs_allow(rules: list[tuple[str, bool]]) -> None:
    document = {
        "rules": [rule(effect, "true" if hit else "false", number) for number, (effect, hit) in enumerate(rules)]
    }
    hits = {effect for effect, hit in rules if hit}
    expected = next((effect for effect in ("deny", "ask", "allow") if effect in hits), "deny")
    verdict = evaluate(document=document, variables={})
    assert verdict.effect == expected
    assert (verdict.need is not None) is (expected == "ask")
    assert bool(verdict.code and verdict.text) is (expected == "deny")
    assert verdict.code == ("" if expected != "deny" else "denied_by_rule" if hits else "no_rule")


CONDITIONS = ["account == 'a'", "currency == 'USD' && amount_minor <= 5", "incident_final", "ticket.contains('x')"]


@given(
    st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=4),
    st.dictionaries(
        st.sampled_from(["account", "currency", "amount_minor", "incident_final", "ticket"]),
        st.one_of(
            st.none(), st.booleans(), st.integers(), st.text(max_size=3), st.floats(), st.just("USD"), st.just([])
        ),
    ),
)
def test_an_absent_or_mistyped_variable_never_allows(conditions: list[str], known: dict[str, Any]) -> None:
    """`x || true` is true to CEL even when x is missing; here the missing x denies."""
    document = {"rules": [rule("allow", f"{source} || true", number) for number, source in enumerate(conditions)]}
    types = {"account": str, "currency": str, "amount_minor": int, "incident_final": bool, "ticket": str}
    needed = {name for source in conditions for name in types if name in source}
    whole = all(type(known.get(name)) is types[name] for name in needed)
    exact = "amount_minor" not in needed or not whole or abs(known["amount_minor"]) < 2**53
    assert (evaluate(document=document, variables=known).effect == "allow") is (whole and exact)


broken: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.integers(), st.text(max_size=5), st.sampled_from(["allow", "true", "1/0 == 1"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["rules", "totals", "id", "effect", "when", "text"]), inner, max_size=6),
    ),
    max_leaves=20,
)


@given(broken)
def test_a_document_that_cannot_be_read_never_allows_and_never_raises(document: Any) -> None:
    verdict = evaluate(document=document, variables=CREDIT)
    assert (verdict.effect, bool(verdict.code)) == ("deny", True)


@pytest.mark.parametrize(
    "when", ["1/0 == 1", "nothing == 'x' || true", "account", "account.size()", "1+" * 20_000 + "1"]
)
def test_a_stored_condition_that_was_never_checked_denies(when: str) -> None:
    verdict = evaluate(document={"rules": [rule("allow", number=2), rule("allow", when)]}, variables=CREDIT)
    assert verdict.effect == "deny"
    assert verdict.code in ("rule_error", "policy_unreadable")


def test_the_strictest_of_several_asks_counts() -> None:
    document = {
        "rules": [rule("ask", number=1, quorum=2), rule("ask", number=2, respond_within_minutes=10), rule("allow")]
    }
    verdict = evaluate(document=document, variables={})
    assert verdict.need == Requirement(
        group="manager", quorum=2, respond_within=dt.timedelta(minutes=10), valid_for=dt.timedelta(minutes=60)
    )
    assert [found["id"] for found in verdict.rules] == ["r1", "r2"]


def test_two_groups_at_once_are_both_asked_in_the_order_of_the_rules() -> None:
    asks = [rule("ask", number=1), rule("ask", number=2, group="finance"), rule("ask", number=3, quorum=2)]
    document = {"rules": asks}
    verdict = evaluate(document=document, variables={})
    assert verdict.need is not None
    assert [(stage.name, stage.quorum) for stage in verdict.need.chain] == [("manager", 2), ("finance", 1)]
    assert (verdict.need.quorum, verdict.need.in_order) == (3, False)
    one = [Answered(need=verdict.need.chain[0], yes=2)]
    both = [*one, Answered(need=verdict.need.chain[1], yes=1)]
    for asked, enough in ((one, False), (both, True)):
        said = satisfied(decision_kind="people", asked=asked, in_order=False, confirm="click", verdict=verdict)
        assert said is enough


def test_what_takes_more_than_a_click_is_not_answered_beforehand() -> None:
    terms = {"group": "manager", "most": {"USD": "500000"}, "longest_days": 30}
    click = rule("ask", number=1, standing=True)
    for confirm, expected in (("click", {"USD": 500_000}), ("retype", None), ("reauthenticate", None)):
        both = [click, rule("ask", number=2, standing=True, confirm=confirm)]
        verdict = evaluate(document={"rules": both, "standing": terms}, variables={"amount_minor": 5})
        assert verdict.need is not None
        assert (verdict.need.confirm, verdict.need.standing) == (confirm, expected)
        found = [str(one) for one in validate(document={"rules": both, "standing": terms})]
        assert bool(found) is (expected is None), found
        assert all(one.startswith("r2, ask.standing: is true, but a yes to this rule takes") for one in found)


@pytest.mark.parametrize("currency", AUTOMATIC_UP_TO)
def test_service_credits_by_amount(currency: str) -> None:
    limit = AUTOMATIC_UP_TO[currency]
    for minor, effect in {
        1: "allow",
        limit: "allow",
        limit + 1: "ask",
        limit * 10: "ask",
        limit * 10 + 1: "deny",
    }.items():
        verdict = credit(currency=currency, amount_minor=minor)
        assert verdict.effect == effect, minor
        if effect != "deny":
            (need,) = verdict.totals
            assert need.key == f"service-credits/account-month/ACC-1093/2026-11/{currency}"
            assert (need.limit_minor, need.amount_minor, need.currency) == (limit * 20, minor, currency)


@pytest.mark.parametrize("currency", AUTOMATIC_UP_TO)
def test_small_credits_of_one_account_in_a_day_need_a_manager_once_they_add_up(currency: str) -> None:
    limit = AUTOMATIC_UP_TO[currency]
    assert credit(currency=currency, amount_minor=100, before=limit - 100).effect == "allow"
    verdict = credit(currency=currency, amount_minor=100, before=limit - 99)
    assert (verdict.effect, [one["id"] for one in verdict.rules]) == ("ask", ["account-day"])
    assert verdict.need is not None and (verdict.need.group, verdict.need.quorum) == ("manager", 1)
    (window,) = verdict.windows
    assert (window.need.by, window.need.hours, window.total_minor) == ("account", 24, limit + 1)


@pytest.mark.parametrize("before", [0, 5_000_000])
def test_the_reference_case_asks_one_manager(before: int) -> None:
    verdict = credit(before=before)
    assert verdict.windows == []
    assert verdict.rules == [{"id": "usd-manager", "text": "Credits above $1,000.00 USD need a support manager"}]
    assert verdict.need is not None
    assert (verdict.need.group, verdict.need.quorum) == ("manager", 1)
    assert (verdict.need.respond_within, verdict.need.valid_for) == (dt.timedelta(hours=4), dt.timedelta(hours=1))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"account_standing": "suspended"}, "denied_by_rule"),
        ({"account_standing": ""}, "denied_by_rule"),
        ({"account_standing": ...}, "variable_missing"),
        ({"incident_final": False}, "denied_by_rule"),
        ({"incident_final": ...}, "variable_missing"),
        ({"incident_final": 1}, "variable_mistyped"),
        ({"incident_final": "true"}, "variable_mistyped"),
        ({"amount_minor": ...}, "variable_missing"),
        ({"amount_minor": "120000"}, "variable_mistyped"),
        ({"amount_minor": 1200.0}, "variable_mistyped"),
        ({"amount_minor": True}, "variable_mistyped"),
        ({"amount_minor": 2**53}, "variable_mistyped"),
        ({"amount_minor": 2**64}, "variable_mistyped"),
        ({"amount_minor": 0}, "variable_mistyped"),
        ({"amount_minor": -5}, "variable_mistyped"),
        ({"currency": "CHF"}, "no_rule"),
        ({"currency": "usd"}, "no_rule"),
        ({"currency": ""}, "no_rule"),
        ({"account": ...}, "variable_missing"),
        ({"account": ""}, "variable_missing"),
        ({"month": ...}, "variable_missing"),
        ({"account": "x" * 300}, "total_key_too_long"),
    ],
)
def test_credits_that_are_denied(changes: dict[str, Any], code: str) -> None:
    verdict = credit(**changes)
    assert (verdict.effect, verdict.code) == ("deny", code)
    assert verdict.totals == []
    assert len(verdict.text) > 10


def totalled(**known: Any) -> Verdict:
    total = {
        "id": "t",
        "text": "Total",
        "key": ["account", "ticket", "currency"],
        "amount": "amount_minor",
        "limits": {"USD": "500"},
    }
    return evaluate(document={"rules": [rule("allow")], "totals": [total]}, variables=known)


def test_a_currency_without_a_limit_in_a_total_is_denied() -> None:
    assert totalled(account="a", ticket="b", currency="EUR", amount_minor=1).code == "no_total_limit"
    assert totalled(account="a", ticket="b", currency="USD", amount_minor=501).code == "over_total"
    assert totalled(account="a", ticket="b", currency="USD", amount_minor=500).effect == "allow"


def test_keys_of_totals_cannot_run_into_each_other() -> None:
    known = {"currency": "USD", "amount_minor": 1}
    one, two = totalled(account="a/b", ticket="c", **known), totalled(account="a", ticket="b/c", **known)
    three = totalled(account="a%2Fb", ticket="c", **known)
    assert len({verdict.totals[0].key for verdict in (one, two, three)}) == 3


def test_text_is_compared_in_one_normal_form() -> None:
    document = {"rules": [rule("allow", "account == 'caf\u00e9'")]}
    assert evaluate(document=document, variables={"account": "cafe\u0301"}).effect == "allow"


def test_ticket_work_is_automatic_and_comments_are_asked() -> None:
    assert evaluate(document=TICKET_WORK.document, variables={"tool": "helpdesk.update_ticket"}).effect == "allow"
    assert evaluate(document=TICKET_COMMENTS.document, variables={}).effect == "ask"


def asks(*, group: str = "manager", quorum: int = 1) -> Verdict:
    return evaluate(document={"rules": [rule("ask", group=group, quorum=quorum)]}, variables={})


ALLOWS = Verdict(effect="allow")
DENIES = Verdict(effect="deny", code="no_rule", text="No.")


@pytest.mark.parametrize(
    ("kind", "group", "quorum", "votes_for", "verdict", "enough"),
    [
        ("policy", "", 0, 0, ALLOWS, True),
        ("people", "manager", 1, 1, ALLOWS, True),
        ("policy", "", 0, 0, DENIES, False),
        ("people", "manager", 1, 1, DENIES, False),
        ("policy", "manager", 1, 5, asks(), False),
        ("people", "manager", 1, 1, asks(), True),
        ("people", "manager", 1, 1, asks(quorum=2), False),
        ("people", "manager", 2, 2, asks(quorum=2), True),
        ("people", "manager", 2, 1, asks(), False),
        ("people", "finance", 1, 1, asks(), False),
    ],
)
def test_whether_a_decision_in_hand_is_enough_for_a_newer_policy(
    kind: str, group: str, quorum: int, votes_for: int, verdict: Verdict, enough: bool
) -> None:
    asked = [Answered(need=StageNeed(name=group, groups=(group,), quorum=quorum), yes=votes_for)]
    assert satisfied(decision_kind=kind, asked=asked, in_order=False, confirm="click", verdict=verdict) is enough
