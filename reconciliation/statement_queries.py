"""Reads for the pages of statements: progress, totals that add up, and the lines behind each figure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import BigIntegerField, Case, Count, F, QuerySet, Sum, Value, When

from reconciliation import csvfile, matching
from reconciliation.columns import CONVENTIONS, FORMATS
from reconciliation.models import Difference, Statement, StatementFile, StatementLine, StatementOurs
from reconciliation.models.statement import LineResult
from runs.money import Money

R = LineResult
NO_CASE = ("", "")
LATEST = 100
PREVIEW = 5
_STANDS = Case(When(void=True, then=Value(0)), default=F("amount_minor"), output_field=BigIntegerField())


def latest() -> QuerySet[Statement]:
    """The newest statements with how many lines each has."""
    found = Statement.objects.select_related("asked_by", "file").defer("file__content")
    return found.annotate(counted=Count("lines")).order_by("-number")[:LATEST]


def strange() -> QuerySet[Difference]:
    """Effects under our name that no operation here has, and that nobody has explained yet."""
    found = Difference.objects.filter(case__isnull=True, noted_at__isnull=True)
    return found.select_related("line", "statement").order_by("found_at")


def result_counts(*, statement: Statement) -> dict[str, int]:
    """How many lines of theirs turned out as what, and how many operations only we have."""
    found = statement.lines.order_by().values_list("result").annotate(number=Count("pk"))
    counts = {str(result): number for result, number in found}
    counts[R.MISSING] = statement.ours.filter(result=R.MISSING).count()
    return counts


def totals(*, statement: Statement) -> list[matching.Totals]:
    """Both sides by currency; every line that could be read, and every operation, is in exactly one row."""
    lines = statement.lines.exclude(result__in=["", R.UNREAD]).order_by().values_list("currency", "result")
    ours = statement.ours.order_by().values_list("currency", "result")
    return matching.totals(
        theirs=lines.annotate(number=Count("pk"), minor=Sum(_STANDS)),
        ours=ours.annotate(number=Count("pk"), minor=Sum("amount_minor")),
    )


def whole(*, statement: Statement) -> dict[str, tuple[int, int]]:
    """The list's own sums by currency, past every judgement: (lines, minor units that stand)."""
    lines = statement.lines.exclude(currency="").order_by().values_list("currency")
    return {code: (number, minor) for code, number, minor in lines.annotate(number=Count("pk"), minor=Sum(_STANDS))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row of the result: a line of theirs, an operation of ours, or both."""

    line: StatementLine | None
    ours: StatementOurs | None
    result: str

    @property
    def word(self) -> str:
        return str(R(self.result).label) if self.result else "Not compared yet"

    @property
    def tells(self) -> str:
        return (self.line.tells if self.line else "") or (self.ours.tells if self.ours else "")


def entries(*, statement: Statement, result: str, start: int = 0, limit: int | None = None) -> list[Entry]:
    """Lines of that result (empty: all of theirs) in the order of the list, or operations that only we have."""
    end = None if limit is None else start + limit
    if result == R.MISSING:
        rows = statement.ours.filter(result=R.MISSING).select_related("operation__run").order_by("pk")[start:end]
        return [Entry(line=None, ours=one, result=one.result) for one in rows]
    lines = statement.lines.select_related("operation__run").order_by("number", "pk")
    lines = lines.filter(result=result) if result else lines
    found = list(lines[start:end])
    wanted = {one.operation_id for one in found if one.operation_id}
    ours: dict[Any, StatementOurs] = {one.operation_id: one for one in statement.ours.filter(operation__in=wanted)}
    return [Entry(line=one, ours=ours.get(one.operation_id), result=one.result) for one in found]


EXPORTED = (
    "Line", "Result", "Their reference", "Identity", "Account", "Their amount", "Currency", "Recorded", "Void",
    "Our reference", "Our amount", "Our currency", "Run", "What it tells", "Case", "Kind of case",
)  # fmt: skip


def exported(*, statement: Statement) -> Iterator[list[object]]:
    """Every line and every operation that only we have, as rows of a file."""
    ours = {one.operation_id: one for one in statement.ours.select_related("operation")}
    cases = _cases(statement)
    for line in statement.lines.select_related("operation").order_by("number", "pk").iterator(chunk_size=2000):
        mine = ours.get(line.operation_id) if line.operation_id else None
        yield [*_row(Entry(line=line, ours=mine, result=line.result)), *cases.get(line.operation_id, NO_CASE)]
    for one in statement.ours.filter(result=R.MISSING).select_related("operation").order_by("pk"):
        yield [*_row(Entry(line=None, ours=one, result=one.result)), *cases.get(one.operation_id, NO_CASE)]


def _cases(statement: Statement) -> dict[Any, tuple[str, str]]:
    """By operation, the case that this statement opened about it: its name and kind."""
    found = statement.differences.filter(case__isnull=False).select_related("case").order_by("pk")
    return {one.case.operation_id: (one.case.label, one.case.get_kind_display()) for one in found if one.case}


def _plain(minor: int | None, currency: str) -> str:
    return "" if minor is None or not currency else Money(minor, currency).plain()


def _row(entry: Entry) -> list[object]:
    line, ours = entry.line, entry.ours
    operation = ours.operation if ours else None
    theirs: list[object] = [""] * 7
    if line is not None:
        at = line.at.isoformat() if line.at else ""
        theirs = [
            line.reference,
            line.identity,
            line.account,
            _plain(line.amount_minor, line.currency),
            line.currency,
            at,
        ]
        theirs.append("void" if line.void else "")
    mine: list[object] = [""] * 4
    if ours is not None and operation is not None:
        mine = [operation.external_reference or "", _plain(ours.amount_minor, ours.currency), ours.currency]
        mine.append(str(operation.run_id))
    return [line.number if line else "", entry.word, *theirs, *mine, entry.tells]


# ---- files


def remembered(*, file: StatementFile) -> dict[str, Any] | None:
    """What the columns meant the last time that a file of this system had this very header."""
    same = Statement.objects.filter(system=file.statement.system, file__header=file.header, columns__isnull=False)
    columns: dict[str, Any] | None = same.order_by("-number").values_list("columns", flat=True).first()
    return columns


def preview(*, file: StatementFile) -> list[csvfile.Row]:
    """The first lines, as they were read."""
    text = csvfile.read(content=bytes(file.content), delimiter=file.delimiter).text
    rows = csvfile.rows(text=text, delimiter=file.delimiter, width=len(file.header))
    return [row for row, _ in zip(rows, range(PREVIEW), strict=False)]


def same_file(*, file: StatementFile) -> list[Statement]:
    """Other statements out of the very same bytes."""
    found = Statement.objects.filter(file__digest=file.digest).exclude(pk=file.pk)
    return list(found.order_by("-number")[:5])


def columns_in_words(*, statement: Statement, header: list[str]) -> list[tuple[str, str]]:
    """What was said about the columns of a file."""
    said = statement.columns or {}
    names = {"reference": "Reference", "amount": "Amount", "currency": "Currency", "at": "Date", "identity": "Identity",
             "account": "Account", "status": "Status"}  # fmt: skip
    told = [(word, header[said[name]]) for name, word in names.items() if isinstance(said.get(name), int)]
    if said.get("currency_fixed"):
        told.append(("Currency of every line", said["currency_fixed"]))
    told.append(("Amounts are written", CONVENTIONS.get(said.get("convention", ""), "")))
    told.append(("Dates are written", f"{FORMATS.get(said.get('date_format', ''), '')}; zone {said.get('zone', '')}"))
    return told
