"""Conditions and differences in words: what a person reads is what is compared."""

from typing import Any

import pytest

from approvals.condition_words import in_words
from approvals.rule_diff import changes
from approvals.seed_policies import SERVICE_CREDITS

ASK = {"group": "manager", "quorum": 1, "respond_within_minutes": 240, "valid_for_minutes": 60}


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("true", "always"),
        ("currency == 'USD' && amount_minor > 100000", "the currency is USD and the amount is above $1,000.00 USD"),
        ("'JPY' == currency && 1500 >= amount_minor", "the currency is JPY and the amount is at most ¥1,500 JPY"),
        ("!incident_final", "the incident report is not final"),
        ("account_standing != 'good'", "the account's standing is not good"),
        ("currency in ['USD', 'EUR']", "the currency is one of USD, EUR"),
        ("!(currency in ['USD', 'EUR'])", "the currency is none of USD, EUR"),
        ("!reason.contains('test run')", "the reason does not contain “test run”"),
        ("month >= '2026-11' || incident_final", "the month is at least 2026-11 or the incident report is final"),
        (
            "(currency == 'USD' && amount_minor > 5) || (currency == 'KWD' && amount_minor > 5)",
            "(the currency is USD and the amount is above $0.05 USD) or (the currency is KWD and the amount is above"
            " KWD 0.005)",
        ),
        ("!(account == 'a' || account == 'b')", "not (the account is a or the account is b)"),
        ("incident_final == true", "(the incident report is final) is (always)"),
        ("what is this", "what is this"),
    ],
)
def test_conditions_in_words(source: str, words: str) -> None:
    assert in_words(source=source) == words


def rule(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "effect": "allow", "text": f"Rule {name}", "when": "true", **more}


def test_rules_totals_and_tools_one_by_one() -> None:
    total = {"id": "t", "text": "T", "key": ["account", "currency"], "amount": "amount_minor", "limits": {"USD": "500"}}
    old = {"rules": [rule("gone"), rule("kept"), rule("other")], "totals": [total]}
    new = {
        "rules": [rule("other", effect="ask", ask={**ASK, "quorum": 2}), rule("kept"), rule("new")],
        "totals": [{**total, "limits": {"USD": "700", "EUR": "100"}}],
    }
    found = changes(old=old, new=new, old_tools=["a"], new_tools=["a", "b"])
    assert [(one.kind, one.part, one.id) for one in found] == [
        ("removed", "rule", "gone"),
        ("changed", "rule", "other"),
        ("added", "rule", "new"),
        ("changed", "total", "t"),
        ("added", "tools", "b"),
    ]
    assert [(one.label, one.old, one.new) for one in found[1].fields] == [
        ("What it does", "needs no approval", "asks people"),
        ("Who is asked", "", "asks 2 people of manager; to be answered within 4 h, usable for 1 h after that"),
    ]
    assert [(one.label, one.old, one.new) for one in found[3].fields] == [
        ("Limit in USD", "$5.00 USD", "$7.00 USD"),
        ("Limit in EUR", "", "€1.00 EUR"),
    ]


def test_another_order_is_no_change() -> None:
    document = SERVICE_CREDITS.document
    assert changes(old=document, new={**document, "rules": document["rules"][::-1]}) == []
