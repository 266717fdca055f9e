"""However lines and operations fall, each is counted once and both sides add up exactly."""

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciliation import matching
from reconciliation.matching import Ours, Theirs, alike, judge, totals

AT = dt.datetime(2026, 10, 31, tzinfo=dt.UTC)
CURRENCIES = st.sampled_from(["USD", "EUR", "JPY"])
AMOUNTS = st.integers(0, 10**12)
REFERENCES = st.sampled_from(["CR-1", "CR-2", "CR-3"])
LINES = st.lists(
    st.builds(
        Theirs, number=st.integers(1, 9), reference=REFERENCES, identity=st.sampled_from(["", "i/1", "i/2"]),
        account=st.sampled_from(["", "acme", "other"]), amount_minor=AMOUNTS, currency=CURRENCIES,
        at=st.integers(0, 9).map(lambda one: AT + dt.timedelta(hours=one)), void=st.booleans(),
    ), min_size=1, max_size=5,
)  # fmt: skip
OURS = st.builds(
    Ours, state=st.sampled_from(["succeeded", "failed", "open"]), amount_minor=AMOUNTS, currency=CURRENCIES,
    accounts=st.sampled_from([frozenset(), frozenset({"acme"})]), references=st.frozensets(REFERENCES, max_size=1),
    identity=st.sampled_from(["", "i/1"]), known_second=st.sampled_from(["", "CR-2"]),
)  # fmt: skip


@given(st.lists(st.tuples(OURS, LINES), max_size=8), st.lists(OURS, max_size=4), LINES)
def test_both_sides_add_up_exactly(
    pairs: list[tuple[Ours, list[Theirs]]], alone: list[Ours], others: list[Theirs]
) -> None:
    theirs = [(one.currency, "not_ours", 1, one.stands) for one in others]
    ours = [(one.currency, "missing", 1, one.stands) for one in alone]
    for operation, lines in pairs:
        judged = judge(ours=operation, lines=lines)
        assert len(judged.lines) == len(lines)
        theirs += [(one.currency, result, 1, one.stands) for one, (result, _) in zip(lines, judged.lines, strict=True)]
        ours.append((operation.currency, judged.result, 1, operation.stands))
    every = [*others, *(one for _, lines in pairs for one in lines)]
    found = totals(theirs=theirs, ours=ours)
    for total in found:
        lines = [one for one in every if one.currency == total.currency]
        mine = [one for one in [*alone, *(one for one, _ in pairs)] if one.currency == total.currency]
        assert total.whole.theirs == (len(lines), sum(0 if one.void else one.amount_minor for one in lines))
        assert total.whole.ours == (len(mine), sum(one.stands for one in mine))
        assert total.whole.difference == sum(row.difference for row in total.rows)
        assert len({row.result for row in total.rows}) == len(total.rows)
        assert all(row.difference == 0 for row in total.rows if row.result == "confirmed")
    assert {one.currency for one in found} == {one[0] for one in [*theirs, *ours]}


@given(OURS, LINES)
def test_one_line_is_the_operation_and_only_what_stands_is_disputed(ours: Ours, lines: list[Theirs]) -> None:
    judged = judge(ours=ours, lines=lines)
    results = [result for result, _ in judged.lines]
    if ours.state == "open":
        assert set(results) == {"unconfirmed"} and not judged.case
        return
    assert len([one for one in results if one != matching.DUPLICATE]) == 1
    standing = {one.reference for one in lines if not one.void}
    if judged.case == matching.DUPLICATE:
        assert len(standing - {ours.known_second}) >= 1 and set(judged.about[1:]) <= standing
    assert judged == judge(ours=ours, lines=lines) and (judged.about == ()) == (judged.case == "")
    if results == ["confirmed"]:
        assert not judged.case and (lines[0].stands == ours.stands)


def line(reference: str = "CR-1", **changes: Any) -> Theirs:
    given = {"identity": "i/1", "account": "acme", "amount_minor": 500, "currency": "USD", "at": AT, "number": 1}
    return Theirs(reference=reference, **{**given, **changes})


def operation(**changes: Any) -> Ours:
    given = {"accounts": frozenset({"acme"}), "references": frozenset({"CR-1"}), "identity": "i/1", "currency": "USD"}
    return Ours(**{"state": "succeeded", "amount_minor": 500, **given, **changes})


@pytest.mark.parametrize(
    ("ours", "lines", "results", "case", "told"),
    [
        (operation(), [line()], ["confirmed"], "", ""),
        (operation(), [line(amount_minor=501)], ["different"], "other_amount", "sent $5.00 USD, recorded $5.01 USD"),
        (operation(), [line(currency="EUR")], ["different"], "different", "Currency: sent USD, recorded EUR"),
        (operation(), [line(account="Other")], ["different"], "other_account", "Account: sent acme, recorded Other"),
        (operation(), [line(account="ACME")], ["confirmed"], "", ""),
        (operation(), [line(void=True)], ["different"], "different", "CR-1 is void there"),
        (operation(), [line(identity="x")], ["different"], "different", "Identity: sent i/1, recorded x"),
        (operation(), [line("CR-2")], ["different"], "different", "it is CR-2 there and CR-1 here"),
        (operation(), [line("CR-2"), line()], ["duplicate", "confirmed"], "duplicate", "CR-1 and CR-2 carry one"),
        (operation(), [line(), line("CR-2", void=True)], ["confirmed", "duplicate"], "", "void since"),
        (operation(), [line(), line(number=2)], ["confirmed", "duplicate"], "", "listed more than once"),
        (operation(known_second="CR-2"), [line(), line("CR-2")], ["confirmed", "duplicate"], "", "named already"),
        (
            operation(state="failed", references=frozenset()),
            [line()],
            ["different"],
            "missing_here",
            "nothing was done",
        ),
        (operation(state="failed", references=frozenset()), [line(void=True)], ["confirmed"], "", ""),
        (operation(state="reversed"), [line(void=True)], ["confirmed"], "", ""),
        (operation(state="reversed"), [line()], ["different"], "different", "was reversed, and it stands there"),
        (operation(state="open", references=frozenset()), [line()], ["unconfirmed"], "", "asked now"),
    ],
)
def test_what_each_line_turns_out_to_be(
    ours: Ours, lines: list[Theirs], results: list[str], case: str, told: str
) -> None:
    judged = judge(ours=ours, lines=lines)
    assert [result for result, _ in judged.lines] == results and judged.case == case
    assert told in judged.tells


def test_only_a_line_without_identity_is_alike() -> None:
    far, near = AT + dt.timedelta(days=3), AT + dt.timedelta(hours=3)
    lines = [
        line("A", identity="", at=near), line("B"), line("C", identity="", at=far), line("F", identity="", void=True),
        line("D", identity="", account=""), line("E", identity="", account="other"),
    ]  # fmt: skip
    assert alike(ours=operation(), at=AT, lines=lines) == ["D", "A"]
