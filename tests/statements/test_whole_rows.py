"""What is not known is no period and no amount: the database refuses both, and takes the whole ones."""

import datetime as dt
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from reconciliation.models import Statement, StatementLine
from runs import clock
from runs.services import principals

DAY = dt.timedelta(days=1)
pytestmark = pytest.mark.usefixtures("db")


def statement(**given: Any) -> Statement:
    now = clock.read()
    whole = {"system": "billing", "source": "read", "since": now - DAY, "until": now, "due_at": now}
    return Statement.objects.create(**{**whole, "asked_by": principals.system(), **given})


def line(of: Statement, **given: Any) -> StatementLine:
    whole = {"number": 1, "key": "1", "reference": "CN-1", "amount_minor": 100, "currency": "USD", "at": clock.read()}
    return StatementLine.objects.create(statement=of, **{**whole, **given})


@pytest.mark.parametrize("unknown", [{"since": None}, {"until": None}, {"since": None, "until": None}])
def test_a_statement_that_is_read_is_of_a_period(unknown: dict[str, None]) -> None:
    with pytest.raises(IntegrityError, match="statement_of_a_period"), transaction.atomic():
        statement(**unknown)
    assert statement().pk is not None
    assert statement(source="file", due_at=None, **unknown).pk is not None


@pytest.mark.parametrize(
    "broken", [{"amount_minor": None}, {"amount_minor": -1}, {"at": None}, {"currency": ""}, {"reference": ""}]
)
def test_a_line_that_was_read_has_an_amount_a_currency_a_time_and_a_name(broken: dict[str, Any]) -> None:
    read = statement()
    with pytest.raises(IntegrityError, match="statement_line_read_or_not"), transaction.atomic():
        line(read, **broken)
    assert line(read).pk is not None
    unread = {"key": "2", "number": 2, "result": "unread", "tells": "no amount", "judged_at": clock.read()}
    assert line(read, **broken, **unread).pk is not None
