"""More than one call of ours for one operation: each may have made one, and what is shown counts once all are over."""

import datetime as dt
import threading
import time

from django.db import connections

from reconciliation.models import Attempt, Case, Observation
from reconciliation.services import answers
from reconciliation.services.answers import Answer, Result
from runs import clock
from runs.tools.base import Record
from runs.tools.registry import tool
from tests.desk.conftest import Desk
from tests.desk.outside import lookup_brings, open_cases
from tests.engine.conftest import World

LIST = "billing.credit_notes.list"


def test_one_found_while_another_call_is_out_is_not_the_end(world: World, desk: Desk) -> None:
    """The first call worked and billing's list lags; the second goes out under a key that billing did not keep. While
    it is out somebody asks: one is found. The second then makes another and its answer is lost."""
    desk.really_waits = True
    run = world.unknown("execute_and_timeout")
    operation = world.credit(run)
    world.sandbox.settings(key_retention_seconds=0)
    world.fault("lookup_not_found", LIST)
    world.fault("ok_slow", seconds=1.6, effect_at="end")
    findings: list[str] = []

    def ask() -> None:
        try:
            while Attempt.objects.filter(operation=operation).count() < 2:
                time.sleep(0.02)
            findings.append(desk.ask(operation))
        finally:
            connections.close_all()

    thread = threading.Thread(target=ask)
    thread.start()
    run = world.work(run, until=lambda one: Case.objects.filter(operation__run=one, kind="duplicate").exists())
    thread.join()
    assert findings == ["found"] and len(world.credits()) == 2
    assert (run.state, world.credit(run).state) == ("outcome_unknown", "unknown")


def test_of_several_calls_what_is_shown_counts_once_all_are_over(world: World, desk: Desk) -> None:
    """Two calls whose answers were lost, and one credit shown: the other call may make one too until its time is up."""
    run = world.unknown("timeout_without_effect")
    operation = world.credit(run)
    [first] = Attempt.objects.filter(operation=operation)
    second = Attempt.objects.create(
        operation=operation, number=2, epoch=0, wire_key=first.wire_key, request=first.request, sender=first.sender,
        opened_at=clock.now(), send_before=clock.now() + dt.timedelta(seconds=1), call_limit_seconds=1.0,
    )  # fmt: skip
    shown = Record(reference="CN-1", identity=operation.identity)
    lookup_brings(operation, shown)
    assert world.credit(run).state == "unknown", "the second is still out"
    answered(desk, second, Result.AMBIGUOUS)
    lookup_brings(operation, shown)
    assert world.credit(run).state == "unknown", "it has not answered, and may still arrive"
    desk.until_proof()
    lookup_brings(operation, shown)
    assert (world.credit(run).state, world.credit(run).external_reference) == ("succeeded", "CN-1")


def answered(desk: Desk, attempt: Attempt, result: Result) -> None:
    answer = Answer(result=result, detail="no answer within the limit")
    contract = tool(attempt.operation.tool).contract
    answers.record_answer(attempt_id=attempt.pk, answer=answer, contract=contract, actor=desk.tomas)


def test_no_answer_to_a_call_of_a_settled_operation_wants_one_more_look(world: World, desk: Desk) -> None:
    run = world.unknown("execute_and_timeout")
    operation = world.credit(run)
    assert desk.ask(operation) == "found" and world.credit(run).look_wanted_at is None
    [attempt] = Attempt.objects.filter(operation=operation)
    answered(desk, attempt, Result.AMBIGUOUS)
    wanted = world.credit(run)
    assert wanted.state == "succeeded" and wanted.look_wanted_at is not None
    assert Observation.objects.filter(operation=operation, source="sender", finding="no_answer").count() == 2


def test_one_that_is_shown_alone_is_not_all_there_is_if_an_answer_named_another(world: World, desk: Desk) -> None:
    run = world.unknown("timeout_without_effect")
    operation = world.credit(run)
    other = Record(reference="CN-2", identity=operation.identity)
    lookup_brings(operation, Record(reference="CN-1", identity=operation.identity), other)
    lookup_brings(operation, other)
    assert world.credit(run).state == "unknown"
    [why] = open_cases(run)
    assert "shown before: CN-1" in why
    lookup_brings(operation, Record(reference="CN-1", identity=operation.identity, void=True), other)
    lookup_brings(operation, other)
    assert world.credit(run).state == "succeeded"
