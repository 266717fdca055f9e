"""The pages of statements: who may do what, what a form refuses, and how they look in a real browser."""

import datetime as dt
import os
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from reconciliation.models import Case, Difference, Statement
from reconciliation.services import statement_stopping
from runs import clock
from tests.pages.conftest import Visitor, chromium, site, visitor
from tests.statements.conftest import Books
from tests.statements.test_files import GOOD, HEADER
from tests.statements.test_judging import done

__all__ = ["chromium", "site", "visitor"]
SHOTS = os.environ.get("STATEMENT_SHOTS", "")


def signed_in(books: Books, name: str) -> tuple[Client, str]:
    client, user = Client(), books.world.people[name]
    client.force_login(user)
    return client, str(user.pk)


def html(answer: object) -> str:
    return answer.content.decode()  # type: ignore[attr-defined]


def test_an_admin_reads_a_period_and_sees_what_differs(books: Books) -> None:
    operation = done(books)
    strange = books.credit(900, operation_identity="local/billing.create_credit/nobody")
    client, me = signed_in(books, "tomas")
    assert "None so far" in html(client.get("/statements/"))
    today = clock.read().date().isoformat()
    form = {"system": "billing", "first": today, "last": today, "as_user": me}
    wrong = client.post("/statements/start", {**form, "first": "2099-01-01", "last": "2099-01-02"})
    assert wrong.status_code == 422 and "That day has not begun yet" in html(wrong)
    turned = client.post("/statements/start", {**form, "last": "2020-01-01"})
    assert turned.status_code == 422 and "before the first" in html(turned)
    assert client.post("/statements/start", {**form, "first": "0001-01-01"}).status_code == 422
    assert client.post("/statements/start", {**form, "as_user": "0"}).status_code == 403
    assert client.post("/statements/start", form).status_code == 302
    found = Statement.objects.get()
    assert "Being read" in html(client.get(f"/statements/{found.pk}/"))
    assert client.get(f"/statements/{found.pk}/export").status_code == 302
    Statement.objects.filter(pk=found.pk).update(until=clock.read())  # the last second is not over by itself
    books.work(found)
    page = html(client.get(f"/statements/{found.pk}/"))
    assert "Every line and every operation is in exactly one row" in page and "report this" not in page
    assert operation.external_reference in page and strange.number in page
    only = html(client.get(f"/statements/{found.pk}/?result=confirmed"))
    assert operation.external_reference in only and f">{strange.number}" not in only
    assert client.get(f"/statements/{found.pk}/?result=nonsense").status_code == 404
    [difference] = Difference.objects.all()
    note = f"/statements/differences/{difference.pk}/note"
    assert strange.number in html(client.get("/statements/"))
    client.post(note, {"as_user": me, "evidence": "made by hand in March"})
    assert strange.number not in html(client.get("/statements/"))


def test_others_look_and_do_nothing(books: Books) -> None:
    found = books.read()
    client, me = signed_in(books, "maya")
    page = html(client.get("/statements/"))
    assert "Read a period" not in page.replace("An admin can read a period", "") and "Compared" in page
    assert client.get(f"/statements/{found.pk}/").status_code == 200
    for path in ("start", "upload", f"{found.pk}/columns", "differences/1/note"):
        assert client.post(f"/statements/{path}", {"as_user": me}).status_code == 403
    assert Statement.objects.count() == 1


def test_a_file_is_uploaded_mapped_and_taken_in(books: Books) -> None:
    client, me = signed_in(books, "tomas")

    def upload(content: bytes) -> object:
        file = SimpleUploadedFile("<b>evil</b>.csv", content, content_type="text/csv")
        return client.post("/statements/upload", {"file_system": "billing", "file": file, "as_user": me})

    for content, told in ((b"", "The file is empty"), (b"\0" * 100, "not text"), (b"x" * (10 * 2**20 + 1), "10 MB")):
        refused = upload(content)
        assert refused.status_code == 422 and told in html(refused)  # type: ignore[attr-defined]
    assert not Statement.objects.exists()
    assert upload((HEADER + GOOD + GOOD.replace("12.50", "=1+1")).encode()).status_code == 302  # type: ignore[attr-defined]
    found = Statement.objects.get()
    page = html(client.get(f"/statements/{found.pk}/"))
    assert "b&gt;.csv" in page and "=1+1" in page and "guessed by their names" in page
    form = {"reference": "0", "amount": "1", "convention": "point", "currency": "2", "at": "3", "date_format": "iso",
            "zone": "Europe/Berlin", "identity": "4", "account": "5", "status": "6", "as_user": me}  # fmt: skip
    path = f"/statements/{found.pk}/columns"
    for changed, told in (
        ({"amount": "0"}, "are the same column"),
        ({"amount": ""}, "Choose the column"),
        ({"amount": "9"}, "Choose “Amount” from what is offered"),
        ({"currency": ""}, "or give the currency of every line"),
        ({"currency_fixed": "USD"}, "Leave it empty"),
        ({"zone": "Nowhere/None"}, "Choose “Time zone of dates without one” from what is offered"),
        ({"date_format": "dmy."}, "None of the first lines can be read this way"),
    ):
        answer = client.post(path, {**form, **changed})
        assert answer.status_code == 422 and told in html(answer), changed
    found.refresh_from_db()
    assert found.columns is None and not found.lines.exists()
    assert client.post(path, form).status_code == 302
    books.work(found)
    page = html(client.get(f"/statements/{found.pk}/?result=unread"))
    assert "line 3" in page and "The amount “=1+1”" in page and "1 unread line is in no sum" in page
    assert upload((HEADER + GOOD + GOOD.replace("12.50", "=1+1")).encode()).status_code == 302  # type: ignore[attr-defined]
    again = html(client.get(f"/statements/{found.pk + 1}/"))
    assert "This is the very same file" in again and "as you had them the last time" in again
    assert client.post(path, form).status_code == 302 and Statement.objects.count() == 2


@pytest.mark.browser
@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_the_pages_are_sound_in_a_browser(books: Books, visitor: Visitor, theme: str, width: int) -> None:
    operation = done(books)
    books.credit(operation.amount_minor or 0, operation_identity=operation.identity)
    books.credit(900, operation_identity="local/billing.create_credit/nobody")
    books.credit(700)
    read = books.read()
    visitor.page.set_viewport_size({"width": width, "height": 900})
    visitor.context.add_cookies([{"name": "theme", "value": theme, "url": visitor.url}])
    visitor.sign_in("tomas")
    page = visitor.goto("/statements/")
    page.get_by_label("File", exact=True).set_input_files(
        files=[
            {"name": "notes.csv", "mimeType": "text/csv", "buffer": (HEADER + GOOD * 3 + "CR-2,1e2,,,,,\n").encode()}
        ]
    )
    page.get_by_role("button", name="Upload it").click()
    page.wait_for_url("**/statements/*/")
    if SHOTS:
        page.screenshot(path=Path(SHOTS) / f"columns-{width}-{theme}.png", full_page=True)
    visitor.assert_sound()
    page.get_by_role("button", name="Take it in").click()
    page.wait_for_load_state()
    file = Statement.objects.latest("number")
    assert file.columns is not None
    books.work(file)
    waiting = books.ask()
    Statement.objects.filter(pk=waiting.pk).update(
        problem="Billing gave no complete answer (ReadTimeout).", failures=3,
        due_at=clock.read() + dt.timedelta(minutes=2),
    )  # fmt: skip
    stopped = books.ask()
    assert statement_stopping.stop(number=stopped.pk, reason="It is the wrong month.", principal=books.tomas).ok
    seen = {
        "stopped": f"/statements/{stopped.pk}/", "stop": f"/statements/{waiting.pk}/?act=stop",
        "list": "/statements/", "result": f"/statements/{read.pk}/", "file": f"/statements/{file.pk}/?result=unread",
        "waiting": f"/statements/{waiting.pk}/", "cases": "/cases/",
        "case": f"/cases/{Case.objects.get().pk}/",
    }  # fmt: skip
    for name, path in seen.items():
        page = visitor.goto(path)
        if SHOTS:
            page.screenshot(path=Path(SHOTS) / f"{name}-{width}-{theme}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} is wider than {width}"
        visitor.assert_sound()
