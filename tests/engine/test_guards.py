"""Each guard by itself: what stops a lost worker, a second call, an old footing, and a reference used twice."""

import datetime as dt
import json
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from django.db import IntegrityError, transaction

from agentops import engine
from agentops.steps import executing
from approvals.models import ApprovalRequest, Decision
from reconciliation import still_allowed
from reconciliation.classification import Resend, Result
from reconciliation.models import Attempt, Case, Observation, Operation
from reconciliation.services import answers, execute, lookups
from runs import clock, leases, record
from runs.models import Event, Evidence, Proposal, Run
from runs.models.run import RunState
from runs.tools.base import Lookup, Record, Repeat
from tests.engine.conftest import World
from tests.engine.history import LOST, History
from tests.engine.model_run import TIME, TOOL

MODELS = (Event, Evidence, Proposal, ApprovalRequest, Decision, Operation, Attempt, Observation)


def written(run_id: uuid.UUID) -> list[Any]:
    """All that a step could have written, down to the run's own row."""
    row = Run.objects.filter(pk=run_id).values().get()
    return [row, *(list(model.objects.order_by("pk").values()) for model in MODELS)]


def begun(repeat: Repeat = Repeat.BY_IDENTITY) -> History:
    """An operation with its first attempt open, its call not made."""
    history = History()
    history.begin(repeat=repeat)
    return history


def waiting() -> History:
    """Its first attempt is proved never sent; the next one is due."""
    history = begun()
    history._report(history.senders[0], answers.Answer(result=Result.NOT_SENT, detail="no connection"))
    assert history._state() == "authorised"
    TIME.tick(120)
    return history


def unknown(repeat: Repeat = Repeat.BY_IDENTITY) -> History:
    """Its first call's answer was lost, and nobody has asked yet."""
    history = begun(repeat)
    history._report(history.senders[0], LOST)
    assert history._state() == "unknown"
    return history


def operation(history: History) -> Operation:
    found = history.operation
    assert found is not None
    return found


def try_to_open(
    history: History,
    *,
    age: float = 0,
    lease: leases.Lease | None = None,
    resend: Resend = Resend.NO,
    version: str = "",
) -> execute.Opened | execute.Held | still_allowed.Void:
    """Open the next attempt on facts that are `age` seconds old, by the contract's `version`."""
    contract = replace(history.contract, version=version or history.contract.version)
    read_at = clock.now() - dt.timedelta(seconds=age)
    return execute.open_attempt(
        lease=lease or history.lease,
        lease_seconds=3600,
        proposal_id=history.proposal.pk,
        contract=contract,
        facts=still_allowed.Facts(
            binding_digest=history.binding, read_at=read_at, fresh_for=dt.timedelta(seconds=60), variables={}
        ),
        sender=history._process(),
        actor=history.actor,
        resend=resend,
    )


def code(opened: execute.Opened | execute.Held | still_allowed.Void) -> str:
    return "opened" if isinstance(opened, execute.Opened) else f"{type(opened).__name__} {opened.code}"


# ---- the lease


def test_after_a_second_claim_the_first_worker_writes_nothing(model: None, owner: psycopg.Connection) -> None:
    history = waiting()
    run_id = history.lease.run_id
    assert leases.claim(run_id=run_id, holder="second", seconds=3600) is None  # it is still the first one's
    owner.execute("UPDATE runs_run SET lease_until = clock_timestamp() - interval '1 second'")
    second = leases.claim(run_id=run_id, holder="second", seconds=3600)
    assert second is not None and second.token == history.lease.token + 1
    before = written(run_id)
    with pytest.raises(leases.LeaseLost):
        try_to_open(history)
    with pytest.raises(leases.LeaseLost), transaction.atomic(durable=True):
        run = leases.hold(lease=history.lease, seconds=9)
        record.append(run=run, kind="run.went_on", actor=history.actor)
    leases.worked(lease=history.lease)
    assert written(run_id) == before
    assert code(try_to_open(history, lease=second)) == "opened"


def test_a_lease_that_was_given_back_is_nobodys(model: None, owner: psycopg.Connection) -> None:
    history = waiting()
    owner.execute("UPDATE runs_run SET lease_until = NULL")
    with pytest.raises(leases.LeaseLost):
        try_to_open(history)
    assert operation(history).attempts.count() == 1


def test_a_lease_stolen_at_any_step_stops_that_step(
    world: World, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every state that a run is worked on in, another worker claims it just before the step's first lock."""
    hold = leases.hold
    stolen: dict[str, list[Any]] = {}

    def steal_first(*, lease: leases.Lease, seconds: float | None = None, any_freeze: str = "NULL") -> Run:
        state = str(Run.objects.values_list("state", flat=True).get(pk=lease.run_id))
        if state not in stolen:
            owner.execute("UPDATE runs_run SET lease_token = lease_token + 1, lease_holder = 'another'")
            stolen[state] = written(lease.run_id)
        return hold(lease=lease, seconds=seconds, any_freeze=any_freeze)

    monkeypatch.setattr(leases, "hold", steal_first)
    world.fault("overloaded", retry_after="seconds", seconds=1)
    world.fault("execute_and_timeout")
    run = world.start()

    def advance(one: Run) -> bool:
        """After each claim: was it stolen, then nothing may have been written since; the thief gives it back."""
        for state, before in stolen.items():
            if before:
                assert written(run.pk) == before, f"written after the lease was lost while {state}"
                owner.execute("UPDATE runs_run SET lease_until = NULL, lease_holder = ''")
                stolen[state] = []
        if one.state == RunState.AWAITING_APPROVAL and not Decision.objects.exists():
            assert world.vote(one).code == "approved"
        return one.is_over

    run = world.work(run, until=advance, seconds=120)
    assert run.state == "completed", run.person_reason
    assert set(engine.STEPS) == set(stolen)
    assert len(world.credits()) == 1 and len(world.effects()) == 3
    assert world.used() == [("overloaded", 1), ("execute_and_timeout", 1)]
    assert record.verify(stream=f"run:{run.pk}") is None


def test_a_lease_stolen_during_the_call_keeps_the_answer_and_advances_nothing(
    world: World, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What follows from an answer is part of the commit that stores it, but only for whoever holds the run still."""
    run = world.approved()
    call = executing.call

    def stolen_from(*args: Any, **kwargs: Any) -> Any:
        owner.execute("UPDATE runs_run SET lease_token = lease_token + 1, lease_holder = 'another'")
        return call(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(executing, "call", stolen_from)
        engine.advance(run_id=run.pk)
    run.refresh_from_db()
    assert world.credit(run).state == "succeeded" and len(world.credits()) == 1
    assert (run.state, run.lease_holder, run.proposals.count()) == ("executing", "another", 1)
    owner.execute("UPDATE runs_run SET lease_until = NULL, lease_holder = ''")
    run = world.work(run, until=lambda one: one.is_over)
    assert (run.state, len(world.credits())) == ("completed", 1)
    assert record.verify(stream=f"run:{run.pk}") is None


# ---- the footing on which it is sent


def test_on_facts_that_were_read_too_long_ago_nothing_is_sent_and_nothing_is_lost(model: None) -> None:
    assert code(try_to_open(waiting(), age=59)) == "opened"
    history = waiting()
    assert code(try_to_open(history, age=61)) == "Held facts_old"
    assert (history._state(), operation(history).attempts.count()) == ("authorised", 1)
    assert code(try_to_open(history)) == "opened"  # they are read again


def test_a_tool_that_the_run_was_not_granted_is_not_used(model: None, owner: psycopg.Connection) -> None:
    history = waiting()
    owner.execute("UPDATE runs_run SET capabilities = '[\"model.other\"]'")
    assert code(try_to_open(history)) == "Void not_granted"
    assert (history._state(), operation(history).attempts.count()) == ("abandoned", 1)
    owner.execute("UPDATE runs_run SET capabilities = %s", [f'["{TOOL}"]'])
    assert code(try_to_open(history)) == "Held not_open"  # what was given up stays so


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ({"until": "2020-01-01T00:00:00+00:00"}, "Void grant_over"),
        ({"only": {"account": ["another"]}}, "Void grant_unknown"),
        ({"when": "amount_minor < 1"}, "Void grant_unknown"),
    ],
)
def test_what_narrows_a_grant_is_looked_at_before_each_call(
    model: None, owner: psycopg.Connection, terms: dict[str, Any], expected: str
) -> None:
    history = waiting()
    owner.execute("UPDATE runs_run SET terms = jsonb_build_object(%s::text, %s::jsonb)", [TOOL, json.dumps(terms)])
    assert code(try_to_open(history)) == expected


def test_a_contract_that_has_changed_voids_what_was_proposed_under_the_old_one(model: None) -> None:
    history = waiting()
    assert code(try_to_open(history, version="2")) == "Void contract_changed"
    assert (history._state(), operation(history).attempts.count()) == ("abandoned", 1)


# ---- one attempt at a time


def test_no_second_attempt_beside_an_open_one_by_the_check(model: None, owner: psycopg.Connection) -> None:
    history = begun()
    assert code(try_to_open(history)) == "Held attempt_open"
    history.another_worker_takes_over()
    assert history._state() == "unknown"
    for resend in Resend:
        assert code(try_to_open(history, resend=resend)) == "Held attempt_open"
    # even were it, by some mistake, open to be sent
    owner.execute("ALTER TABLE reconciliation_operation DISABLE TRIGGER USER")
    owner.execute("UPDATE reconciliation_operation SET state = 'authorised'")
    assert code(try_to_open(history)) == "Held attempt_open"
    assert operation(history).attempts.count() == 1


def test_no_second_attempt_beside_an_open_one_by_the_database(model: None) -> None:
    one = operation(begun()).attempts.get()
    one.pk, one.number, one._state.adding = uuid.uuid4(), one.number + 1, True
    with pytest.raises(IntegrityError, match="attempt_one_open"), transaction.atomic():
        one.save(force_insert=True)
    one.closed_at, one.result = clock.now(), "not_sent"
    one.save(force_insert=True)  # one that has ended may stand beside it
    assert Attempt.objects.count() == 2


# ---- sending again


def ask(history: History, *records: Record, problem: str = "") -> None:
    lookups.record_lookup(
        operation_id=operation(history).pk,
        lookup=None if problem else Lookup(records=records, pages=1),
        problem=problem,
        asked_at=clock.now(),
        contract=history.contract,
        actor=history.actor,
    )


def test_what_is_unknown_is_sent_again_only_after_a_lookup_that_found_nothing(model: None) -> None:
    history = unknown()
    TIME.tick(60)  # so late that finding nothing would be proof
    for resend in Resend:
        assert code(try_to_open(history, resend=resend)) == "Held unknown"
    ask(history, problem="down")
    for resend in Resend:
        assert code(try_to_open(history, resend=resend)) == "Held unknown"
    ask(history)
    assert operation(history).observations.latest("at").finding == "absent"
    for resend in (Resend.NO, Resend.NEW_EPOCH):
        assert code(try_to_open(history, resend=resend)) == "Held unknown"
    ask(history, problem="down again")  # the latest word counts
    assert code(try_to_open(history, resend=Resend.SAME_KEY)) == "Held unknown"
    ask(history)
    assert operation(history).attempts.count() == 1
    assert code(try_to_open(history, resend=Resend.SAME_KEY)) == "opened"


def test_a_new_key_needs_proof_and_a_kept_one_its_time_under_the_lock_too(model: None) -> None:
    history = unknown(Repeat.LOOK_UP_FIRST)
    ask(history)  # too early to be proof
    for resend in Resend:
        assert code(try_to_open(history, resend=resend)) == "Held unknown"
    history = unknown()
    ask(history)
    TIME.tick(3600)  # what the receiver kept is gone, and that nothing is there was said too early
    for resend in Resend:
        assert code(try_to_open(history, resend=resend)) == "Held unknown"
    ask(history)
    assert code(try_to_open(history, resend=Resend.SAME_KEY)) == "Held unknown"
    assert code(try_to_open(history, resend=Resend.NEW_EPOCH)) == "opened"
    assert operation(history).attempts.latest("number").wire_key == f"{history.proposal.identity}:1"


# ---- what is learned late, or twice


def made(history: History, reference: str, **more: Any) -> Record:
    return Record(reference=reference, identity=history.proposal.identity, raw={"reference": reference}, **more)


def answer(history: History, attempt: Attempt, reference: str, **more: Any) -> None:
    found = answers.Answer(result=Result.DONE, detail="made", record=made(history, reference, **more))
    answers.record_answer(attempt_id=attempt.pk, answer=found, contract=history.contract, actor=history.actor)


def settled_as_done(history: History) -> None:
    ask(history, made(history, "CN-1"))
    assert (history._state(), operation(history).external_reference) == ("succeeded", "CN-1")


def settled_as_not_done(history: History) -> None:
    sender = history.senders[0].process
    type(sender).objects.filter(pk=sender.pk).update(ended_at=clock.now())
    answers.close_dead_attempt(operation_id=operation(history).pk, claimer=history.claimer, actor=history.actor)
    TIME.tick(60)
    ask(history)
    given = {"contract": history.contract, "code": "absent", "actor": history.actor}
    assert lookups.fail_as_absent(operation_id=operation(history).pk, **given)


@pytest.mark.parametrize("late", ["answer", "lookup"])
@pytest.mark.parametrize(("end", "state"), [(settled_as_done, "succeeded"), (settled_as_not_done, "failed")])
def test_what_comes_late_and_says_something_else_opens_a_case(
    model: None, end: Callable[[History], None], state: str, late: str
) -> None:
    history = begun()
    attempt = history.senders[0].attempt
    history.another_worker_takes_over()
    end(history)

    def tell(reference: str, **more: Any) -> None:
        if late == "answer":
            answer(history, attempt, reference, **more)
        else:
            ask(history, made(history, reference, **more))

    tell("CN-9", void=True)
    if state == "succeeded":
        tell("CN-1")
    assert not Case.objects.exists()  # undone since, or what is known already
    tell("CN-2")
    case = Case.objects.get()
    assert (case.kind, case.state, case.operation_id) == ("different", "open", operation(history).pk)
    assert "CN-2" in case.why
    assert history._state() == state


@pytest.mark.parametrize("told", ["answer", "lookup"])
def test_a_reference_that_settles_another_operation_settles_no_second_one(model: None, told: str) -> None:
    first, second = begun(), begun()
    answer(first, first.senders[0].attempt, "CN-1")
    assert first._state() == "succeeded"
    if told == "lookup":
        second.another_worker_takes_over()
        ask(second, made(second, "CN-1"))
    else:
        answer(second, second.senders[0].attempt, "CN-1")
    assert (second._state() in ("sending", "unknown"), operation(second).external_reference) == (True, None)
    case = Case.objects.get()
    assert (case.kind, case.operation_id) == ("duplicate", operation(second).pk)
    assert first.proposal.identity in case.why


def test_a_reference_that_settles_another_operation_is_refused_by_the_database(model: None) -> None:
    first, second = begun(), begun()
    answer(first, first.senders[0].attempt, "CN-1")
    with pytest.raises(IntegrityError, match="operation_reference_once"), transaction.atomic():
        Operation.objects.filter(pk=operation(second).pk).update(external_reference="CN-1")
    assert Operation.objects.filter(pk=operation(second).pk).update(external_reference="CN-2") == 1
