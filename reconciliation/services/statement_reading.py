"""A worker's part in statements: one page of the other side's list, or some lines of a file, in each transaction.

What is stored and how far it has come are one commit, so whoever goes on after a crash reads the next page; the same
page twice adds nothing. No call is made inside a transaction.
"""

import datetime as dt
import logging
import time
from collections.abc import Iterator
from itertools import islice

from django.db import DatabaseError, InterfaceError, transaction
from django.db.models import F, Max, Min

from reconciliation import csvfile
from reconciliation.columns import BadLine, Columns, columns_from, parse
from reconciliation.models import Statement, StatementFile, StatementLine
from reconciliation.models.statement import LineResult
from reconciliation.services import gates, statement_matching
from runs import clock, faultpoints, retry
from runs.texts import storable
from runs.tools.base import Listed, ListPage, Unreachable
from runs.tools.registry import ledger

log = logging.getLogger(__name__)
IN_HAND = dt.timedelta(seconds=60)  # a worker that says nothing for so long has gone; another goes on
PART = 1000  # lines of a file in one transaction
MOST_PAGES = 20_000


def claim(*, number: int) -> Statement | None:
    """Take the statement if it is due; of two who come at once one gets it."""
    due = Statement.objects.filter(pk=number, due_at__lte=clock.ClockTimestamp())
    if not due.update(due_at=clock.ClockTimestamp() + IN_HAND):
        return None
    return Statement.objects.get(pk=number)


def due(*, limit: int) -> list[tuple[int, dt.datetime]]:
    """Number and due time of statements that are due, the longest waiting first."""
    found = Statement.objects.filter(due_at__lte=clock.ClockTimestamp()).order_by("due_at")
    return [(number, at) for number, at in found.values_list("pk", "due_at")[:limit] if at is not None]


def work(*, number: int, seconds: float) -> int:
    """Go on with a statement that is due, for about so long; says in how many steps. Then it is due again at once,
    unless it is finished or the other side wants time."""
    statement = claim(number=number)
    if statement is None:
        return 0
    until, steps = time.monotonic() + seconds, 0
    try:
        while _step(statement, until):
            steps += 1
            statement.refresh_from_db()
            if time.monotonic() > until:
                break
    except (DatabaseError, InterfaceError):
        raise  # it is due again when this worker's time with it is over
    except Exception as problem:  # one statement that nobody foresaw must not be tried at once for ever, unseen
        log.exception("%s broke off", statement.label)
        pause = retry.backoff(attempt=statement.failures + 5, base=1, cap=300)
        _put_off(statement, f"It broke off ({type(problem).__name__}).", clock.now() + pause, failed=True)
        return steps
    going = Statement.objects.filter(pk=number, finished_at__isnull=True, stopped_at__isnull=True, problem="")
    going.update(due_at=clock.ClockTimestamp())
    return steps + 1


def _step(statement: Statement, until: float) -> bool:
    """The next part of the work; False when there is none that could be done now."""
    if statement.stage == "reading":
        return _file_part(statement, until) if statement.is_file else _page(statement)
    if statement.stage == "matching":
        return statement_matching.match_some(statement=statement, in_hand=IN_HAND)
    if statement.stage == "comparing":
        return statement_matching.compare_some(statement=statement, in_hand=IN_HAND)
    return False


def _page(statement: Statement) -> bool:
    """Read one page and store it."""
    assert statement.since is not None and statement.until is not None
    go = gates.may_read(systems=[statement.system])
    if isinstance(go, gates.Wait):
        _put_off(statement, f"It waits for {go.waits_for}.", go.until, failed=False)
        return False
    page: ListPage | None = None
    down: Unreachable | None = None
    try:
        page = ledger(statement.system).list_recorded(
            since=statement.since, until=statement.until, cursor=statement.cursor
        )
    except Unreachable as problem:
        down = problem
    faultpoints.reach("statement.page.asked")
    gates.heard_reading(systems=[statement.system], go=go, problem=down)
    if page is None:
        pause = retry.backoff(attempt=statement.failures + 1, base=1, cap=300)
        _put_off(statement, str(down), clock.now() + pause, failed=True)
        return False
    return _store_page(statement, page)


def _put_off(statement: Statement, problem: str, until: dt.datetime, *, failed: bool) -> None:
    mine = Statement.objects.filter(
        pk=statement.pk, pages=statement.pages, cursor=statement.cursor, stopped_at__isnull=True
    )
    mine.update(problem=problem, due_at=until, failures=F("failures") + int(failed))


def _store_page(statement: Statement, page: ListPage) -> bool:
    with transaction.atomic(durable=True):
        mine = Statement.objects.select_for_update().get(pk=statement.pk)
        if not _awaits(mine, statement):
            return False  # another worker has stored this page, or it was stopped: then it is read again later
        added = _add(mine, page)
        if page.cursor and (not added or mine.pages >= MOST_PAGES):
            mine.problem = "The list goes in circles: a page brought nothing new and says that more follows."
            mine.due_at, mine.failures = clock.now() + retry.backoff(attempt=6, cap=300), mine.failures + 1
            mine.save(update_fields=["problem", "due_at", "failures"])
            return False
        mine.cursor, mine.pages = page.cursor, mine.pages + 1
        mine.problem, mine.failures, mine.due_at = "", 0, clock.now() + IN_HAND
        if not page.cursor:
            mine.read_at = clock.now()
        mine.save(update_fields=["cursor", "pages", "problem", "failures", "due_at", "read_at"])
        faultpoints.reach("statement.page.stored.before")
    faultpoints.reach("statement.page.stored.after")
    return True


def _add(statement: Statement, page: ListPage) -> int:
    """Store what the page has and no page before it had, at the same cost however many there were; says how many."""
    read: dict[str, StatementLine] = {}
    for one in page.lines:
        line = _line(statement, one)
        read.setdefault(line.key, line)
    known = set(statement.lines.filter(key__in=read).values_list("key", flat=True))
    new = [line for line in read.values() if line.key not in known]
    last = statement.lines.order_by("-number").values_list("number", flat=True).first() or 0
    for place, line in enumerate(new, start=last + 1):
        line.number = place
    StatementLine.objects.bulk_create(new, batch_size=500)
    return len(new)


def _awaits(mine: Statement, known: Statement) -> bool:
    """Is the locked statement still where it was when this part was read, and is it to go on?"""
    return mine.stopped_at is None and (mine.pages, mine.cursor, mine.read_at) == (known.pages, known.cursor, None)


def _line(statement: Statement, one: Listed) -> StatementLine:
    return StatementLine(
        statement=statement,
        key=storable(one.key)[:200],
        reference=storable(one.reference)[:200],
        identity=storable(one.identity)[:200],
        account=storable(one.account)[:200],
        amount_minor=one.amount_minor,
        currency=one.currency,
        at=one.at,
        void=one.void,
        raw=storable(one.raw),
    )


def _file_part(statement: Statement, until: float) -> bool:
    """Take in lines of a file, some in each transaction, from where it was left."""
    kept = StatementFile.objects.get(pk=statement.pk)
    text = csvfile.read(content=bytes(kept.content), delimiter=kept.delimiter).text
    rows = csvfile.rows(text=text, delimiter=kept.delimiter, width=len(kept.header))
    done = int(statement.cursor or 0)
    left = (row for row in rows if row.line > done)
    assert statement.columns is not None
    columns = columns_from(statement.columns)
    while True:
        part = list(islice(left, PART))
        if not _store_part(statement, part, columns):
            return False
        if len(part) < PART or time.monotonic() > until:
            return True
        statement.refresh_from_db()


def _store_part(statement: Statement, part: list[csvfile.Row], columns: Columns) -> bool:
    with transaction.atomic(durable=True):
        mine = Statement.objects.select_for_update().get(pk=statement.pk)
        if not _awaits(mine, statement):
            return False
        now = clock.now()
        StatementLine.objects.bulk_create(_read(mine, part, columns, now), ignore_conflicts=True, batch_size=500)
        if part:
            mine.cursor, mine.pages = str(part[-1].line), mine.pages + 1
        mine.problem, mine.failures, mine.due_at = "", 0, clock.now() + IN_HAND
        if len(part) < PART:
            mine.read_at, mine.cursor = clock.now(), ""
            span = mine.lines.aggregate(first=Min("at"), last=Max("at"))
            if span["first"] is not None:
                mine.since, mine.until = span["first"], span["last"] + dt.timedelta(microseconds=1)
        mine.save(update_fields=["cursor", "pages", "problem", "failures", "due_at", "read_at", "since", "until"])
        faultpoints.reach("statement.page.stored.before")
    faultpoints.reach("statement.page.stored.after")
    return True


def _read(statement: Statement, part: list[csvfile.Row], columns: Columns, now: dt.datetime) -> Iterator[StatementLine]:
    """Each row as a line: read strictly, or unread with the reason."""
    for row in part:
        line = StatementLine(statement=statement, number=row.line, key=f"line {row.line}")
        line.raw = {"values": [storable(value[:1000]) for value in row.values[: csvfile.MAX_COLUMNS]]}
        try:
            if row.problem:
                raise BadLine(row.problem)
            read = parse(values=row.values, columns=columns)
        except BadLine as problem:
            line.result, line.tells, line.judged_at = LineResult.UNREAD, str(problem), now
        else:
            line.reference, line.identity, line.account = read.reference, read.identity, read.account
            line.amount_minor, line.currency = read.money.minor, read.money.currency
            line.at, line.void = read.at, read.void
        yield line
