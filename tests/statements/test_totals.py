"""However lines and operations fall, each is counted once and both sides add up exactly."""

import datetime as dt

from hypothesis import given
from hypothesis import strategies as st

from reconciliation import matching
from reconciliation.matching import Ours, Theirs, judge, totals

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
