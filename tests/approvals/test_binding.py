"""Digests: what decides the effect changes them, how it happens to be written does not."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from approvals.binding import binding_digest, differences, page_digest
from runs.actions import Action

EFFECT = {"account": "ACC-1", "amount_minor": "120000", "currency": "USD", "invoice": "INV-1", "memo": "Café"}
FACT = ("invoice", "INV-1", "3", "a" * 64)
FACTS = [FACT, ("incident", "INC-7", "1", "b" * 64), ("sla", "GOLD", "9", "c" * 64)]


def action(effect: dict[str, str], *, tool: str = "billing.create_credit", version: str = "1") -> str:
    return Action(tool=tool, contract_version=version, effect=effect).digest()


def bound(effect: dict[str, str] | None = None, facts: list[tuple[str, str, str, str]] | None = None) -> str:
    return binding_digest(action_digest=action(effect or EFFECT), facts=FACTS if facts is None else facts)


@given(st.permutations(list(EFFECT.items())), st.permutations(FACTS), st.sampled_from(["NFC", "NFD"]))
def test_order_and_normal_form_do_not_matter(
    fields: list[tuple[str, str]], facts: list[tuple[str, str, str, str]], form: str
) -> None:
    written = {key: unicodedata.normalize(form, value) for key, value in fields}  # type: ignore[arg-type]
    assert bound(written, facts) == bound()


@given(st.sampled_from(sorted(EFFECT)), st.text(max_size=20))
def test_each_field_of_the_effect_matters(name: str, other: str) -> None:
    same = unicodedata.normalize("NFC", other) == unicodedata.normalize("NFC", EFFECT[name])
    assert (bound({**EFFECT, name: other}) == bound()) is same
    assert bound({key: value for key, value in EFFECT.items() if key != name}) != bound()


def test_tool_and_contract_version_matter() -> None:
    assert len({action(EFFECT), action(EFFECT, tool="billing.create_refund"), action(EFFECT, version="2")}) == 3


@given(st.integers(0, 3), st.text(alphabet="abcdef0123456789", min_size=1, max_size=64))
def test_each_part_of_a_fact_matters(part: int, other: str) -> None:
    changed = (*FACT[:part], other, *FACT[part + 1 :])
    assert (bound(facts=[changed, *FACTS[1:]]) == bound()) is (changed == FACT)  # type: ignore[list-item]
    assert bound(facts=FACTS[1:]) != bound()


def test_parts_of_facts_cannot_run_into_each_other() -> None:
    assert bound(facts=[("a", "b", "c", "d")]) != bound(facts=[("ab", "", "c", "d")])


ROWS = [
    {"key": "amount", "label": "Amount", "value": "$1,200.00 USD"},
    {"key": "account", "label": "Account", "value": "Acme Corp"},
]


def test_a_page_is_what_is_shown_in_the_order_it_is_shown() -> None:
    assert page_digest(rows=ROWS) == page_digest(rows=[{**row, "hint": "not shown"} for row in ROWS])
    assert page_digest(rows=ROWS) != page_digest(rows=ROWS[::-1])
    for name in ("key", "label", "value"):
        assert page_digest(rows=[{**ROWS[0], name: "other"}, ROWS[1]]) != page_digest(rows=ROWS)
    assert page_digest(rows=ROWS[:1]) != page_digest(rows=ROWS)


def test_differences_name_what_changed_came_and_went() -> None:
    new = [
        {"key": "amount", "label": "Amount", "value": "$900.00 USD"},
        {"key": "invoice", "label": "Invoice", "value": "INV-1 · v4"},
    ]
    assert differences(old_rows=ROWS, new_rows=new) == [
        {"key": "amount", "label": "Amount", "old": "$1,200.00 USD", "new": "$900.00 USD"},
        {"key": "invoice", "label": "Invoice", "old": "", "new": "INV-1 · v4"},
        {"key": "account", "label": "Account", "old": "Acme Corp", "new": ""},
    ]


def test_the_same_value_under_another_name_is_a_change() -> None:
    renamed = [{**ROWS[0], "label": "At most"}, ROWS[1]]
    assert differences(old_rows=ROWS, new_rows=renamed) == [
        {"key": "amount", "label": "At most", "old": "Amount: $1,200.00 USD", "new": "At most: $1,200.00 USD"}
    ]


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.text(max_size=5)), unique_by=lambda pair: pair[0]))
def test_pages_differ_exactly_when_a_difference_is_named(pairs: list[tuple[str, str]]) -> None:
    new = [{"key": key, "label": key, "value": value} for key, value in pairs]
    old = [{"key": key, "label": key, "value": "1"} for key, _ in pairs]
    same_text = page_digest(rows=old) == page_digest(rows=new)
    assert bool(differences(old_rows=old, new_rows=new)) is not same_text
