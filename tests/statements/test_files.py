"""Files from elsewhere: hostile ones, hostile lines in good ones, and what is taken in to the last line."""

import csv
import datetime as dt
import io
import random
import signal
from typing import Any

import pytest
from django.test import Client

from reconciliation import csvfile, statement_queries
from reconciliation.columns import BadLine, Columns, amount, moment, parse
from reconciliation.models import Case, Operation, Statement
from reconciliation.services import statement_reading, statements
from tests.statements.conftest import Books
from tests.statements.test_judging import done, results

HEADER = "Number,Total,Currency,Created,operation_identity,Customer,Status\n"
COLUMNS = Columns(reference=0, amount=1, currency=2, at=3, identity=4, account=5, status=6)
GOOD = "CR-1,12.50,USD,2026-10-31,,cus_x,issued\n"


def take(books: Books, text: str | bytes, columns: Columns = COLUMNS, *, work: bool = True) -> Statement:
    content = text if isinstance(text, bytes) else text.encode()
    taken = statements.take_file(system="billing", name="their export.csv", content=content, principal=books.tomas)
    assert taken.statement is not None, taken.code
    assert statements.set_columns(number=taken.statement.pk, columns=columns, principal=books.tomas).ok
    return books.work(taken.statement) if work else taken.statement


def test_good_lines_are_taken_in_and_each_bad_one_is_told_with_its_line(books: Books) -> None:
    bad = [
        ("CR-2,1e2,USD,2026-10-31,,,", "The amount “1e2”"),
        ("CR-3,NaN,USD,2026-10-31,,,", "The amount “NaN”"),
        ("CR-4,١٢,USD,2026-10-31,,,", "The amount “١٢”"),
        ("CR-5,-5.00,USD,2026-10-31,,,", "The amount “-5.00”"),
        ("CR-6,0,USD,2026-10-31,,,", "must be more than zero"),
        ('CR-7,"12,50",USD,2026-10-31,,,', "The amount “12,50”"),
        ("CR-8,1.005,USD,2026-10-31,,,", "more decimal places"),
        ("CR-9,9999999999999999,USD,2026-10-31,,,", "larger than any amount"),
        ("CR-10,5,XXX,2026-10-31,,,", "The currency “XXX”"),
        ("CR-11,5,USD,31.10.2026,,,", "The date “31.10.2026”"),
        ("CR-12,5,USD,２０２６-10-31,,,", "The date"),
        ("CR-13,5,USD,2026-02-30,,,", "The date “2026-02-30”"),
        (",5,USD,2026-10-31,,,", "The reference is empty"),
        ("CR-14,5,USD,2026-10-31", "It has 4 columns and the header has 7"),
        ("CR-\0,5,USD,2026-10-31,,,", "a character that no text can hold"),
        ('CR-15,"5"5,USD,2026-10-31,,,', "quotation marks"),
        (f"{'x' * 300},5,USD,2026-10-31,,,", "longer than 200"),
    ]
    text = HEADER + GOOD + "\n".join(line for line, _ in bad) + "\n\n  ,,,,,,\n" + GOOD.replace("CR-1", "CR-99")
    found = take(books, text)
    assert found.stage == "finished"
    unread = list(found.lines.filter(result="unread").order_by("number"))
    assert [one.number for one in unread] == list(range(3, 3 + len(bad)))
    for one, (_, told) in zip(unread, bad, strict=True):
        assert told in one.tells, (one.number, one.tells)
    assert results(found)["not_ours"] == ["CR-1", "CR-99"]
    [total] = statement_queries.totals(statement=found)
    assert total.whole.theirs == (2, 2500)
    assert statement_queries.result_counts(statement=found)["unread"] == len(bad)


def test_a_quote_that_is_never_closed_swallows_its_lines_and_says_so(books: Books) -> None:
    found = take(books, HEADER + GOOD + 'CR-2,"5,USD,2026-10-31,,,\n' + GOOD * 3)
    [unread] = found.lines.filter(result="unread")
    assert unread.number == 3 and "lines 3 to 6" in unread.tells
    assert results(found)["not_ours"] == ["CR-1"]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "empty_file"),
        (b"\xef\xbb\xbf \r\n", "empty_file"),
        (b"a" * (csvfile.MAX_BYTES + 1), "too_large"),
        ("Number,Total\n".encode("utf-16"), "not_text"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\0\0\0\0\0", "not_text"),
        (b"Number,Total\n\x81\x8d,5\n", "not_text"),
        (b"only one column\n5\n", "no_header"),
        (b",".join([b"a"] * 300) + b"\n", "no_header"),
        (b'"' * 100_000, "no_header"),
        (b"a,b\n" * (csvfile.MAX_LINES + 5), "too_many_lines"),
        (b"a,b\r" * (csvfile.MAX_LINES + 5), "too_many_lines"),
    ],
)
def test_what_is_no_such_file_is_refused_whole(books: Books, content: bytes, code: str) -> None:
    taken = statements.take_file(system="billing", name="x", content=content, principal=books.tomas)
    assert taken.code == code and not Statement.objects.exists()


@pytest.mark.parametrize("seed", range(12))
def test_no_rubbish_breaks_the_reader(seed: int) -> None:
    rng = random.Random(seed)
    parts = ['"', ",", ";", "\n", "\r", "\r\n", "\t", "=1+1", "\0", "é", "x" * 500, "\u2028", "🙂", " ", "1.5"]
    text = "a,b\n" + "".join(rng.choices(parts, k=3000))
    rows = list(csvfile.rows(text=text, delimiter=",", width=2))
    assert all(row.line > 1 for row in rows if not row.problem)
    for row in rows:
        assert row.problem or (len(row.values) == 2 and "\0" not in "".join(row.values))


@pytest.mark.parametrize(
    ("content", "encoding", "delimiter"),
    [
        ("\ufeffA;B;C\n1;2;3\n".encode(), "utf-8-sig", ";"),
        ("Kürzel\tB,1\tC\n".encode(), "utf-8", "\t"),
        ("Kürzel,B\n".encode("cp1252"), "cp1252", ","),
    ],
)
def test_encoding_and_delimiter_are_found_and_said(content: bytes, encoding: str, delimiter: str) -> None:
    found = csvfile.read(content=content)
    assert (found.encoding, found.delimiter, found.guessed) == (encoding, delimiter, encoding == "cp1252")
    assert found.header[0] in ("A", "Kürzel")


@pytest.mark.parametrize(
    ("text", "convention", "minor"),
    [
        ("1,234.56", "point", 123456), ("1234.5", "point", 123450), ("1.234,56", "comma", 123456),
        ("12,5", "comma", 1250), ("123456", "minor", 123456), ("1200", "comma", 120000),
        ("1,23.45", "point", None), ("1 234,56", "comma", None), ("$5", "point", None), ("5.00", "minor", None),
        ("1.234,567", "comma", None), ("1_000", "point", None), ("+5", "point", None), ("٥", "minor", None),
        ("1.234.567,89", "comma", 123456789), ("12.50", "comma", None), ("", "point", None),
        ("Infinity", "comma", None),
    ],
)  # fmt: skip
def test_an_amount_is_read_as_was_said_or_not_at_all(text: str, convention: str, minor: int | None) -> None:
    try:
        assert amount(text=text, currency="USD", convention=convention, minus=False).minor == minor
    except BadLine:
        assert minor is None


def test_a_minus_is_asked_for_where_it_was_said() -> None:
    assert amount(text="-5.00", currency="USD", convention="point", minus=True).minor == 500
    for text in ("5.00", "--5.00", "-"):
        with pytest.raises(BadLine):
            amount(text=text, currency="USD", convention="point", minus=True)
    assert amount(text="5", currency="JPY", convention="point", minus=False).minor == 5


@pytest.mark.parametrize(
    ("text", "date_format", "zone", "found"),
    [
        ("2026-10-31", "iso", "Europe/Berlin", "2026-10-30T23:00:00+00:00"),
        ("2026-10-31T12:00:00Z", "iso", "Europe/Berlin", "2026-10-31T12:00:00+00:00"),
        ("31.10.2026 12:30", "dmy.", "UTC", "2026-10-31T12:30:00+00:00"),
        ("10/31/2026", "mdy/", "UTC", "2026-10-31T00:00:00+00:00"),
        ("31/10/2026", "mdy/", "UTC", ""),
        ("2026-03-29 02:30", "iso", "Europe/Berlin", ""),  # the clock is put forward over it
        ("1793454300", "seconds", "UTC", "2026-10-31T13:45:00+00:00"),
        ("99999999999999", "seconds", "UTC", ""),
        ("0001-01-01", "iso", "Asia/Tokyo", ""),
        ("2026-10-31T25:00", "iso", "UTC", ""),
        ("20261031", "iso", "UTC", ""),
    ],
)
def test_a_date_is_read_as_was_said_or_not_at_all(text: str, date_format: str, zone: str, found: str) -> None:
    try:
        assert moment(text=text, date_format=date_format, zone=zone).isoformat() == found
    except BadLine:
        assert found == ""


def test_a_file_shows_what_is_there_and_never_proves_what_is_not(books: Books) -> None:
    ours, other = done(books), done(books, "CS-8815")
    first, last = sorted([ours, other], key=lambda one: one.settled_at or one.created_at)
    day = dt.timedelta(days=1)
    about = f"{(first.created_at - day).isoformat()},,,\n"
    until = f"{((last.settled_at or last.created_at) + day).isoformat()},,,\n"
    line = f"{ours.external_reference},{(ours.amount_minor or 0) / 100:.2f},USD,{first.created_at.isoformat()},"
    text = HEADER + f"X-1,1.00,USD,{about}X-2,1.00,USD,{until}" + line + f"{ours.identity},,issued\n"
    for _ in range(2):
        found = take(books, text)
        assert results(found) == {
            "confirmed": [ours.external_reference], "not_ours": ["X-1", "X-2"], "missing": [other.external_reference]
        }  # fmt: skip
    assert "proves nothing" in found.ours.get(result="missing").tells and not Case.objects.exists()
    text = text.replace(line, line.replace(".00,USD,", ".01,USD,"))
    for _ in range(2):
        found = take(books, text)
        assert results(found)["different"] == [ours.external_reference]
    assert Case.objects.get().operation == ours and "an uploaded file" in Case.objects.get().why
    assert not Operation.objects.exclude(state="succeeded").exists()


def test_the_very_same_file_is_said_so_and_its_columns_are_remembered(books: Books) -> None:
    first = take(books, HEADER + GOOD)
    again = statements.take_file(
        system="billing", name="b.csv", content=(HEADER + GOOD).encode(), principal=books.tomas
    )
    assert again.detail == {"before": first.label} and again.statement is not None
    file = again.statement.file
    assert statement_queries.same_file(file=file) == [first]
    assert statement_queries.remembered(file=file) == COLUMNS.plain()
    assert statements.set_columns(number=first.pk, columns=COLUMNS, principal=books.tomas).code == "not_waiting"
    far = Columns(reference=0, amount=1, at=7, currency=2)
    unlike = statements.set_columns(number=again.statement.pk, columns=far, principal=books.tomas)
    assert unlike.code == "unlike_columns"


@pytest.mark.parametrize("point", ["statement.page.stored.before", "statement.page.stored.after"])
def test_a_reader_killed_in_a_file_is_followed_by_another(books: Books, point: str) -> None:
    text = HEADER + "".join(GOOD.replace("CR-1", f"CR-{number}") for number in range(11)) + "broken\n"
    found = take(books, text, work=False)
    assert books.reader(found, die_at=point) == -signal.SIGKILL
    assert found.lines.count() == (3 if point.endswith("after") else 0)
    books.due(found)
    assert books.work(found).stage == "finished"
    assert [one.number for one in found.lines.order_by("number")] == list(range(2, 14))
    assert statement_queries.result_counts(statement=found) == {"not_ours": 11, "unread": 1, "missing": 0}


def test_a_file_that_broke_off_once_goes_on_at_once_and_says_nothing_of_it(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object, **__: object) -> bool:
        raise ZeroDivisionError

    monkeypatch.setattr(statement_reading, "PART", 1)
    found = take(books, HEADER + GOOD + GOOD.replace("CR-1", "CR-2"), work=False)
    for part, again in (("_store_part", "reading"), ("statement_matching.match_some", "matching")):
        with monkeypatch.context() as patch:
            patch.setattr(f"reconciliation.services.statement_reading.{part}", breaks)
            books.due(found)
            assert "broke off" in books.work(found).problem and (found.stage, found.failures) == (again, 1)
        books.due(found)
        statement_reading.work(number=found.pk, seconds=0)  # one part of the work
        found.refresh_from_db()
        assert found.lines.exists() and (found.problem, found.failures) == ("", 0)
        assert found.pk in dict(statement_reading.due(limit=10)), "whoever is free next goes on"
        monkeypatch.setattr(statement_reading, "PART", 1000)
    assert books.work(found).stage == "finished"


def test_what_is_exported_starts_no_formula(books: Books) -> None:
    evil = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", '=HYPERLINK("x")', "＝1"]
    quoted = [value.replace('"', '""') for value in evil]
    found = take(books, HEADER + "".join(f'"{one}",1.00,USD,2026-10-31,,"{one}",\n' for one in quoted))
    client = Client()
    client.force_login(books.world.people["tomas"])
    answer = client.get(f"/statements/{found.pk}/export")
    content = b"".join(answer.streaming_content)  # type: ignore[attr-defined]
    assert content.startswith(b"\xef\xbb\xbf") and answer["Content-Disposition"].endswith(f'"{found.label}.csv"')
    text = content.decode("utf-8-sig")
    rows = list(csvfile.rows(text=text, delimiter=",", width=len(statement_queries.EXPORTED)))
    assert len(rows) == len(evil) and not any(row.problem for row in rows)
    for row in rows:
        assert not any(value[:1] in "=+-@\t\r＝" for value in row.values if value), row
    assert len(text.splitlines()[0].split(",")) == len(statement_queries.EXPORTED)
    fields: Any = [one.strip() for one in evil]
    assert [row.values[2].lstrip("'") for row in rows] == fields


HOSTILE = {
    "markup": "</td><script>alert(1)</script>",
    "a false line": "Acme\nAmount: 1.00\r\n1,2,3",
    "a false row": 'Acme",1.00,USD,"',
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_d13_what_outsiders_wrote_is_one_field_of_the_export_and_the_amount_is_true(books: Books, text: str) -> None:
    said = text.replace('"', '""')
    long = "x" * 50_000
    lines = (
        f'"{said}",12.50,USD,2026-10-31,,"{said}",\n{long},7.00,USD,2026-10-31,,,\nCR-2,8.00,USD,2026-10-31,,{long},\n'
    )
    found = take(books, HEADER + lines + GOOD)
    client = Client()
    client.force_login(books.world.people["tomas"])
    content = b"".join(client.get(f"/statements/{found.pk}/export").streaming_content)  # type: ignore[attr-defined]
    rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    assert [(one["Their amount"], one["Currency"]) for one in rows] == [
        ("12.50", "USD"), ("", ""), ("", ""), ("12.50", "USD"),
    ]  # fmt: skip
    assert (rows[0]["Their reference"], rows[0]["Account"]) == (text, text), "whole, and one field"
    assert all(None not in one and None not in one.values() for one in rows), "no row is longer or shorter"
    for one in rows[1:3]:
        assert one["Result"] == "Unread" and "holds more than 10,000 characters" in one["What it tells"]
    page = client.get(f"/statements/{found.pk}/").text
    assert "<script>alert" not in page and "12.50" in page


def test_a_parsed_line_keeps_what_it_said() -> None:
    line = parse(values=("CR-1", "12.50", "usd", "2026-10-31", "i", "Acme", "Voided"), columns=COLUMNS)
    assert (line.reference, line.money.minor, line.money.currency, line.void) == ("CR-1", 1250, "USD", True)
