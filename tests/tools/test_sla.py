"""The arithmetic of a service level agreement, against a calculation written another way."""

import datetime as dt
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs import sla
from runs.money import MAX_MINOR, Money
from runs.sla import Period, Tier, Workings, work_out

START = dt.datetime(2026, 10, 1, tzinfo=dt.UTC)
OCTOBER = Period(start=START, end=dt.datetime(2026, 11, 1, tzinfo=dt.UTC))
TIERS = (Tier(below="99.9", percent="10"), Tier(below="99.5", percent="25"), Tier(below="99.95", percent="5"))


def owed(minutes: int, total: int = 1_200_000, *, currency: str = "USD", tiers: tuple[Tier, ...] = TIERS) -> Workings:
    outage = Period(start=START, end=START + dt.timedelta(minutes=minutes))
    return work_out(outage=outage, final=True, period=OCTOBER, tiers=tiers, total=Money(total, currency))


def credit_or_zero(minutes: int, total: int, tiers: tuple[Tier, ...] = TIERS) -> int:
    try:
        return owed(minutes, total, tiers=tiers).credit.minor
    except (sla.NothingDue, sla.InvoiceZero, sla.OtherMonth):
        return 0


def test_the_reference_case() -> None:
    found = owed(214)
    assert (found.downtime_minutes, found.period_minutes, found.credit) == (214, 44_640, Money(120_000, "USD"))
    assert found.uptime == 100 - Fraction(21400, 44640)
    shown = found.as_dict()
    assert [step["key"] for step in shown["steps"]] == ["downtime", "period", "uptime", "tier", "total", "credit"]
    assert {step["key"]: step["system"] for step in shown["steps"]} == {
        "downtime": "214 min",
        "period": "44,640",
        "uptime": "99.521 %",
        "tier": "10 %",
        "total": "$12,000.00 USD",
        "credit": "$1,200.00 USD",
    }
    assert [tier["reached"] for tier in shown["tiers"]] == [False, True, False]
    assert shown["near"] == "10 more full minutes of downtime would make it 25 % ($3,000.00)."


def test_near_says_the_very_minute_at_which_the_step_is_reached() -> None:
    assert owed(223).tier.percent == "10"
    assert owed(224).tier.percent == "25"
    assert owed(223).as_dict()["near"].startswith("1 more full minutes")
    assert owed(100).as_dict()["near"] == ""
    assert owed(300).as_dict()["near"] == ""


def test_uptime_is_never_shown_at_a_step_that_it_missed() -> None:
    # 1 minute in 300 000 days: 99.9999…, which rounds to the step it stays below
    span = Period(start=START, end=START + dt.timedelta(days=300_000))
    outage = Period(start=START, end=START + dt.timedelta(minutes=1))
    tiers = (Tier(below="100", percent="5"),)
    found = work_out(outage=outage, final=True, period=span, tiers=tiers, total=Money(1000, "USD"))
    assert found.as_dict()["steps"][2]["system"] == "99.999 %"


@pytest.mark.parametrize(
    ("started", "ended", "minutes"),
    [
        ("2026-09-30T23:00", "2026-10-01T10:00", 600),  # began the month before
        ("2026-10-31T20:00", "2026-11-02T00:00", 240),  # went on into the next
        ("2026-10-05T10:00:30", "2026-10-05T14:00:29", 239),  # full minutes only
        ("2026-09-01T00:00", "2026-12-01T00:00", 44_640),  # all of it
    ],
)
def test_downtime_is_counted_in_the_period_alone(started: str, ended: str, minutes: int) -> None:
    start, end = (dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC) for text in (started, ended))
    found = work_out(
        outage=Period(start=start, end=end), final=True, period=OCTOBER, tiers=TIERS, total=Money(1000, "USD")
    )
    assert found.downtime_minutes == minutes


def test_zones_are_the_same_instant() -> None:
    tokyo = dt.timezone(dt.timedelta(hours=9))
    here = Period(start=dt.datetime(2026, 10, 5, 10, tzinfo=dt.UTC), end=dt.datetime(2026, 10, 5, 14, tzinfo=dt.UTC))
    there = Period(start=here.start.astimezone(tokyo), end=here.end.astimezone(tokyo))
    results = {
        work_out(outage=one, final=True, period=OCTOBER, tiers=TIERS, total=Money(100, "USD")).credit
        for one in (here, there)
    }
    assert results == {Money(25, "USD")}


@pytest.mark.parametrize(
    ("total", "percent", "credit"), [(5, "10", 1), (4, "10", 0), (15, "10", 2), (1, "50", 1), (999, "33.3", 333)]
)
def test_rounding_is_half_up(total: int, percent: str, credit: int) -> None:
    assert sla.share(total=Money(total, "JPY"), percent=percent) == Money(credit, "JPY")


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("incident_not_final", {"final": False}),
        ("other_period", {"outage": Period(start=START - dt.timedelta(days=9), end=START)}),
        ("other_period", {"outage": Period(start=OCTOBER.end, end=OCTOBER.end + dt.timedelta(days=1))}),
        ("invoice_zero", {"total": Money(0, "USD")}),
        ("nothing_due", {"outage": Period(start=START, end=START + dt.timedelta(minutes=22))}),
        ("nothing_due", {"total": Money(1, "USD")}),
        ("schedule_invalid", {"tiers": ()}),
        ("schedule_invalid", {"tiers": (Tier(below="99.5", percent="101"),)}),
        ("schedule_invalid", {"tiers": (Tier(below="1e2", percent="5"),)}),
        ("schedule_invalid", {"tiers": (Tier(below="NaN", percent="5"),)}),
        ("schedule_invalid", {"tiers": (Tier(below="٩٩", percent="5"),)}),
        ("schedule_invalid", {"tiers": (Tier(below="99.5", percent="5"), Tier(below="99.50", percent="10"))}),
        ("schedule_invalid", {"tiers": (Tier(below="99.5", percent="5"), Tier(below="99.9", percent="10"))}),
    ],
)
def test_what_gives_no_credit_says_why(code: str, change: dict[str, object]) -> None:
    outage = Period(start=START, end=START + dt.timedelta(minutes=214))
    base = {"outage": outage, "final": True, "period": OCTOBER, "tiers": TIERS, "total": Money(1_200_000, "USD")}
    with pytest.raises(sla.SlaError) as raised:
        work_out(**{**base, **change})  # type: ignore[arg-type]  # a table of keyword arguments
    assert raised.value.code == code
    assert str(raised.value).endswith(".")


def schedules() -> st.SearchStrategy[tuple[Tier, ...]]:
    pairs = st.lists(
        st.tuples(st.decimals(1, 100, places=3), st.decimals(0, 100, places=2)), min_size=1, max_size=6
    ).map(
        lambda rows: list(
            zip(sorted({row[0] for row in rows}), sorted((r[1] for r in rows), reverse=True), strict=False)
        )
    )
    return pairs.map(lambda rows: tuple(Tier(below=f"{below:f}", percent=f"{percent:f}") for below, percent in rows))


@given(st.integers(0, 44_640), st.integers(0, 44_640), st.integers(0, MAX_MINOR), schedules())
def test_more_downtime_never_gives_less_and_never_more_than_the_invoice(
    one: int, other: int, total: int, tiers: tuple[Tier, ...]
) -> None:
    less, more = sorted((one, other))
    assert 0 <= credit_or_zero(less, total, tiers) <= credit_or_zero(more, total, tiers) <= total


@given(st.integers(1, 44_640), st.integers(1, MAX_MINOR))
def test_it_agrees_with_decimal_arithmetic(minutes: int, total: int) -> None:
    uptime = Decimal(44_640 - minutes) * 100 / Decimal(44_640)
    percent = next((p for below, p in (("99.5", 25), ("99.9", 10), ("99.95", 5)) if uptime < Decimal(below)), 0)
    expected = (Decimal(total) * percent / 100).quantize(Decimal(1), rounding=ROUND_HALF_UP)
    assert credit_or_zero(minutes, total) == int(expected)
