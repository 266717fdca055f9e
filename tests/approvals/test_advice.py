"""What is said of a policy before it is published is proved: no action ever contradicts it."""

from typing import Any

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from approvals import advice, reach
from approvals.advice import advise
from approvals.evaluation import evaluate
from approvals.expressions import read
from approvals.rules import VARIABLES, compiled, validate
from approvals.seed_policies import SEEDS

ASK = {"group": "manager", "quorum": 1, "respond_within_minutes": 240, "valid_for_minutes": 60}
# few values, so that comparisons meet and contradict each other often
TEXTS = ["", "a", "ab", "abc", "b", "ba", "é", "z"]
NUMBERS = [0, 1, 2, 3, 5, 8]
COMPARE = ["==", "!=", "<", "<=", ">", ">="]


def quoted(text: str) -> str:
    return f"'{text}'"


texts = st.builds(
    lambda name, op, text, turned: f"{quoted(text)} {op} {name}" if turned else f"{name} {op} {quoted(text)}",
    st.sampled_from(["account", "reason"]), st.sampled_from(COMPARE), st.sampled_from(TEXTS), st.booleans(),
)  # fmt: skip
functions = st.builds(
    lambda name, function, text: f"{name}.{function}({quoted(text)})",
    st.sampled_from(["account", "reason"]), st.sampled_from(["startsWith", "endsWith", "contains"]),
    st.sampled_from(TEXTS),
)  # fmt: skip
members = st.builds(
    lambda name, values: f"{name} in [{', '.join(map(quoted, values))}]",
    st.sampled_from(["account", "reason"]), st.lists(st.sampled_from(TEXTS), min_size=1, max_size=3),
)  # fmt: skip
numbers = st.builds(
    lambda op, value, code: f"(currency == '{code}' && amount_minor {op} {value})",
    st.sampled_from(COMPARE), st.sampled_from(NUMBERS), st.sampled_from(["USD", "EUR"]),
)  # fmt: skip
pairs = st.builds(lambda op: f"account {op} reason", st.sampled_from(COMPARE))
truths = st.sampled_from(["true", "false", "incident_final", "incident_final == true", "incident_final != false"])
atoms = st.one_of(texts, texts, functions, members, numbers, numbers, pairs, truths)
conditions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.builds(lambda one, other: f"({one} && {other})", inner, inner),
        st.builds(lambda one, other: f"({one} || {other})", inner, inner),
        st.builds(lambda one, other, op: f"(({one}) {op} ({other}))", inner, inner, st.sampled_from(["==", "!="])),
        st.builds(lambda one: f"!({one})", inner),
    ),
    max_leaves=6,
)
actions = st.fixed_dictionaries(
    {
        "account": st.sampled_from(TEXTS),
        "reason": st.sampled_from(TEXTS),
        "currency": st.sampled_from(["USD", "EUR", "GBP"]),
        # nothing costs nothing: an action of no amount is refused before any policy is asked
        "amount_minor": st.sampled_from([*(one for one in NUMBERS if one > 0), 4, 6, 7, 9, 10_000]),
        "incident_final": st.booleans(),
    }
)
many_actions = st.lists(actions, min_size=12, max_size=12)


def usable(source: str) -> bool:
    """What the reader would take: amounts beside their currency."""
    return validate(document={"rules": [{"id": "r", "effect": "allow", "text": "t", "when": source}]}) == []


def ways_of(source: str) -> list[reach.Alternative] | None:
    try:
        return reach.alternatives(read(source=source, schema=VARIABLES))
    except reach.TooMuch:
        return None


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(source=conditions.filter(usable), given_actions=many_actions)
def test_what_is_said_never_to_match_never_matches(source: str, given_actions: list[dict[str, Any]]) -> None:
    ways = ways_of(source)
    event("never" if ways == [] else "too much" if ways is None else "may match")
    program = compiled(source=source)
    for one in given_actions:
        known = {name: one[name] for name in program.variables()}
        if program.execute(known) is True:
            assert ways != []
            # and it matches in one of the ways that were found
            assert ways is None or any(holds(way, one) for way in ways), (source, one)


def holds(way: reach.Alternative, action: dict[str, Any]) -> bool:
    return all(reach.meets(action[fact.name], fact) for fact in way if fact.name)


rules = st.lists(
    st.tuples(st.sampled_from(["allow", "ask", "deny", "deny"]), conditions.filter(usable)), min_size=2, max_size=5
)


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(written=rules, given_actions=many_actions)
def test_no_action_contradicts_a_warning_or_a_gap(
    written: list[tuple[str, str]], given_actions: list[dict[str, Any]]
) -> None:
    document = {
        "rules": [
            {
                "id": f"r{number}",
                "effect": effect,
                "text": "t",
                "when": when,
                **({"ask": ASK} if effect == "ask" else {}),
            }
            for number, (effect, when) in enumerate(written)
        ]
    }
    assert validate(document=document) == []
    found = advise(document=document)
    silent = {one.where for one in found.warnings if "can never" in one.remedy}
    refused = {one.field for one in found.hints if one.remedy == f"no rule covers {one.field}: that is refused"}
    others = any(one.field == "currencies" for one in found.hints)
    event(f"{len(silent)} pointless, {len(refused)} currencies not covered")
    for one in given_actions:
        verdict = evaluate(document=document, variables=one)
        if verdict.effect != "deny":
            assert not silent & {rule["id"] for rule in verdict.rules}, (document, one, verdict)
            assert one["currency"] not in refused
            assert not others or one["currency"] in {hint for hint in ("USD", "EUR") if hint in str(document)}


def rule(name: str, effect: str, when: str, **more: Any) -> dict[str, Any]:
    asks = {"ask": {**ASK, **more}} if effect == "ask" else {}
    return {"id": name, "effect": effect, "text": f"Rule {name}", "when": when, **asks}


def said(*rules: dict[str, Any], totals: list[dict[str, Any]] | None = None) -> list[str]:
    document = {"rules": list(rules), "totals": totals or []}
    assert validate(document=document) == []
    found = advise(document=document)
    return [str(one) for one in [*found.warnings, *found.hints]]


EUR = "currency == 'EUR' && amount_minor"
ALL = rule("all", "allow", "true")


def test_a_condition_that_contradicts_itself_is_told() -> None:
    for when in (
        f"{EUR} > 500 && amount_minor < 500",
        f"{EUR} > 500 && amount_minor < 501",
        "currency == 'EUR' && currency == 'USD'",
        "account == 'a' && account != 'a'",
        "account.startsWith('ACC-') && account == 'XYZ'",
        "account.startsWith('A') && account.startsWith('B')",
        "month > '2026-11' && month < '2026-10'",
        "incident_final && !incident_final",
        "account in ['a', 'b'] && !(account in ['a', 'b', 'c'])",
        "!(account == reason) && account == reason",
        "false",
    ):
        assert said(ALL, rule("x", "deny", when)) == [
            "x, when: can never match: its condition contradicts itself; correct it or remove the rule"
        ], when


def test_a_rule_that_others_always_outweigh_is_told_with_their_names() -> None:
    small = rule("small", "allow", f"{EUR} <= 5000")
    assert "small, when: can never decide: whenever it matches, stop refuses, and that outweighs it" in said(
        small, rule("stop", "deny", "currency == 'EUR'")
    )
    split = [rule("low", "deny", f"{EUR} < 2000"), rule("high", "deny", f"{EUR} >= 1500")]
    assert any("one of low, high refuses" in one for one in said(small, *split))
    assert any("some asks or refuses" in one for one in said(small, rule("some", "ask", "currency == 'EUR'")))
    assert not [one for one in said(small, rule("stop", "deny", f"{EUR} > 4000")) if "never" in one]


def test_amounts_and_currencies_that_no_rule_covers_are_told_in_words() -> None:
    found = said(rule("a", "allow", f"{EUR} <= 5000"), rule("b", "ask", f"{EUR} > 10000 && amount_minor <= 99999"))
    assert found == [
        "policy, EUR: no rule covers amounts from €50.01 EUR to €100.00 EUR: that is refused",
        "policy, EUR: no rule covers amounts of €1,000.00 EUR and more: that is refused",
        "policy, currencies: no rule covers any currency but EUR: every other one is refused",
    ]
    meant = said(rule("a", "allow", f"{EUR} <= 5000"), rule("no", "deny", f"{EUR} > 5000"))
    assert [one for one in meant if "amounts" in one] == [], "what a rule refuses by its own words is no gap"
    assert said(ALL) == []


def test_two_groups_and_a_missing_limit_are_told() -> None:
    total = {"id": "t", "text": "T", "key": ["account", "currency"], "amount": "amount_minor", "limits": {"USD": "5"}}
    found = said(rule("m", "ask", f"{EUR} > 100"), rule("f", "ask", f"{EUR} > 5000", group="finance"), totals=[total])
    assert any("m, when: asks manager where f asks finance, such as for €50.01 EUR" in one for one in found)
    assert "t, limits: has no limit for EUR, so what m lets through is refused all the same; add one" in found


def test_the_policies_we_start_with_need_no_warning() -> None:
    for seed in SEEDS:
        assert advise(document=seed.document).warnings == []


def test_what_would_take_too_long_is_left_unsaid() -> None:
    """A hundred long rules that all touch each other: an answer, not a standstill."""
    names = ["account", "reason", "ticket", "incident", "step", "workflow"]
    long = " && ".join(f"({names[n % 6]} == 'v{n}' || {names[(n + 1) % 6]} != 'w{n}')" for n in range(12))
    document = {"rules": [rule(f"r{n}", ("allow", "deny")[n % 2], f"{long} && month != '{n}'") for n in range(100)]}
    assert validate(document=document) == []
    assert isinstance(advise(document=document), advice.Advice)
