"""What a statement says about our operations, judged against the sandbox's ledger; cases once; nothing is settled."""

import signal

import psycopg
import pytest

from agentops import tasks
from reconciliation import statement_queries
from reconciliation.models import Case, Difference, Operation, Statement
from reconciliation.services import cases, looks, statements
from runs.models import Run
from runs.models.run import RunState
from tests.statements.conftest import Books


def done(books: Books, ticket: str = "CS-8812") -> Operation:
    """A credit of ours that billing has, the run finished."""
    run = books.world.approved(ticket) if ticket == "CS-8812" else books.world.start(ticket)
    books.world.work(run)
    operation = books.world.credit(run)
    assert operation.state == "succeeded", (operation.state, run.state, run.person_reason)
    return operation


def results(statement: Statement) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in statement.lines.order_by("number"):
        found.setdefault(line.result, []).append(line.reference)
    for one in statement.ours.filter(result="missing"):
        found.setdefault("missing", []).append(one.operation.external_reference or "")
    return found


def ledger_total(books: Books) -> int:
    """What stands at billing by its own ledger: what was created less what was voided."""
    rows = [row for row in books.world.sandbox.ledger() if row["seq"] > books.world.seen]
    signs = {"billing.credit_notes.create": 1, "billing.credit_notes.void": -1}
    return sum(signs.get(row["operation"], 0) * (row["amount_minor"] or 0) for row in rows)


def adds_up(books: Books, statement: Statement) -> None:
    [total] = statement_queries.totals(statement=statement)
    assert total.whole.theirs == statement_queries.whole(statement=statement)[total.currency]
    assert total.whole.theirs[1] == ledger_total(books)
    assert total.whole.difference == sum(row.difference for row in total.rows)


def test_what_both_sides_have_is_confirmed_and_the_rest_is_not_ours(books: Books) -> None:
    operation = done(books)
    other = books.credit(700)
    found = books.read()
    assert results(found) == {"confirmed": [operation.external_reference], "not_ours": [other.number]}
    adds_up(books, found)
    [total] = statement_queries.totals(statement=found)
    assert total.whole.difference == 700 and not Case.objects.exists()


def test_each_difference_opens_one_case_however_often_it_is_read(books: Books) -> None:
    operation = done(books)
    second = books.credit(operation.amount_minor or 0, operation_identity=operation.identity)
    for _ in range(3):
        found = books.read()
        assert results(found)["duplicate"] == [second.number]
        adds_up(books, found)
    [case] = Case.objects.all()
    operation.refresh_from_db()
    assert looks.due(limit=5) == [operation.pk] and looks.look(operation_id=operation.pk) is not None
    case.refresh_from_db()
    assert case.kind == "duplicate" and second.number in case.why and operation.external_reference in case.why
    assert cases.claim(case_number=case.pk, principal=books.tomas).ok
    settled = cases.settle(
        case_number=case.pk, principal=books.tomas, contract=None, verdict="noted", evidence="voided by hand"
    )
    assert settled.ok, settled.code
    books.read()
    assert Case.objects.count() == 1 and Difference.objects.count() == 1, "what was noted is not found again"
    operation.refresh_from_db()
    assert operation.state == "succeeded"


def test_what_was_voided_there_is_a_difference(books: Books) -> None:
    operation = done(books)
    note = next(one for one in books.billing.credit_notes.list().data if one.number == operation.external_reference)
    books.billing.credit_notes.void_credit_note(note.id)
    found = books.read()
    assert results(found) == {"different": [operation.external_reference]}
    assert "is void there" in Case.objects.get().why and Case.objects.get().kind == "different"
    adds_up(books, found)
    [total] = statement_queries.totals(statement=found)
    assert total.whole.theirs[1] == 0 and total.whole.difference == -(operation.amount_minor or 0)


def test_what_only_we_have_opens_a_case_and_likeness_only_suggests(books: Books, owner: psycopg.Connection) -> None:
    operation = done(books)
    amount, real = operation.amount_minor or 0, operation.external_reference
    note = next(one for one in books.billing.credit_notes.list().data if one.number == real)
    owner.execute("ALTER TABLE reconciliation_operation DISABLE TRIGGER reconciliation_only_by_entry")
    owner.execute("UPDATE reconciliation_operation SET external_reference = 'CR-GONE' WHERE id = %s", [operation.pk])
    owner.execute("UPDATE reconciliation_theirname SET name = 'GONE-' || id WHERE operation_id = %s", [operation.pk])
    owner.execute("UPDATE reconciliation_observation SET raw = '{}' WHERE operation_id = %s", [operation.pk])
    # billing's copy loses our identity, as if somebody had made the credit by hand
    books.billing.credit_notes.update(note.id, {"metadata": {"operation_identity": ""}})
    found = books.read()
    assert results(found) == {"not_ours": [real], "missing": ["CR-GONE"]}
    case = Case.objects.get()
    assert (
        case.kind == "missing_there"
        and "does not have it" in case.why
        and f"{real}, without an identity, looks like it" in case.why
    )
    operation.refresh_from_db()
    assert operation.state == "succeeded" and operation.external_reference == "CR-GONE"
    [total] = statement_queries.totals(statement=found)
    assert {row.result: row.difference for row in total.rows} == {"not_ours": amount, "missing": -amount}
    books.read()
    assert Case.objects.count() == 1


def test_what_is_not_confirmed_is_asked_about_and_not_settled_by_the_list(books: Books) -> None:
    run = books.world.unknown()
    Operation.objects.filter(run=run).update(next_probe_at=None)
    found = books.read()
    [line] = found.lines.all()
    operation = books.world.credit(run)
    assert line.result == "unconfirmed" and operation.state == "unknown" and operation.next_probe_at is not None
    assert not Case.objects.exists()
    [total] = statement_queries.totals(statement=found)
    assert total.whole.ours == (1, 0) and total.whole.theirs == (1, operation.amount_minor)
    books.world.work(run)
    assert books.world.credit(run).settled_by == "probe"
    assert len(books.world.credits()) == 1
    again = books.read()
    assert results(again) == {"confirmed": [books.world.credit(run).external_reference]}


def test_an_effect_under_our_name_that_nothing_here_has_is_noted_once(books: Books) -> None:
    strange = books.credit(900, operation_identity="local/billing.create_credit/0199-nobody")
    foreign = books.credit(800, operation_identity="elsewhere/billing.create_credit/1")
    for _ in range(2):
        assert results(books.read()) == {"unknown": [strange.number], "not_ours": [foreign.number]}
    [one] = Difference.objects.all()
    assert one.case is None and list(statement_queries.strange()) == [one] and not Case.objects.exists()
    assert statements.note(difference_id=one.pk, evidence=" ", principal=books.tomas).code == "evidence_needed"
    assert statements.note(difference_id=one.pk, evidence="the old system", principal=books.tomas).ok
    assert statements.note(difference_id=one.pk, evidence="again", principal=books.tomas).code == "noted_before"
    books.read()
    assert not statement_queries.strange().exists() and Difference.objects.count() == 1


@pytest.mark.parametrize("point", ["statement.judged.before", "statement.judged.after"])
def test_a_worker_killed_while_judging_opens_no_second_case(books: Books, point: str) -> None:
    operation = done(books)
    books.credit(operation.amount_minor or 0, operation_identity=operation.identity)
    found = books.ask()
    assert books.reader(found, die_at=point) == -signal.SIGKILL
    assert Case.objects.count() == (1 if point.endswith("after") else 0)
    books.due(found)
    assert books.work(found).stage == "finished"
    assert Case.objects.count() == 1 and found.ours.count() == 1
    adds_up(books, found)


def test_the_relay_hints_and_the_task_does_the_work(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    from agentops import relay

    told: list[int] = []
    monkeypatch.setattr(relay.read_statement, "apply_async", lambda args, retry: told.append(args[0]))
    monkeypatch.setattr(relay.advance, "apply_async", lambda args, retry: None)
    found = books.ask()
    at_work = relay.Relay()
    at_work.run_once()
    at_work.run_once()
    assert told == [found.pk], "a hint is given once"
    assert tasks.read_statement(found.pk) > 0 and tasks.read_statement(found.pk) == 0
    assert tasks.read_statement("1; DROP") == 0 and tasks.read_statement(2**70) == 0  # type: ignore[arg-type]
    found.refresh_from_db()
    assert found.stage == "finished" and not Run.objects.exclude(state=RunState.COMPLETED).exists()
