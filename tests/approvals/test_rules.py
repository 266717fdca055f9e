"""What may be published: a table of documents that must be refused, each with the rule, the field and what to do."""

from typing import Any

import cel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals import expressions
from approvals.rules import VARIABLES, validate
from approvals.seed_policies import SEEDS

ASK = {"group": "manager", "quorum": 1, "respond_within_minutes": 240, "valid_for_minutes": 60}
RULE = {"id": "r1", "effect": "allow", "text": "May be", "when": "true"}
TOTAL = {"id": "t1", "text": "Total", "key": ["account", "currency"], "amount": "amount_minor", "limits": {"USD": "5"}}


def with_rule(**changes: Any) -> dict[str, Any]:
    return {"rules": [{key: value for key, value in {**RULE, **changes}.items() if value is not ...}]}


def with_total(**changes: Any) -> dict[str, Any]:
    return {"rules": [RULE], "totals": [{**TOTAL, **changes}]}


GOOD_CONDITIONS = [
    "true",
    "currency == 'USD' && amount_minor <= 100000",
    "'USD' == currency && (amount_minor > 5 || incident_final)",
    "(currency == 'USD' && account != 'x') && amount_minor > 5",
    "!(currency != 'USD' || amount_minor > 5)",
    "(currency == 'USD' && amount_minor > 5) || (currency == 'JPY' && amount_minor > 500)",
    "!(!(currency == 'USD' && amount_minor > 5))",
    "!incident_final",
    'account_standing != "good"',
    "currency in ['USD', 'EUR']",
    "ticket.startsWith('CS-') && !reason.contains('test')",
    "month >= '2026-11'",
    "incident_final == true",
]
BAD_CONDITIONS = {
    "'a' == 1": "same type",
    "amount_minor == '5'": "same type",
    "currency == 'USD' && amount_minor <= 10.5": "not a whole number",
    "currency == 'USD' && amount_minor <= 10u": "not a whole number",
    "currency == 'USD' && amount_minor <= 0x10": "not a whole number",
    "currency == 'USD' && amount_minor <= 9007199254740992": "not a whole number",
    "currency == 'USD' && amount_minor > -5": "cannot use",
    "amount_minor > 5": "without its currency",
    "currency == 'USD' || amount_minor > 5": "without its currency",
    "currency != 'USD' && amount_minor > 5": "without its currency",
    "currency in ['USD', 'JPY'] && amount_minor > 5": "without its currency",
    "!(currency == 'USD' && amount_minor > 5)": "without its currency",
    "!((account == 'a' && currency == 'USD' && amount_minor > 5) || incident_final)": "without its currency",
    "(currency == 'USD' || currency == 'JPY') && amount_minor > 5": "without its currency",
    "(currency == 'USD' || incident_final) && amount_minor > 5": "without its currency",
    "!(currency != 'USD' && incident_final) && amount_minor > 5": "without its currency",
    "amount_minor == amount_minor": "without its currency",
    "currency == 'UDS' && amount_minor > 5": "ISO 4217",
    "currency == 'usd'": "ISO 4217",
    "currency in ['USD', 'XYZ']": "ISO 4217",
    "missing == 'x' || true": "not a variable",
    "tags.filter(amount, true)": "not a variable",
    "account.all(ticket, true)": "may not",
    "account.filter(ticket, true) == account": "may not",
    "[1].exists(amount_minor, true)": "unexpected '['",
    "has(account.x)": "may not",
    "size(account) > 3": "may not",
    "account.matches('.*')": "may not",
    "account.x == 'y'": "may not",
    "timestamp(month) == month": "may not",
    "account == 'a' ? true : false": "cannot use",
    "account + 'x' == 'y'": "cannot use",
    "account == 'a\\n'": "cannot use",
    "account == 'a' // comment": "cannot use",
    "account == b'a'": "not a variable",
    "account == null": "not a variable",
    "account": "yes-or-no",
    "amount_minor && true": "not a condition",
    "!account": "not a condition",
    "incident_final < true": "use == or !=",
    "'a' == 'a'": "never changes",
    "account == 'a' == true": "unexpected '=='",
    "account == 'a' account == 'b'": "unexpected 'account'",
    "account ==": "ends too early",
    "(account == 'a'": "needs ')'",
    "account in []": "unexpected ']'",
    "account in [ticket]": "plain values",
    "account in ['a', 1]": "same type",
    "   ": "is empty",
    "!" * 60 + "true": "too many !",
    "(" * 40 + "true" + ")" * 40: "nested deeper",
}


@pytest.mark.parametrize("condition", GOOD_CONDITIONS)
def test_conditions_that_may_be_published(condition: str) -> None:
    assert validate(document=with_rule(when=condition)) == []


@pytest.mark.parametrize("condition", BAD_CONDITIONS, ids=lambda text: text[:50])
def test_conditions_that_may_not(condition: str) -> None:
    (problem,) = validate(document=with_rule(when=condition))
    assert (problem.where, problem.field) == ("r1", "when")
    assert BAD_CONDITIONS[condition] in problem.remedy


BAD_DOCUMENTS: list[tuple[Any, str, str]] = [
    (None, "policy", "document"),
    ([], "policy", "document"),
    ({"rules": []}, "policy", "rules"),
    ({"rules": "x"}, "policy", "rules"),
    ({"rules": [RULE] * 2}, "r1", "id"),
    ({"rules": [RULE], "extra": 1}, "policy", "extra"),
    ({"rules": ["x"]}, "rule 1", "document"),
    ({"rules": [{**RULE, "id": f"r{n}"} for n in range(101)]}, "policy", "rules"),
    (with_rule(id="Not an id"), "Not an id", "id"),
    (with_rule(effect="perhaps"), "r1", "effect"),
    (with_rule(effect=...), "r1", "effect"),
    (with_rule(when=...), "r1", "when"),
    (with_rule(when=""), "r1", "when"),
    (with_rule(when=True), "r1", "when"),
    (with_rule(when="true || " * 300 + "true"), "r1", "when"),
    (with_rule(when="1+" * 20_000 + "1 == 1"), "r1", "when"),
    (with_rule(text=""), "r1", "text"),
    (with_rule(text="two\nlines"), "r1", "text"),
    (with_rule(text="nul\x00"), "r1", "text"),
    (with_rule(typo="x"), "r1", "typo"),
    (with_rule(effect="ask"), "r1", "ask"),
    (with_rule(ask=ASK), "r1", "ask"),
    (with_rule(effect="ask", ask={**ASK, "quorum": 0}), "r1", "ask.quorum"),
    (with_rule(effect="ask", ask={**ASK, "quorum": True}), "r1", "ask.quorum"),
    (with_rule(effect="ask", ask={**ASK, "quorum": "1"}), "r1", "ask.quorum"),
    (with_rule(effect="ask", ask={**ASK, "group": " "}), "r1", "ask.group"),
    (with_rule(effect="ask", ask={**ASK, "respond_within_minutes": 0}), "r1", "ask.respond_within_minutes"),
    (with_rule(effect="ask", ask={**ASK, "valid_for_minutes": 10_081}), "r1", "ask.valid_for_minutes"),
    (with_total(key=[]), "t1", "key"),
    (with_total(key=["account"]), "t1", "key"),
    (with_total(key=["nothing", "currency"]), "t1", "key"),
    (with_total(key=["amount_minor", "currency"]), "t1", "key"),
    (with_total(key=["currency", "currency"]), "t1", "key"),
    (with_total(amount="ticket"), "t1", "amount"),
    (with_total(limits={}), "t1", "limits"),
    (with_total(limits={"USD": 5}), "t1", "limits.USD"),
    (with_total(limits={"USD": "-5"}), "t1", "limits.USD"),
    (with_total(limits={"USD": "1e3"}), "t1", "limits.USD"),
    (with_total(limits={"NOPE": "5"}), "t1", "limits.NOPE.[key]"),
    (with_total(id="r1"), "r1", "id"),
]


@pytest.mark.parametrize(("document", "where", "field"), BAD_DOCUMENTS)
def test_documents_that_may_not(document: Any, where: str, field: str) -> None:
    problems = validate(document=document)
    assert [(found.where, found.field) for found in problems] == [(where, field)]
    assert len(problems[0].remedy) > 10


def test_every_problem_is_told_at_once() -> None:
    document = {"rules": [{**RULE, "when": "x"}, {**RULE, "id": "r2", "when": "account"}], "totals": [TOTAL]}
    assert [found.where for found in validate(document=document)] == ["r1", "r2"]


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.slug)
def test_the_policies_we_start_with_may_be_published(seed: Any) -> None:
    assert validate(document=seed.document) == []


# ---- what the reader accepts means the same to CEL, and names the currency of every amount
atoms = st.sampled_from(
    ["incident_final", "currency == 'USD'", "currency != 'USD'", "currency == 'EUR'", "amount_minor > 5", "true"]
)
conditions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" && ", " || "]), inner).map(lambda t: f"({t[0]}{t[1]}{t[2]})"),
        inner.map(lambda text: f"!({text})"),
    ),
    max_leaves=7,
)


@given(conditions, st.booleans())
def test_an_amount_in_a_currency_nobody_named_never_makes_a_difference(source: str, final: bool) -> None:
    try:
        expressions.read(source=source, schema=VARIABLES)
    except expressions.ExpressionError:
        return
    program = cel.compile(source)
    known = {"currency": "JPY", "incident_final": final}
    assert program.execute({**known, "amount_minor": 1}) is program.execute({**known, "amount_minor": 9})


@given(st.text(alphabet="ac urency=!<>&|()[].,'\"105true", max_size=60))
def test_any_text_is_read_or_refused_in_words(source: str) -> None:
    try:
        node = expressions.read(source=source, schema=VARIABLES)
    except expressions.ExpressionError as error:
        assert str(error)
    else:
        assert set(cel.compile(source).variables()) == expressions.names(node)
