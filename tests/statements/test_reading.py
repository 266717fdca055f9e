"""A period is read to its end whatever happens on the way: no line is lost and none is there twice."""

import datetime as dt
import signal

import pytest

from reconciliation.models import Case, Difference, StatementLine
from reconciliation.services import statement_reading, statements
from runs import clock
from runs.services import principals
from runs.tools.base import ListPage
from runs.tools.billing.statement import CreditNotes
from tests.approvals.world import at_once
from tests.statements.conftest import READ, Books

pytestmark = pytest.mark.usefixtures("small_pages")


def notes(books: Books, number: int) -> list[str]:
    return sorted(str(books.credit(1000 + one).id) for one in range(number))


def lines(statement: object) -> list[str]:
    return sorted(StatementLine.objects.filter(statement=statement).values_list("key", flat=True))


def test_a_whole_period_page_by_page(books: Books) -> None:
    made = notes(books, 10)
    found = books.read()
    assert lines(found) == made and found.pages == 4
    assert set(found.lines.values_list("result", flat=True)) == {"not_ours"}
    assert found.since == books.since and not Case.objects.exists()


@pytest.mark.parametrize(
    "point", ["statement.page.asked", "statement.page.stored.before", "statement.page.stored.after"]
)
def test_a_reader_that_is_killed_is_followed_by_another(books: Books, point: str) -> None:
    made = notes(books, 7)
    found = books.ask()
    assert books.reader(found, die_at=point) == -signal.SIGKILL
    stored = found.lines.count()
    assert stored == (3 if point.endswith("after") else 0)
    books.work(found)
    assert found.stage == "reading", "it is in the hands of whoever died until that time is over"
    books.due(found)
    assert books.work(found).stage == "finished"
    assert lines(found) == made and found.pages == 3


@pytest.mark.parametrize("mode", ["5xx_without_effect", "timeout_without_effect", "overloaded", "execute_then_reset"])
def test_a_page_that_does_not_come_is_asked_for_again(
    books: Books, mode: str, settings: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.CALL_LIMIT_SECONDS = 0.5  # type: ignore[attr-defined]
    made = notes(books, 7)
    found = books.ask()
    books.world.fault("ok", READ)
    books.world.fault(mode, READ)
    books.work(found)
    assert found.stage == "reading" and found.lines.count() == 3 and found.problem and found.due_at
    assert found.due_at > clock.read() - dt.timedelta(seconds=5)
    for _ in range(20):
        monkeypatch.setattr(
            statement_reading.gates, "may_read", lambda **_: statement_reading.gates.Go(now=clock.now())
        )
        books.due(found)
        if books.work(found).stage == "finished":
            break
    assert lines(found) == made and found.problem == ""


def test_the_same_page_twice_adds_nothing_and_a_list_in_circles_stops(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = notes(books, 7)
    real, first = CreditNotes.list_recorded, []

    def twice(self: CreditNotes, **asked: object) -> ListPage:
        page = real(self, **asked)  # type: ignore[arg-type]
        first.append(page)
        return ListPage(lines=(*first[0].lines, *page.lines), cursor=page.cursor)

    monkeypatch.setattr(CreditNotes, "list_recorded", twice)
    assert lines(books.read()) == made

    monkeypatch.setattr(CreditNotes, "list_recorded", lambda self, **_: first[0])
    found = books.work(books.ask())
    assert found.stage == "reading" and "circles" in found.problem and found.lines.count() == 3


def test_many_workers_at_once_store_each_page_once(books: Books) -> None:
    made = notes(books, 10)
    found = books.ask()

    def one() -> int:
        return statement_reading.work(number=found.pk, seconds=120)

    assert sorted(at_once(*[one] * 6))[:5] == [0] * 5, "one has it, the others find nothing to do"
    found.refresh_from_db()
    assert found.stage == "finished" and lines(found) == made


def test_one_that_comes_back_late_stores_nothing(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    made = notes(books, 7)
    found = books.ask()
    real, calls = CreditNotes.list_recorded, []

    def slow(self: CreditNotes, **asked: object) -> ListPage:
        page = real(self, **asked)  # type: ignore[arg-type]
        calls.append(page)
        if len(calls) == 1:  # frozen with this page in hand; another has taken over meanwhile
            books.due(found)
            statement_reading.work(number=found.pk, seconds=120)
        return page

    monkeypatch.setattr(CreditNotes, "list_recorded", slow)
    books.work(found)
    assert found.stage == "finished" and lines(found) == made and found.pages == 3


def test_one_that_breaks_off_says_so_and_is_not_tried_at_once(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object) -> bool:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(statement_reading, "_store_page", breaks)
        found = books.work(books.ask())
    assert found.problem == "It broke off (ZeroDivisionError)." and found.due_at and found.due_at > clock.read()
    books.due(found)
    assert books.work(found).stage == "finished" and found.problem == ""


def test_a_period_has_to_be_over_and_a_right_to_be_held(books: Books) -> None:
    now = clock.read()
    hour = dt.timedelta(hours=1)

    def code(system: str = "billing", since: dt.datetime = now - hour, until: dt.datetime = now) -> str:
        return statements.start_reading(system=system, since=since, until=until, principal=books.tomas).code

    assert code(until=now + hour) == "period_not_over"
    assert code(since=now) == "period_empty"
    assert code(since=now - dt.timedelta(days=401)) == "period_too_long"
    assert code(system="helpdesk") == "no_ledger"
    user = books.world.people["maya"]
    nobody = statements.start_reading(
        system="billing", since=now - hour, until=now, principal=principals.of_user(user=user)
    )
    assert nobody.code == "no_right" and not Difference.objects.exists()
    assert code() == "ok"
