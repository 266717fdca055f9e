"""A statement that a person stops before its end: what it read is kept, it concludes nothing, and it can go on."""

from typing import Any

import psycopg
import pytest
from django.db import DatabaseError

from reconciliation.models import Case, Statement, StatementOurs
from reconciliation.services import statement_matching, statement_reading, statement_stopping
from runs.models import Event
from runs.services import principals
from runs.tools.base import ListPage
from runs.tools.billing.statement import CreditNotes
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
