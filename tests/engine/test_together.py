"""Two at once: people on one request, workers on one run, runs on one credit, runs on one total."""

import copy
from dataclasses import replace

import pytest
from django.db import IntegrityError, transaction
from django.db.models import F

from agentops import engine
from agentops.demo.world import STORIES, Story, sandbox_world
from approvals.models import Allowance, ApprovalRequest, Decision, Vote
from approvals.seed_policies import SERVICE_CREDITS
from reconciliation.models import Operation, Reservation
from runs import record
from runs.models import Event, Run
from runs.services import principals
from runs.tools.billing.live import CreateCredit
from tests import published
from tests.approvals.world import at_once
from tests.engine.conftest import CREATE, World


@pytest.mark.parametrize("choices", [("approve", "approve"), ("approve", "reject"), ("reject", "reject")])
def test_d8_two_managers_at_once(world: World, choices: tuple[str, str]) -> None:
    run = world.work(world.start())
    answers = at_once(
        *(
            lambda who=who, choice=choice: world.vote(run, who, choice)
            for who, choice in zip(("maya", "jonas"), choices, strict=True)
        )
    )
    codes = [one.code for one in answers]
    first = "approved" if "approved" in codes else "rejected"
    assert sorted(codes) == sorted([first, "decided"])
    loser = next(one for one in answers if one.code == "decided")
    assert loser.detail["by"] in ("Maya Lindgren", "Jonas Weber") and loser.detail["choice"] in first + "d"
    assert (Decision.objects.count(), Vote.objects.count()) == (1, 1)
    stream = f"run:{run.pk}"
    assert Event.objects.filter(stream=stream, kind__in=["request.approved", "request.rejected"]).count() == 1

    run = world.work(run, until=lambda one: one.is_over)
    assert run.state == {"approved": "completed", "rejected": "rejected"}[first]
    assert len(world.credits()) == (1 if first == "approved" else 0)
    assert record.verify(stream=stream) is None


def test_d8_approved_by_one_while_the_run_is_cancelled_by_another(world: World) -> None:
    from runs.services import operate

    run = world.work(world.start())
    priya = principals.of_user(user=world.people["priya"])
    vote, cancel = at_once(
        lambda: world.vote(run), lambda: operate.cancel(run_id=run.pk, principal=priya, reason="raised by mistake")
    )
    assert cancel.ok and vote.code in ("approved", "cancelled")
    run = world.work(run, until=lambda one: one.is_over)
    assert run.state == "cancelled" and world.effects() == []
    assert ApprovalRequest.objects.get(run=run).state in ("revoked", "withdrawn")


def test_two_runs_about_one_ticket_and_incident_make_one_credit(world: World) -> None:
    runs = [world.work(world.start("CS-8812", key=f"start {number}")) for number in range(3)]
    assert len({one.pk for one in runs}) == 3
    for run in runs:
        assert world.vote(run).code == "approved"
    workers = [world.worker(run) for run in runs]
    assert [world.workers.wait(pid) for pid in workers] == [0, 0, 0]
    for run in runs:  # one that came after the credit was made reads of it, and its agent is told so
        world.work(run)
    ended = sorted(Run.objects.values_list("state", "person_code"))
    assert [state for state, _ in ended] == ["completed", "needs_person", "needs_person"]
    assert {code for _, code in ended[1:]} <= {"business_key_taken", "proposals_refused", "escalated"}
    assert len(world.credits()) == 1 and len(world.effects()) == 3
    assert Operation.objects.filter(tool="billing.create_credit").count() == 1
    closed = ApprovalRequest.objects.exclude(state="spent")
    assert {one.state for one in closed} <= {"revoked", "stale"} and closed.count() == 2
    assert all(record.verify(stream=f"run:{run.pk}") is None for run in runs)


def test_a_second_run_after_the_first_is_told_that_there_is_one(world: World) -> None:
    first = world.work(world.start("CS-8815"))
    second = world.work(world.start("CS-8815", key="once more"))
    assert (first.state, second.state) == ("completed", "needs_person")
    assert len(world.credits()) == 1


# ---- totals


def stories(world: World, number: int) -> list[Story]:
    """So many tickets of one customer about as many outages in one month."""
    base = next(one for one in STORIES if one.ticket == "CS-8812")
    own = replace(base, account=world.named(base.account), invoice=world.named(base.invoice))
    return [
        replace(own, ticket=f"CS-9{index:02d}{world.suffix}", incident=f"INC-9{index:02d}{world.suffix}")
        for index in range(number)
    ]


def limit_the_month(minor: int) -> None:
    document = copy.deepcopy(SERVICE_CREDITS.document)
    document["totals"][0]["limits"]["USD"] = str(minor)
    for rule in document["rules"]:  # a rule above the month's total would be pointless, and is refused
        rule["when"] = rule["when"].replace("1000000", str(minor))
    published.publish(
        slug=SERVICE_CREDITS.slug,
        name=SERVICE_CREDITS.name,
        tools=list(SERVICE_CREDITS.tools),
        document=document,
        note="a small month",
    )


def approved_runs(world: World, number: int) -> list[Run]:
    found = stories(world, number)
    world.sandbox.world(sandbox_world(tuple(found)))
    runs = []
    for one in found:
        run = world.work(world.start(one.ticket.removesuffix(world.suffix)))
        assert run.state == "awaiting_approval", run.person_reason
        assert world.vote(run).code == "approved"
        runs.append(run)
    return runs


def test_a_months_total_is_never_exceeded_by_runs_at_once(world: World) -> None:
    limit_the_month(250_000)
    runs = approved_runs(world, 5)
    assert Allowance.objects.count() == 0
    at_once(*(lambda run=run: engine.advance(run_id=run.pk) for run in runs))
    for run in runs:
        world.work(run)
    ended = sorted(Run.objects.filter(pk__in=[run.pk for run in runs]).values_list("state", "person_code"))
    assert ended == [("completed", "")] * 2 + [("needs_person", "over_limit")] * 3
    total = Allowance.objects.get()
    assert (total.reserved_minor, total.settled_minor, total.overrun_minor) == (0, 240_000, 0)
    assert sum(one["amount_minor"] for one in world.credits()) == 240_000
    assert sorted(Reservation.objects.values_list("state", flat=True)) == ["settled", "settled"]


def test_what_is_unknown_counts_and_what_failed_is_given_back(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CreateCredit, "contract", replace(CreateCredit.contract, max_attempts=2))
    limit_the_month(150_000)
    first, second = approved_runs(world, 2)
    world.fault("timeout_without_effect", times=None)
    world.work(first, until=lambda one: one.state == "outcome_unknown")
    assert Allowance.objects.get().reserved_minor == 120_000
    second = world.work(second)
    assert (second.state, second.person_code) == ("needs_person", "over_limit")
    first = world.work(first, seconds=120)
    assert (first.state, first.person_code) == ("needs_person", "gave_up")
    total = Allowance.objects.get()
    assert (total.reserved_minor, total.settled_minor) == (0, 0)
    assert world.credits() == []


def test_the_database_itself_holds_the_limit(world: World) -> None:
    world.work(world.start("CS-8815"))
    total = Allowance.objects.get()
    room = total.limit_minor - total.settled_minor
    for change in ({"reserved_minor": room + 1}, {"settled_minor": total.limit_minor + 1}, {"reserved_minor": -1}):
        with pytest.raises(IntegrityError), transaction.atomic():
            Allowance.objects.update(**change)
    assert Allowance.objects.update(reserved_minor=F("reserved_minor") + room) == 1


# ---- workers


def test_of_workers_on_one_run_one_proceeds(world: World) -> None:
    run = world.start("CS-8815")
    steps = at_once(*(lambda: engine.advance(run_id=run.pk) for _ in range(3)))
    assert sorted(steps)[:2] == [0, 0] and max(steps) > 5
    run = world.work(run)
    assert run.state == "completed" and len(world.effects()) == 3
    assert run.lease_token == Run.objects.get(pk=run.pk).lease_token


def test_worker_processes_fight_over_one_run(world: World) -> None:
    world.fault("execute_and_timeout")
    run = world.start("CS-8815")
    workers = [world.worker(run) for _ in range(4)]
    assert [world.workers.wait(pid) for pid in workers] == [0] * 4
    run.refresh_from_db()
    assert run.state == "completed" and world.used() == [("execute_and_timeout", 1)]
    assert [one["identity"] for one in world.credits()] == [world.credit(run).identity]
    assert len(world.sandbox.requests(identity=world.credit(run).identity, operation=CREATE)) == 1
    assert len(world.effects()) == 3
    assert record.verify(stream=f"run:{run.pk}") is None
