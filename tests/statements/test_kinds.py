"""Of what kind a difference is that a statement finds, on the desk, its filter, the statement's page and its file."""

import datetime as dt
from typing import Any

import pytest

from reconciliation import statement_queries
from reconciliation.matching import Ours, Theirs, judge
from reconciliation.models import Case
from tests.statements.conftest import Books
from tests.statements.test_judging import done
from tests.statements.test_pages import html, signed_in

AT = dt.datetime(2026, 11, 3, tzinfo=dt.UTC)


def ours(**changed: Any) -> Ours:
    given = {"state": "succeeded", "amount_minor": 1000, "currency": "USD", "accounts": frozenset({"acc-1"})}
    return Ours(**{**given, "references": frozenset({"CN-1"}), "reference": "CN-1", "identity": "us/1", **changed})


def theirs(**changed: Any) -> Theirs:
    given = {"number": 1, "reference": "CN-1", "identity": "us/1", "account": "ACC-1", "amount_minor": 1000}
    return Theirs(**{**given, "currency": "USD", "at": AT, "void": False, **changed})


@pytest.mark.parametrize(
    ("here", "there", "kind"),
    [
        ({}, [{}], ""),
        ({}, [{"amount_minor": 900}], "other_amount"),
        ({}, [{"account": "ACC-2"}], "other_account"),
        ({}, [{"amount_minor": 900, "account": "ACC-2"}], "different"),
        ({}, [{"currency": "EUR"}], "different"),
        ({}, [{"void": True}], "different"),
        ({}, [{"reference": "CN-9"}], "different"),
        ({}, [{}, {"number": 2, "reference": "CN-2"}], "duplicate"),
        ({"state": "failed", "reference": "", "references": frozenset()}, [{}], "missing_here"),
        ({"state": "reversed"}, [{}], "different"),
    ],
)
def test_a_difference_has_its_kind(here: dict[str, Any], there: list[dict[str, Any]], kind: str) -> None:
    assert judge(ours=ours(**here), lines=[theirs(**one) for one in there]).case == kind
    assert kind == "" or kind in Case.Kind.values


def test_it_is_told_wherever_the_case_is(books: Books) -> None:
    operation = done(books)
    books.credit(operation.amount_minor or 0, operation_identity=operation.identity)
    found = books.read()
    case = Case.objects.get()
    Case.objects.create(operation=operation, kind="doubted", why="a customer says so")
    client, _ = signed_in(books, "tomas")
    desk = html(client.get("/cases/"))
    assert "Recorded more than once" in desk and "?kind=duplicate" in desk and "?kind=doubted" in desk
    only = html(client.get("/cases/?kind=duplicate&sort=amount"))
    assert case.label in only and "Our record is doubted</td>" not in only and "2 open cases" in only
    assert "None of this kind is open" in html(client.get("/cases/?kind=missing_here"))
    assert client.get("/cases/?kind=nonsense").status_code == 404
    assert "<b>Recorded more than once</b>" in html(client.get(f"/statements/{found.pk}/"))
    rows = list(statement_queries.exported(statement=found))
    assert {tuple(row[-2:]) for row in rows} == {(case.label, "Recorded more than once")}
    assert all(len(row) == len(statement_queries.EXPORTED) for row in rows)
