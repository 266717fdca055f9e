"""What is at risk by currency, kind and month end: every operation once, on the desk and as a file."""

import datetime as dt

import pytest
from django.test import Client

from reconciliation.models import Case, Operation
from reconciliation.risk import ASKED, at_risk, in_all
from tests.runpages import scenes, world

OCTOBER, SECOND = dt.datetime(2026, 10, 30, 23, 30, tzinfo=dt.UTC), dt.datetime(2026, 11, 2, tzinfo=dt.UTC)


def made(at: dt.datetime, *, case: str = "", amount: int = 120_000, currency: str = "USD", **fields: str) -> Operation:
    operation = scenes.unknown(at, **fields)[1]
    if case:
        Case.objects.create(operation=operation, kind=case, why="asked often")
    return operation


@pytest.fixture
def unsure(db: str, owner: object) -> None:
    """As the owner of the tables tells it: amounts and times of operations never change otherwise."""
    told = [
        (made(OCTOBER, subject="CS-1"), OCTOBER, 120_000, "USD"),
        (made(OCTOBER, case="not_confirmed", subject="CS-2"), OCTOBER, 30_000, "USD"),
        (made(SECOND, case="not_confirmed", subject="CS-3"), SECOND, 5_000, "USD"),
        (made(SECOND, case="not_confirmed", subject="CS-4"), SECOND, 700, "JPY"),
    ]
    Case.objects.create(operation=told[1][0], kind="different", why="and a second one about the same")
    for operation, at, minor, currency in told:
        owner.execute(  # type: ignore[attr-defined]
            "UPDATE reconciliation_operation SET created_at = %s, amount_minor = %s, currency = %s WHERE id = %s",
            [at, minor, currency, operation.pk],
        )


def test_each_operation_counts_once_in_its_month(unsure: None) -> None:
    found = [(one.currency, one.until.isoformat(), one.kind, one.number, one.minor, one.so_far) for one in at_risk()]
    assert found == [
        ("JPY", "2026-11-30", "Not confirmed", 1, 700, 700),
        ("USD", "2026-10-31", ASKED, 1, 120_000, 150_000),
        ("USD", "2026-10-31", "Not confirmed", 1, 30_000, 150_000),
        ("USD", "2026-11-30", "Not confirmed", 1, 5_000, 155_000),
    ]
    assert [str(one) for one in in_all(at_risk())] == ["¥700 JPY", "$1,550.00 USD"]


def test_the_desk_shows_it_and_gives_it_as_a_file(unsure: None) -> None:
    client = Client()
    client.force_login(world.person("tomas", "reconciliation.view_case"))
    page = client.get("/cases/").content.decode()
    assert "At risk, by month end" in page and "31 October 2026" in page
    answer = client.get("/cases/at-risk.csv")
    lines = b"".join(answer).decode("utf-8-sig").splitlines()  # type: ignore[call-overload]
    assert lines[0].startswith("Month end,Currency") and "2026-10-31,USD,Not confirmed,1,300.00,1500.00" in lines
    other = Client()
    other.force_login(world.person("priya", "runs.view_run"))
    assert other.get("/cases/at-risk.csv").status_code == 403
