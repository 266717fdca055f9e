"""A statement that a person stops before its end: what it read is kept, it concludes nothing, and it can go on."""

import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, connections

from reconciliation.models import Case, Statement, StatementOurs
from reconciliation.services import cases, statement_matching, statement_reading, statement_stopping
from runs.models import Event
from runs.services import principals
from runs.tools.base import ListPage
from runs.tools.billing.statement import CreditNotes
from tests.approvals.world import somebody_waits
from tests.desk.conftest import at_desk
from tests.desk.outside import again, note, void
from tests.desk.test_lock_order import watching
from tests.statements.conftest import Books
from tests.statements.test_judging import done, results
from tests.statements.test_pages import html, signed_in

pytestmark = pytest.mark.usefixtures("small_pages")


def stopped_at_its_second_page(books: Books, monkeypatch: pytest.MonkeyPatch) -> Statement:
    """The worker has the second page in hand when somebody stops it."""
    found = books.ask()
    real, pages = CreditNotes.list_recorded, []

    def stops(self: CreditNotes, **asked: object) -> ListPage:
        pages.append(real(self, **asked))  # type: ignore[arg-type]
        if len(pages) == 2:
            assert statement_stopping.stop(number=found.pk, reason="the wrong year", principal=books.tomas).ok
        return pages[-1]

    with monkeypatch.context() as patch:
        patch.setattr(CreditNotes, "list_recorded", stops)
        books.work(found)
    assert len(pages) == 2
    return found


def test_half_a_list_says_of_nothing_that_it_is_missing(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    operation = done(books)  # the oldest record, so on the last page
    others = sorted(books.credit(1000 + one).number for one in range(5))
    found = stopped_at_its_second_page(books, monkeypatch)
    assert (found.stage, found.pages, found.lines.count()) == ("stopped", 1, 3), "the page in hand was dropped"
    assert statement_reading.due(limit=5) == [] and statement_reading.work(number=found.pk, seconds=5) == 0
    found.refresh_from_db()
    assert found.stage == "stopped" and not found.ours.exists() and not Case.objects.exists()

    client, me = signed_in(books, "tomas")
    page = html(client.get(f"/statements/{found.pk}/"))
    assert "the wrong year" in page and "says of nothing that it is missing" in page and "every 2s" not in page
    assert client.get(f"/statements/{found.pk}/export").status_code == 302, "there is nothing to export"
    assert client.post(f"/statements/{found.pk}/go-on", {"as_user": me}).status_code == 302
    assert [number for number, _ in statement_reading.due(limit=5)] == [found.pk]
    books.work(found)
    assert found.stage == "finished" and found.pages == 2
    said = results(found)
    assert said["confirmed"] == [operation.external_reference] and sorted(said["not_ours"]) == others
    told = Event.objects.filter(kind__in=["statement.stopped", "statement.continued"]).order_by("seq")
    assert [(one.kind, one.actor, one.data.get("reason", "")) for one in told] == [
        ("statement.stopped", books.tomas, "the wrong year"), ("statement.continued", books.tomas, ""),
    ]  # fmt: skip


def test_it_can_be_stopped_while_it_is_compared(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    done(books)
    found, real = books.ask(), statement_matching.match_some

    def stops(**given: object) -> bool:
        assert statement_stopping.stop(number=found.pk, reason="not now", principal=books.tomas).ok
        return real(**given)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(statement_matching, "match_some", stops)
        books.work(found)
    assert (found.stage, found.part) == ("stopped", "matching")
    assert "before everything was compared" in html(signed_in(books, "tomas")[0].get(f"/statements/{found.pk}/"))
    assert statement_stopping.go_on(number=found.pk, principal=books.tomas).ok
    books.work(found)
    assert found.stage == "finished" and list(results(found)) == ["confirmed"]


def test_who_may_stop_what(books: Books, owner: psycopg.Connection) -> None:
    found = books.ask()
    client, me = signed_in(books, "tomas")
    assert "Stop ST-" in html(client.get(f"/statements/{found.pk}/?act=stop"))
    address = f"/statements/{found.pk}/stop"
    assert "Say why it is stopped" in html(client.post(address, {"as_user": me, "reason": "  "}, follow=True))
    assert client.post(address, {"as_user": "0", "reason": "mine"}).status_code == 403
    maya, hers = signed_in(books, "maya")
    assert maya.post(address, {"as_user": hers, "reason": "mine"}).status_code == 403
    nobody = principals.of_user(user=books.world.people["maya"])
    assert statement_stopping.stop(number=found.pk, reason="mine", principal=nobody).code == "no_right"
    assert statement_stopping.go_on(number=found.pk, principal=nobody).code == "no_right"
    assert statement_stopping.go_on(number=found.pk, principal=books.tomas).code == "not_stopped"
    assert client.get(f"/statements/{found.pk}/").status_code == 200
    assert client.post(address, {"as_user": me, "reason": "mine"}).status_code == 302
    assert statement_stopping.stop(number=found.pk, reason="twice", principal=books.tomas).code == "not_going"
    assert statement_stopping.go_on(number=found.pk, principal=books.tomas).ok
    assert books.work(found).stage == "finished"
    assert statement_stopping.stop(number=found.pk, reason="late", principal=books.tomas).code == "not_going"


def test_the_database_lets_only_a_whole_list_say_so(books: Books) -> None:
    operation = done(books)
    found = books.ask()
    with pytest.raises(DatabaseError, match="read to its end"):
        StatementOurs.objects.create(
            statement=found, operation=operation, amount_minor=1, currency="USD", result="missing"
        )


def test_what_a_worker_has_in_hand_is_judged_no_further(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    done(books)
    done(books, "CS-8815")
    found, seen = books.ask(), []

    def stops_after(real: Any) -> Any:
        def once(*given: Any, **more: Any) -> Any:
            result = real(*given, **more)
            if not seen:
                assert statement_stopping.stop(number=found.pk, reason="not now", principal=books.tomas).ok
            seen.append(result)
            return result

        return once

    with monkeypatch.context() as patch:
        patch.setattr(statement_matching, "_judge", stops_after(statement_matching._judge))
        books.work(found)
    assert (found.stage, found.part, found.ours.count()) == ("stopped", "matching", 1)
    assert statement_stopping.go_on(number=found.pk, principal=books.tomas).ok
    books.work(found)
    assert found.stage == "finished" and found.ours.count() == 2

    seen.clear()
    found = books.ask()
    with monkeypatch.context() as patch:
        patch.setattr(CreditNotes, "list_recorded", lambda *_, **__: ListPage(lines=(), cursor=""))
        patch.setattr(statement_matching, "in_period", stops_after(lambda **_: True))
        books.work(found)
    assert (found.stage, found.part) == ("stopped", "comparing")
    assert not found.ours.exists() and not Case.objects.exists(), "it says of nothing that it is missing"


@pytest.mark.parametrize("inside", ["judge", "_nobodys", "_alike"])
def test_what_is_being_judged_is_judged_before_the_stop_and_nothing_after_it(
    books: Books, monkeypatch: pytest.MonkeyPatch, inside: str
) -> None:
    """Somebody stops it just after a worker has seen that it goes on: the stop waits for that one commit."""
    done(books)
    books.credit(1000)
    done(books, "CS-8815")
    found, real, stops = books.ask(), getattr(statement_matching, inside), ThreadPoolExecutor(1)
    answers: list[Future[Any]] = []
    before: list[tuple[int, int]] = []
    waited: list[bool] = []

    def written() -> tuple[int, int]:
        return found.ours.count(), found.lines.filter(judged_at__isnull=False).count()

    def stop() -> Any:
        try:
            result = statement_stopping.stop(number=found.pk, reason="not now", principal=books.tomas)
            before.append(written())
            return result
        finally:
            connections.close_all()

    def at_once(*given: Any, **more: Any) -> Any:
        if not answers:
            answers.append(stops.submit(stop))
            waited.append(somebody_waits(seconds=3))
        return real(*given, **more)

    with monkeypatch.context() as patch:
        patch.setattr(statement_matching, inside, at_once)
        if inside == "_alike":
            patch.setattr(CreditNotes, "list_recorded", lambda *_, **__: ListPage(lines=(), cursor=""))
            patch.setattr(statement_matching, "in_period", lambda **_: True)
        books.work(found)
    assert answers[0].result().ok and waited == [True]
    found.refresh_from_db()
    assert found.stage == "stopped" and before == [written()] != [(0, 0)], "nothing was written after the stop"


def test_who_judges_locks_the_run_first_and_the_statement_last(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    done(books)
    found = books.ask()
    with watching(monkeypatch) as seen:
        books.work(found)
    tables = [[table for table, _ in one] for one in seen.transactions]
    [judged] = [one for one in tables if "runs_run" in one]
    own = ["runs_run", "reconciliation_operation"]
    assert judged[:3] == [*own, "reconciliation_statement"] and set(judged[3:]) <= {"reconciliation_statementline"}


def test_what_was_put_right_by_a_record_of_another_time_is_not_missing(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker has seen that it belongs to the period; then an admin settles it by a record that does not."""
    operation = done(books)
    found, desk, real = books.ask(), at_desk(books.world, monkeypatch), statement_matching.in_period
    void(note(0, books.world))
    desk.until_proof()
    time.sleep(1)  # billing's times are whole seconds
    later, seen = again(operation), []

    def put_right(**given: Any) -> bool:
        answer = real(**given)
        if not seen:
            seen.append(answer)
            doubt = cases.doubt(operation_id=operation.pk, principal=books.tomas, reason="it was made anew")
            case = Case.objects.get(pk=doubt.detail["case"])
            assert desk.settle(case, "happened", reference=later) == "ok"
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(CreditNotes, "list_recorded", lambda *_, **__: ListPage(lines=(), cursor=""))
        patch.setattr(statement_matching, "in_period", put_right)
        books.work(found)
    assert seen == [True] and found.stage == "finished" and not found.ours.exists()
