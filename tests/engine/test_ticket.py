"""What comes after the credit may fail in every way: it is got right by itself, and the credit is never touched."""

from typing import Any

import pytest

from reconciliation.models import Case, Operation
from runs import record
from runs.models import Run
from tests.engine.conftest import World

UPDATE, DRAFT = "helpdesk.tickets.update", "helpdesk.drafts.create"
MODES: list[tuple[str, dict[str, Any]]] = [
    ("execute_and_timeout", {}),
    ("timeout_without_effect", {}),
    ("execute_then_5xx", {"status": 502}),
    ("5xx_without_effect", {"status": 503}),
    ("execute_then_reset", {}),
    ("reset_without_effect", {}),
    ("cut_body", {}),
    ("same_key_running", {}),
    ("param_mismatch", {}),
    ("overloaded", {"seconds": 1}),
    ("keys_ignored", {}),
    ("key_forgotten_after", {"seconds": 0}),
    ("ok_slow", {"seconds": 1.6, "effect_at": "start"}),
]


def counted(world: World) -> dict[str, int]:
    names = [one["operation"] for one in world.effects()]
    return {name: names.count(name) for name in set(names)}


def all_once(world: World, run: Run) -> None:
    assert run.state == "completed", (run.person_reason, run.waits_for)
    assert counted(world) == {"billing.credit_notes.create": 1, UPDATE: 1, DRAFT: 1}
    assert (
        len(world.sandbox.requests(identity=world.credit(run).identity, operation="billing.credit_notes.create")) == 1
    )
    assert record.verify(stream=f"run:{run.pk}") is None


@pytest.mark.parametrize(("mode", "parameters"), MODES, ids=[mode for mode, _ in MODES])
def test_a_fault_at_the_ticket_and_at_the_draft(world: World, mode: str, parameters: dict[str, Any]) -> None:
    for operation in (UPDATE, DRAFT):
        world.fault(mode, operation, **parameters)
    run = world.work(world.start("CS-8815"))
    assert world.used() == [(mode, 1), (mode, 1)]
    all_once(world, run)


@pytest.mark.parametrize("mode", ["lookup_not_found", "lookup_stale", "lookup_error"])
def test_lookups_that_fail_after_lost_answers(world: World, mode: str) -> None:
    """Neither the ticket nor the draft is done a second time by a lookup that does not show it."""
    for operation, lookup in ((UPDATE, "helpdesk.tickets.changes"), (DRAFT, "helpdesk.drafts.list")):
        world.fault("execute_and_timeout", operation)
        world.fault(mode, lookup)
    run = world.work(world.start("CS-8815"))
    assert sorted(world.used()) == sorted([("execute_and_timeout", 1), (mode, 1)] * 2)
    all_once(world, run)


def test_a_draft_on_another_ticket_is_a_persons(world: World) -> None:
    world.fault("wrong_account", DRAFT, target=world.named("CS-8812"))
    run = world.work(world.start("CS-8815"), until=lambda one: Case.objects.exists())
    assert world.used() == [("wrong_account", 1)] and counted(world)[DRAFT] == 1
    assert (run.state, Case.objects.get().kind) == ("outcome_unknown", "different")


def test_the_ticket_was_touched_in_between(world: World) -> None:
    """The help desk itself refuses the change of an old version; the change is proposed afresh for the new one."""
    world.fault("precondition", UPDATE, times=2)
    run = world.work(world.start("CS-8815"))
    assert world.used() == [("precondition", 2)]
    all_once(world, run)
    tries = Operation.objects.filter(run=run, tool="helpdesk.update_ticket").order_by("created_at")
    assert [(one.state, one.failure_code) for one in tries] == [
        ("failed", "precondition_failed"),
        ("failed", "precondition_failed"),
        ("succeeded", ""),
    ]


def test_a_ticket_that_is_touched_all_the_time_is_a_persons(world: World) -> None:
    world.fault("precondition", UPDATE, times=None)
    run = world.work(world.start("CS-8815"))
    assert (run.state, run.person_code) == ("needs_person", "keeps_changing")
    assert counted(world) == {"billing.credit_notes.create": 1}
    assert world.used()[0][1] == 4  # the first, and three times afresh


def test_touched_between_proposal_and_sending_nothing_is_sent_for_the_old_version(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentops.steps import executing

    real, touched = executing.read_facts, []

    def read_after_a_touch(step: Any, **more: Any) -> Any:
        if not touched and Operation.objects.filter(run=step.run, state="succeeded").exists():
            touched.append(world.sandbox.touch(world.named("CS-8815")))
        return real(step, **more)

    monkeypatch.setattr(executing, "read_facts", read_after_a_touch)
    run = world.work(world.start("CS-8815"))
    assert touched
    all_once(world, run)
    assert run.proposals.filter(step="update_ticket").count() == 2
    ours = [one for one in world.sandbox.requests(operation=UPDATE) if world.named("CS-8815") in one["path"]]
    assert len(ours) == 1


def test_another_ticket_was_changed_and_nothing_is_sent_again(world: World) -> None:
    world.fault("wrong_account", UPDATE, target=world.named("CS-8812"))
    run = world.work(
        world.start("CS-8815"), until=lambda one: Case.objects.filter(operation__run=one).exists(), seconds=30
    )
    run = world.work(run, until=lambda one: Operation.objects.get(run=one, state="unknown").probes_made >= 3)
    assert world.used() == [("wrong_account", 1)]
    assert counted(world) == {"billing.credit_notes.create": 1, UPDATE: 1}
    assert (run.state, Case.objects.get().kind) == ("outcome_unknown", "different")


def test_the_help_desk_is_down_after_the_credit(world: World, settings: Any) -> None:
    world.fault("overloaded", UPDATE, seconds=1)  # a pause after the credit
    run = world.work(world.start("CS-8815"), until=lambda one: one.state == "waiting")
    assert world.credit(run).state == "succeeded"
    right, settings.HELPDESK_URL = settings.HELPDESK_URL, "http://127.0.0.1:9/helpdesk/v1"
    run = world.work(run, until=lambda one: one.tries_in_row >= 2)
    assert run.state == "waiting" and "source" in run.waits_for
    settings.HELPDESK_URL = right
    all_once(world, world.work(run))
