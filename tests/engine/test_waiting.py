"""What workflows wait for: timers, events, other runs. An answer before, during and after the wait has its result."""

import datetime as dt
import itertools
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest
from django.db import DatabaseError, connection, transaction

from agentops import engine
from agentops.local.postgres import EmbeddedPostgres
from agentops.workflows.base import Facts, Judged, Timer, WaitFor
from agentops.workflows.service_credit import ServiceCredit
from runs import clock, record, waiting
from runs.models import Evidence, ModelCall, Run, Signal, Wait
from runs.services import operate, principals, signalling
from runs.services.runs import start
from runs.services.waits import wake_for_ended_runs
from tests.api.caller import in_thread
from tests.conftest import TEMPLATE
from tests.engine.conftest import World
from tests.engine.workers import wait_until_stopped

_number = itertools.count(1)
PAID = {"key": "payment", "event": "paid"}


@pytest.fixture(scope="module")
def database(postgres: EmbeddedPostgres) -> Iterator[str]:
    """One for all tests here: each has runs of its own in it."""
    name = f"waiting_{next(_number)}"
    postgres.create_database(name, template=TEMPLATE)
    yield name
    postgres.drop_database(name)


def child_of(run: Run) -> Run:
    child = Wait.objects.get(run=run).other
    assert child is not None
    return child


def told(run: Run, key: str = "p-1", kind: str = "paid", **payload: Any) -> str:
    payload = payload or {"amount_minor": "100", "note": ""}
    return signalling.send(run_id=run.pk, key=key, kind=kind, payload=payload, sender=run.initiator).code


def waits(run: Run) -> list[tuple[str, str]]:
    return list(Wait.objects.filter(run=run).order_by("began_at").values_list("key", "result"))


def waiting_run(world: World, name: str, *listed: dict[str, Any]) -> Run:
    run = world.work(world.scripted(name, *listed), until=lambda one: one.state in ("waiting", "needs_person"))
    assert (run.lease_until, run.lease_holder) == (None, "")
    return run


def over(run: Run) -> bool:
    return run.is_over


def some_run() -> Run:
    desk = principals.system()
    return start(
        workflow="scripted", workflow_version="1", title="x", subject="x", data={}, start_key="x", capabilities=[],
        initiator=desk, run_as=desk, agent=desk,
    ).run  # fmt: skip


# ---- a timer


def test_a_timer_is_a_row_and_the_run_goes_on_when_it_is_over(world: World) -> None:
    run = waiting_run(world, "t", {"key": "quiet", "timer": 400})
    wait = Wait.objects.get(run=run)
    assert (run.state, run.waits_for, run.wake_at) == ("waiting", "the timer “quiet”", wait.due_at)
    assert engine.advance(run_id=run.pk) == 0  # it is not due, and no worker holds it
    run = world.work(run, until=over)
    assert (run.state, run.outcome) == ("completed", "v2: quiet passed")
    wait.refresh_from_db()
    assert wait.due_at is not None and wait.ended_at is not None and wait.ended_at >= wait.due_at
    kept = Evidence.objects.get(run=run, kind="quiet")
    assert (kept.content, kept.source, kept.authoritative) == ({"result": "passed"}, "agentops", True)
    assert record.verify(stream=f"run:{run.pk}") is None


def test_a_run_that_is_woken_too_early_parks_again(world: World) -> None:
    run = waiting_run(world, "t", {"key": "quiet", "timer": 600_000})
    due, before = run.wake_at, run.event_seq
    Run.objects.filter(pk=run.pk).update(wake_at=clock.ClockTimestamp())
    assert engine.advance(run_id=run.pk) == 1
    run.refresh_from_db()
    assert (run.state, run.wake_at, run.event_seq) == ("waiting", due, before)


CHANGES = [  # the day before the clocks change, and where
    ("Europe/Berlin", dt.date(2026, 3, 28)),
    ("Europe/Berlin", dt.date(2026, 10, 24)),
    ("America/New_York", dt.date(2026, 3, 7)),
    ("America/New_York", dt.date(2026, 10, 31)),
]


@pytest.mark.parametrize(("zone", "day"), CHANGES)
def test_a_timer_is_elapsed_time_when_the_clocks_change(
    db: str, monkeypatch: pytest.MonkeyPatch, zone: str, day: dt.date
) -> None:
    """Whatever zone the process and the session speak: a day is 24 hours, and the dial then shows another one."""
    noon = dt.datetime.combine(day, dt.time(12), ZoneInfo(zone))
    run = some_run()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('timezone', %s, true)", [zone])
        with monkeypatch.context() as patch:
            patch.setattr(clock, "now", lambda: noon)
            made = waiting.begin(
                run=run, key="day", kind="timer", within=dt.timedelta(days=1), actor=principals.system()
            )
        cursor.execute("SELECT extract(epoch FROM due_at - %s)::int FROM runs_wait WHERE id = %s", [noon, made.pk])
        assert cursor.fetchone() == (86_400,)
        cursor.execute("SELECT extract(hour FROM due_at)::int FROM runs_wait WHERE id = %s", [made.pk])
        assert cursor.fetchone() != (12,)
        transaction.set_rollback(True)


@pytest.mark.parametrize(("zone", "off"), [("Pacific/Kiritimati", 90), ("America/Los_Angeles", -90)])
def test_workers_in_other_zones_with_wrong_clocks_judge_the_same_timer(world: World, zone: str, off: int) -> None:
    run = waiting_run(world, "t", {"key": "quiet", "timer": 300}, {"key": "longer", "timer": 600_000})
    assert world.workers.wait(world.worker(run, TZ=zone, CLOCK_OFF=str(off))) == 0
    run.refresh_from_db()
    assert waits(run) == [("quiet", "passed"), ("longer", "")]
    longer = Wait.objects.get(run=run, key="longer")
    assert longer.due_at is not None
    assert 599 < (longer.due_at - longer.began_at).total_seconds() < 601


# ---- an event


def test_an_event_comes_and_its_payload_is_a_fact(world: World) -> None:
    run = waiting_run(world, "e", PAID)
    assert (run.waits_for, run.wake_at) == ("the event “paid”", None)
    assert engine.advance(run_id=run.pk) == 0
    assert told(run) == "stored"
    run = world.work(run, until=over)
    assert run.outcome == "v2: payment came"
    fact = Evidence.objects.get(run=run, kind="payment")
    assert fact.untrusted and fact.content["payload"] == {"amount_minor": "100", "note": ""}
    assert Signal.objects.get(run=run).result == "applied"


def test_before_the_wait_twice_and_after_it(world: World) -> None:
    run = world.scripted("e", {"key": "quiet", "timer": 0}, PAID, {"key": "longer", "timer": 600_000})
    assert told(run) == "stored"  # nobody waits yet
    assert told(run) == "already"
    assert told(run, note="other", amount_minor="1") == "differs"
    run = world.work(run, until=lambda one: one.waits_for == "the timer “longer”")
    assert waits(run)[1] == ("payment", "came")
    assert told(run, "p-2") == "late"  # kept; nothing changes
    due = run.wake_at
    world.work(run, until=lambda one: one.wake_at == due)
    priya = principals.of_user(user=world.people["priya"])
    assert operate.cancel(run_id=run.pk, principal=priya, reason="enough").ok
    run = world.work(run, until=over)
    assert told(run, "p-3") == "over"
    results = dict(Signal.objects.filter(run=run).values_list("key", "result"))
    assert results == {
        "p-1": "applied", "p-2": "the run ended before it waited for it", "p-3": "the run was over",
    }  # fmt: skip
    assert waits(run) == [("quiet", "passed"), ("payment", "came"), ("longer", "dropped")]


def test_an_answer_between_two_waits_for_it_counts_for_the_second(world: World) -> None:
    run = waiting_run(world, "e", {**PAID, "within": 200}, {"key": "quiet", "timer": 700}, {**PAID, "key": "second"})
    run = world.work(run, until=lambda one: one.waits_for == "the timer “quiet”")
    assert waits(run)[0] == ("payment", "late")
    assert told(run) == "late"
    run = world.work(run, until=over)
    assert run.outcome == "v2: payment late, quiet passed, second came"


def test_what_came_in_time_counts_however_late_anybody_looks(world: World, owner: psycopg.Connection) -> None:
    run = waiting_run(world, "e", {**PAID, "within": 3_600_000})
    assert told(run) == "stored"
    owner.execute("UPDATE runs_signal SET received_at = received_at - interval '2 hours' WHERE run_id = %s", [run.pk])
    owner.execute("UPDATE runs_wait SET due_at = clock_timestamp() - interval '1 hour' WHERE run_id = %s", [run.pk])
    assert world.work(run, until=over).outcome == "v2: payment came"


def test_what_came_too_late_does_not_count(world: World, owner: psycopg.Connection) -> None:
    run = waiting_run(world, "e", {**PAID, "within": 3_600_000})
    owner.execute("UPDATE runs_wait SET due_at = clock_timestamp() - interval '1 hour' WHERE run_id = %s", [run.pk])
    assert told(run) == "stored"
    run = world.work(run, until=over)
    assert run.outcome == "v2: payment late"
    assert Signal.objects.get(run=run).result == "the run ended before it waited for it"


def test_an_event_races_with_the_deadline_and_one_of_both_counts(world: World) -> None:
    for number in range(6):
        run = waiting_run(world, f"race-{number}", {**PAID, "within": 250})
        gate = threading.Barrier(2)

        def send(run: Run = run, gate: threading.Barrier = gate) -> str:
            gate.wait(10)
            return told(run)

        with ThreadPoolExecutor(1) as pool:
            sent = pool.submit(in_thread, send)
            due = Wait.objects.get(run=run).due_at
            assert due is not None
            time.sleep(max(0, (due - clock.now()).total_seconds() - 0.01))
            gate.wait(10)
            run = world.work(run, until=over)
            sent.result()
        assert waits(run) in ([("payment", "came")], [("payment", "late")])
        assert Signal.objects.get(run=run).result != ""


# ---- another run


def test_a_run_is_started_once_and_its_end_is_a_fact(world: World) -> None:
    run = waiting_run(world, "r", {"key": "child", "start": {"name": "c", "waits": [PAID]}})
    run = world.work(run, until=lambda one: one.wake_at is None)
    child = child_of(run)
    assert run.waits_for == f"another run: {child.title}"
    assert (child.initiator, child.start_key) == (run.initiator, f"wait:{Wait.objects.get(run=run).pk}")
    child = world.work(child, until=lambda one: one.state == "waiting")
    before = wake_for_ended_runs(limit=10)
    told(child)
    world.work(child, until=over)
    assert wake_for_ended_runs(limit=10) == before + 1
    assert wake_for_ended_runs(limit=10) == before  # it is due now
    run = world.work(run, until=over)
    assert run.outcome == "v2: child ended"
    fact = Evidence.objects.filter(run=run, kind="child").latest("reading").content
    assert fact == {"result": "ended", "run": str(child.pk), "state": "completed", "outcome": "v2: payment came"}


def test_an_existing_run_is_waited_for_also_when_it_is_over_already(world: World) -> None:
    first = world.work(world.scripted("a"), until=over)
    second = waiting_run(world, "b", {"key": "other", "run": str(first.pk)})
    assert world.work(second, until=over).outcome == "v2: other ended"


def test_a_run_that_does_not_end_in_time_is_late_and_goes_on_by_itself(world: World) -> None:
    child = {"name": "c", "waits": [PAID]}
    run = world.work(world.scripted("r", {"key": "child", "start": child, "within": 300}), until=over)
    assert run.outcome == "v2: child late"
    assert not child_of(run).is_over


def test_a_cancelled_run_leaves_its_child_alone_and_a_cancelled_child_is_an_end(world: World) -> None:
    priya = principals.of_user(user=world.people["priya"])
    runs = [waiting_run(world, f"r{n}", {"key": "child", "start": {"name": f"c{n}", "waits": [PAID]}}) for n in (1, 2)]
    for run in runs:
        world.work(run, until=lambda one: one.wake_at is None)
    children = [child_of(run) for run in runs]
    operate.cancel(run_id=runs[0].pk, principal=priya, reason="enough")
    assert world.work(runs[0], until=over).state == "cancelled"
    assert waits(runs[0]) == [("child", "dropped")]
    children[0].refresh_from_db()
    assert not children[0].is_over and children[0].cancel_requested_at is None
    operate.cancel(run_id=children[1].pk, principal=priya, reason="enough")
    world.work(children[1], until=over)
    wake_for_ended_runs(limit=10)
    assert world.work(runs[1], until=over).outcome == "v2: child ended"
    assert Evidence.objects.filter(run=runs[1], kind="child").latest("reading").content["state"] == "cancelled"


@pytest.mark.parametrize("itself", [True, False])
def test_a_run_cannot_wait_for_itself_or_for_one_that_does_not_exist(
    world: World, owner: psycopg.Connection, itself: bool
) -> None:
    run = world.scripted("x", {"key": "other", "run": "0" * 32})
    if itself:
        owner.execute("UPDATE runs_run SET input = replace(input::text, %s, id::text)::jsonb", ["0" * 32])
    run = world.work(run)
    assert (run.state, run.person_code) == ("needs_person", "cannot_wait"), run.person_reason
    assert ("waits for this run itself" in run.person_reason) == itself
    assert not Wait.objects.filter(run=run).exists()


def test_of_two_runs_that_begin_to_wait_for_each_other_at_once_one_is_refused(world: World) -> None:
    runs = [world.scripted(name, {"key": "other", "run": "0" * 32}) for name in ("a", "b")]
    gate = threading.Barrier(2)

    def begin(pair: tuple[Run, Run]) -> str:
        run, other = pair
        with transaction.atomic(durable=True):
            locked = Run.objects.select_for_update(of=("self",)).get(pk=run.pk)
            gate.wait(10)
            try:
                waiting.begin(run=locked, key="o", kind="run", other_id=other.pk, actor=principals.system())
            except waiting.Impossible as problem:
                return str(problem)
        return "begun"

    with ThreadPoolExecutor(2) as pool:
        pairs = [(runs[0], runs[1]), (runs[1], runs[0])]
        said = list(pool.map(lambda pair: in_thread(lambda: begin(pair)), pairs))
    assert sorted(one == "begun" for one in said) == [False, True], said
    assert any("neither would ever go on" in one for one in said)


def test_runs_that_start_one_another_come_to_an_end(world: World) -> None:
    nested: dict[str, Any] = {"name": "last", "waits": []}
    for number in range(12):
        nested = {"name": f"n{number}", "waits": [{"key": "child", "start": nested}]}
    top = world.scripted("top", {"key": "child", "start": nested})
    for _ in range(40):
        chain = [top]
        while chain[-1].waits.exists() and (below := chain[-1].waits.get().other) is not None:
            chain.append(below)
        engine.advance(run_id=chain[-1].pk)
    assert len(chain) == waiting.MAX_DEPTH + 1
    last = chain[-1]
    last.refresh_from_db()
    assert (last.person_code, "10 runs have started one another" in last.person_reason) == ("cannot_wait", True)


def test_a_child_that_cannot_be_started_needs_a_person(world: World) -> None:
    run = world.work(world.scripted("r", {"key": "child", "start": {"name": 7}}))
    assert (run.state, run.person_code) == ("needs_person", "cannot_wait")
    assert "scripted does not take this input" in run.person_reason
    assert waits(run) == [("child", "dropped")]


def test_frozen_between_the_start_and_its_note_the_started_run_is_one(world: World, settings: Any) -> None:
    settings.LEASE_SECONDS = 2
    run = world.scripted("f", {"key": "child", "start": {"name": "c", "waits": [PAID]}})
    pid = world.worker(run, freeze_at="wait.started")
    wait_until_stopped(pid)
    run = world.work(run, until=lambda one: one.waits_for.startswith("another run: "))
    events = run.event_seq
    os.kill(pid, signal.SIGCONT)
    assert world.workers.wait(pid) == 0
    run.refresh_from_db()
    assert (run.state, run.event_seq, record.verify(stream=f"run:{run.pk}")) == ("waiting", events, None)
    assert Run.objects.filter(start_key=f"wait:{Wait.objects.get(run=run).pk}").count() == 1


# ---- the wait itself


def test_an_agents_choice_may_be_to_wait(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = ServiceCredit.judge

    def wait_first(self: ServiceCredit, *, choice: Any, data: dict[str, Any], facts: Facts) -> Judged:
        if "cooling" in facts:
            return judge(self, choice=choice, data=data, facts=facts)
        return WaitFor(key="cooling", on=Timer(after=dt.timedelta(milliseconds=50)))

    monkeypatch.setattr(ServiceCredit, "judge", wait_first)
    run = world.work(world.start("CS-8815"), until=over)
    assert (run.state, waits(run), len(world.credits())) == ("completed", [("cooling", "passed")], 1)
    assert ModelCall.objects.filter(run=run).count() == 2


def test_a_workflow_that_asks_for_the_same_again_does_not_wait_for_ever(world: World) -> None:
    run = world.work(world.scripted("s", {"key": "quiet", "timer": 0, "again": True}))
    assert (run.state, run.person_code) == ("needs_person", "cannot_wait")
    assert "before" in run.person_reason


def test_an_event_that_the_workflow_does_not_know_is_not_waited_for(world: World) -> None:
    run = world.work(world.scripted("s", {"key": "x", "event": "unheard_of"}))
    assert (run.state, run.person_code) == ("needs_person", "cannot_wait")


def test_a_paused_run_goes_on_waiting_and_its_time_goes_on(world: World) -> None:
    priya = principals.of_user(user=world.people["priya"])
    run = waiting_run(world, "p", {"key": "quiet", "timer": 300})
    assert operate.pause(run_id=run.pk, principal=priya, reason="month end").ok
    engine.advance(run_id=run.pk)
    time.sleep(0.4)  # the timer's
    run.refresh_from_db()
    assert (run.state, run.waits_for, run.wake_at) == ("waiting", "a person to resume it", None)
    assert operate.resume(run_id=run.pk, principal=priya, reason="done").ok
    assert world.work(run, until=over).outcome == "v2: quiet passed"


def test_what_came_of_a_wait_is_kept_by_the_database(world: World) -> None:
    run = world.work(world.scripted("t", {"key": "quiet", "timer": 0}), until=over)
    wait = Wait.objects.get(run=run)
    for change in ({"result": "late"}, {"content": {}}, {"other": run}):
        with pytest.raises(DatabaseError, match="stay as they are"):
            Wait.objects.filter(pk=wait.pk).update(**change)
    with pytest.raises(DatabaseError, match="permission denied"):
        Wait.objects.filter(pk=wait.pk).update(due_at=clock.now())
