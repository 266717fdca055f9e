"""Judging a statement that is all there: each operation with its lines in one transaction, under its run's lock.

Nothing here settles anything. A difference opens a case, once however often it is found; what is not confirmed is asked
about now.
"""

import datetime as dt
import hashlib
import json
import uuid
from collections.abc import Iterable

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from reconciliation import late, matching, moves
from reconciliation.attempts import records_in
from reconciliation.case_opening import open_case
from reconciliation.matching import Judged, Ours, Theirs, accounts_of, judge
from reconciliation.models import Case, Difference, Operation, Statement, StatementLine, StatementOurs, TheirName
from reconciliation.models.operation import SETTLED, OperationState
from reconciliation.models.statement import LineResult
from reconciliation.services.statement_stopping import held_going
from runs import clock, faultpoints, record, transitions
from runs.models import Principal, Run
from runs.services import principals
from runs.tools.registry import ledger

R = LineResult
DONE = (OperationState.SUCCEEDED, OperationState.COMPENSATED)
SOME = 500  # lines, or operations, looked at in one step
AROUND = dt.timedelta(days=1)  # how far their clock and ours may be apart


def match_some(*, statement: Statement, in_hand: dt.timedelta) -> bool:
    """Judge the next lines, with all others that belong to the same operations. False when another worker has it, or
    it was stopped."""
    open_lines = list(statement.lines.filter(judged_at__isnull=True).order_by("id")[:SOME])
    if not open_lines:
        return _advance(statement, in_hand, matched_at=clock.now(), cursor="")
    found = _operations(statement.system, open_lines)
    for operation in {one.pk: one for one in found.values()}.values():
        _judge(statement, operation)
    with transaction.atomic(durable=True):
        nobodys = [one for one in open_lines if one.pk not in found]
        if held_going(statement=statement):
            _nobodys(statement, nobodys)
    return _advance(statement, in_hand)


def _advance(statement: Statement, in_hand: dt.timedelta, **fields: object) -> bool:
    mine = Statement.objects.filter(
        pk=statement.pk, matched_at=statement.matched_at, finished_at__isnull=True, stopped_at__isnull=True
    )
    return bool(mine.update(**{"due_at": clock.now() + in_hand, "problem": "", "failures": 0, **fields}))


def _operations(system: str, lines: Iterable[StatementLine]) -> dict[int, Operation]:
    """The operation of each line that has one, by the line's id: by identity, else by the other side's reference."""
    lines = list(lines)
    of_system = Operation.objects.filter(system=system)
    by_identity = {one.identity: one for one in of_system.filter(identity__in={one.identity for one in lines} - {""})}
    references = {one.reference for one in lines if one.identity not in by_identity}
    names = TheirName.objects.filter(system=system, name__in=references).select_related("operation")
    by_reference = {one.name: one.operation for one in names}
    pairs = ((one, by_identity.get(one.identity) or by_reference.get(one.reference)) for one in lines)
    return {one.pk: operation for one, operation in pairs if operation is not None}


def _judge(statement: Statement, operation: Operation) -> None:
    """One operation with all its lines in this statement."""
    actor = principals.system()
    with transaction.atomic(durable=True):
        run, operation = moves.lock(operation_id=operation.pk)
        lines = _lines_of(statement, operation) if held_going(statement=statement) else []
        if not lines:
            return  # another worker has judged them, or it was stopped
        ours, now = ours_of(operation), clock.now()
        if StatementOurs.objects.filter(statement=statement, operation=operation).exists():
            # it was settled by this very name after its other lines were judged
            ids = [one.pk for one in lines]
            StatementLine.objects.filter(pk__in=ids).update(
                result=R.DUPLICATE, tells="listed besides the line that is it", operation=operation, judged_at=now
            )
            return
        judged = judge(ours=ours, lines=[theirs_of(one) for one in lines])
        for line, (result, tells) in zip(lines, judged.lines, strict=True):
            line.result, line.tells, line.operation, line.judged_at = R(result), tells, operation, now
            line.save(update_fields=["result", "tells", "operation", "judged_at"])
        StatementOurs.objects.create(
            statement=statement,
            operation=operation,
            amount_minor=ours.stands,
            currency=ours.currency or lines[0].currency,
            result=judged.result,
            tells=judged.tells,
        )
        if operation.is_unconfirmed:
            _ask_now(run, operation, statement, actor)
        elif judged.case:
            _open_once(run, operation, statement, judged, actor)
        faultpoints.reach("statement.judged.before")
    faultpoints.reach("statement.judged.after")


def _lines_of(statement: Statement, operation: Operation) -> list[StatementLine]:
    names = list(operation.their_names.values_list("name", flat=True))  # by value: a subquery is found by no index
    mine = Q(identity=operation.identity) | Q(reference__in=names)
    unjudged = statement.lines.filter(mine, judged_at__isnull=True)
    lines = list(unjudged.select_for_update(of=("self",)).order_by("id"))
    found = _operations(statement.system, lines)
    return [one for one in lines if one.pk in found and found[one.pk].pk == operation.pk]


def theirs_of(line: StatementLine) -> Theirs:
    assert line.amount_minor is not None and line.at is not None
    return Theirs(
        number=line.number,
        reference=line.reference,
        identity=line.identity,
        account=line.account,
        amount_minor=line.amount_minor,
        currency=line.currency,
        at=line.at,
        void=line.void,
    )


def ours_of(operation: Operation) -> Ours:
    """The operation as our record has it."""
    actual = operation.as_settled("actual_minor")
    names = {one.name for one in operation.their_names.all()} - {operation.other_reference}
    settled = "failed" if operation.state in SETTLED else "open"
    state = {OperationState.SUCCEEDED: "succeeded", OperationState.COMPENSATED: "reversed"}.get(
        OperationState(operation.state), settled
    )
    return Ours(
        state=state,
        amount_minor=int(actual) if actual else operation.amount_minor or 0,
        currency=operation.currency,
        accounts=accounts_of(effect=operation.effect),
        reference=operation.external_reference or "",
        references=frozenset(names),
        identity=operation.identity,
        known_second=operation.other_reference,
    )


def _ask_now(run: Run, operation: Operation, statement: Statement, actor: Principal) -> None:
    """A line suggests that it happened: only asking the other side by identity settles it, so that is due now."""
    late.want_look(operation=operation, since=clock.now())
    record.append(
        run=run, kind="probe.requested", actor=actor, operation=str(operation.pk), statement=statement.label
    )  # fmt: skip
    transitions.wake(run=run)


def _key(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _open_once(run: Run, operation: Operation, statement: Statement, judged: Judged, actor: Principal) -> None:
    key = _key(operation.identity, *judged.about)
    if Difference.objects.filter(key=key).exists():
        return
    why = f"{statement.label}, {_source(statement)}: {judged.tells}"
    # what the look at it by identity shows, which follows, is added to this case
    kind, doubts = Case.Kind(judged.case), [":".join(("listed", *judged.about))]
    case = open_case(run=run, operation=operation, kind=kind, doubts=doubts, why=why, actor=actor)
    Difference.objects.create(key=key, statement=statement, case=case)
    late.want_look(operation=operation, since=clock.now())  # by identity, for the case's page


def _source(statement: Statement) -> str:
    return "an uploaded file" if statement.is_file else f"read from {statement.system}"


def _nobodys(statement: Statement, lines: list[StatementLine]) -> None:
    """Lines that no operation here has: under our name, which nobody can explain, or simply somebody else's."""
    now = clock.now()
    under_our_name = [one for one in lines if one.identity.startswith(f"{settings.INSTALLATION}/")]
    strange = {one.pk for one in under_our_name}
    unjudged = StatementLine.objects.filter(judged_at__isnull=True)
    unjudged.filter(pk__in=strange).update(
        result=R.UNKNOWN, tells="it carries an identity of ours that no operation here has", judged_at=now
    )
    others = [one.pk for one in lines if one.pk not in strange]
    unjudged.filter(pk__in=others).update(result=R.NOT_OURS, judged_at=now)
    Difference.objects.bulk_create(
        [
            Difference(key=_key(statement.system, matching.UNKNOWN, one.reference), statement=statement, line=one)
            for one in under_our_name
        ],
        ignore_conflicts=True,
    )


# ---- what only we have


def compare_some(*, statement: Statement, in_hand: dt.timedelta) -> bool:
    """Look at our next operations of the period that no line belongs to. False when it is finished."""
    after = uuid.UUID(statement.cursor) if statement.cursor else None
    looked = list(_candidates(statement, after)[:SOME])
    for operation in looked:
        if in_period(statement=statement, operation=operation):
            _missing(statement, operation)
    if looked:
        return _advance(statement, in_hand, cursor=str(looked[-1].pk))
    _finish(statement)
    return False


def _candidates(statement: Statement, after: uuid.UUID | None) -> QuerySet[Operation]:
    """Succeeded operations whose effect may lie in the period, in the order of their ids."""
    if statement.since is None or statement.until is None:
        return Operation.objects.none()  # a file without a single line that could be read
    found = Operation.objects.filter(
        system=statement.system,
        state__in=DONE,
        reverses__isnull=True,  # what undoes is no record of its own there
        created_at__lt=statement.until + AROUND,
        settled_at__gte=statement.since - AROUND,
    ).exclude(pk__in=StatementOurs.objects.filter(statement=statement).values("operation"))
    found = found.filter(tool__in=ledger(statement.system).tools) if not statement.is_file else found
    found = found.filter(amount_minor__isnull=False) if statement.is_file else found
    found = found.filter(pk__gt=after) if after else found
    return found.prefetch_related("observations", "attempts").order_by("pk")


def recorded_at(*, operation: Operation) -> dt.datetime | None:
    """When the other side says that it recorded it, if it has ever said so."""
    for observation in sorted(operation.observations.all(), key=lambda one: one.at, reverse=True):
        for one in records_in(observation=observation):
            if one.get("reference") == operation.external_reference and one.get("at"):
                return dt.datetime.fromisoformat(str(one["at"]))
    return None


def in_period(*, statement: Statement, operation: Operation) -> bool:
    """Whether the effect certainly belongs into the period: by their own time, else because all of the time in which it
    can have happened does."""
    assert statement.since is not None and statement.until is not None and operation.settled_at is not None
    at = recorded_at(operation=operation)
    if at is not None:
        return statement.since <= at < statement.until
    opened = min((one.opened_at for one in operation.attempts.all()), default=operation.created_at)
    return statement.since <= opened and operation.settled_at < statement.until


def _missing(statement: Statement, operation: Operation) -> None:
    """We say that it happened, and the statement does not have it. A complete list that was read opens a case; a file
    proves nothing."""
    actor = principals.system()
    with transaction.atomic(durable=True):
        run, operation = moves.lock(operation_id=operation.pk)
        there = StatementOurs.objects.filter(statement=statement, operation=operation)
        if not held_going(statement=statement) or there.exists() or operation.state not in DONE:
            return
        if not in_period(statement=statement, operation=operation):
            return  # it was put right since, by a record of another time
        ours = ours_of(operation)
        like = _alike(statement, operation, ours)
        if statement.is_file:
            tells = f"{operation.external_reference} is not in the file, which proves nothing"
        else:
            tells = f"our record says that it happened as {operation.external_reference}, and the list of the period, "
            tells += "read to its end, does not have it"
        if like:
            tells += f". {' and '.join(like)}, without an identity, looks like it; likeness proves nothing"
        StatementOurs.objects.create(
            statement=statement, operation=operation, amount_minor=ours.stands, currency=ours.currency,
            result=R.MISSING, tells=tells,
        )  # fmt: skip
        if not statement.is_file:
            about = (matching.MISSING, str(operation.external_reference))
            judged = Judged(lines=(), result=matching.MISSING, tells=tells, case=matching.MISSING_THERE, about=about)
            _open_once(run, operation, statement, judged, actor)


def _alike(statement: Statement, operation: Operation, ours: Ours) -> list[str]:
    at = recorded_at(operation=operation) or operation.settled_at
    assert at is not None
    near = statement.lines.filter(
        result=R.NOT_OURS, identity="", amount_minor=ours.amount_minor, currency=ours.currency,
        at__gte=at - matching.LIKE_WITHIN, at__lte=at + matching.LIKE_WITHIN,
    )  # fmt: skip
    return matching.alike(ours=ours, at=at, lines=[theirs_of(one) for one in near[:SOME]])


def _finish(statement: Statement) -> None:
    with transaction.atomic(durable=True):
        mine = Statement.objects.select_for_update().get(pk=statement.pk)
        if mine.finished_at is not None or mine.stopped_at is not None:
            return
        mine.finished_at, mine.due_at, mine.cursor, mine.problem = clock.now(), None, "", ""
        mine.save(update_fields=["finished_at", "due_at", "cursor", "problem"])
        record.append_system(
            topic="statements", kind="statement.finished", actor=principals.system(), statement=mine.label,
            lines=mine.lines.count(), ours=mine.ours.count(), differences=mine.differences.count(),
        )  # fmt: skip
