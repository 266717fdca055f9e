"""Asking the other side: what it says, what it does not say, and what nobody may conclude from it."""

import datetime as dt
import time
from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings as live_settings

from approvals.models import Allowance
from reconciliation.models import Attempt, Case, Observation, Operation
from reconciliation.services import cases, probe
from runs import clock
from runs.models import Principal, Run
from runs.services import principals
from runs.tools.base import Repeat
from runs.tools.billing.live import CreateCredit
from runs.tools.registry import tool
from tests.engine.conftest import CREATE, World

LIST = "billing.credit_notes.list"


def keys(world: World, run: Run) -> list[str]:
    """What came after the colon of each wire key that billing saw for the credit."""
    seen = world.sandbox.requests(identity=world.credit(run).identity, operation=CREATE)
    return [one["wire_key"].rpartition(":")[2] for one in seen]


def findings(run: Run) -> list[str]:
    found = Observation.objects.filter(operation__run=run, operation__tool="billing.create_credit", source="probe")
    return list(found.order_by("asked_at").values_list("finding", flat=True))


def tomas(world: World) -> Principal:
    return principals.of_user(user=world.people["tomas"])


def settle(world: World, run: Run, verdict: str, **more: Any) -> cases.CaseResult:
    case = Case.objects.filter(operation=world.credit(run)).exclude(state="resolved").earliest("number")
    assert cases.claim(case_number=case.pk, principal=tomas(world)).ok
    connector = tool(case.operation.tool)
    probe.ask(operation=case.operation, connector=connector, actor=tomas(world))  # as the page does
    return cases.settle(
        case_number=case.pk,
        principal=tomas(world),
        contract=connector.contract,
        verdict=verdict,
        evidence="seen in billing’s own pages",
        **more,
    )


@pytest.mark.parametrize(
    ("mode", "parameters"), [("lookup_not_found", {}), ("lookup_stale", {"seconds": 60}), ("lookup_stale", {})]
)
def test_a_lookup_that_misses_what_is_there_makes_no_second_credit(
    world: World, mode: str, parameters: dict[str, Any]
) -> None:
    run = world.unknown()
    world.fault(mode, LIST, **parameters)
    run = world.work(run)
    assert (run.state, len(world.credits()), dict(world.used())[mode]) == ("completed", 1, 1), run.person_reason
    assert findings(run)[0] == "absent" and findings(run)[-1] == "found"
    assert set(keys(world, run)) == {"0"}
    assert not Observation.objects.filter(operation__run=run, finding="absent", conclusive=True).exists()


def test_unreachable_is_not_absent(world: World, settings: Any) -> None:
    run = world.unknown("timeout_without_effect")
    world.fault("lookup_error", LIST, times=2, status=503)
    run = world.work(run, until=lambda one: findings(one).count("unreachable") >= 2)
    right, settings.BILLING_URL = settings.BILLING_URL, "http://127.0.0.1:9"
    run = world.work(run, until=lambda one: findings(one).count("unreachable") >= 3)
    assert (world.credit(run).state, keys(world, run), world.credits()) == ("unknown", ["0"], [])
    settings.BILLING_URL = right
    run = world.work(run)
    assert (run.state, keys(world, run), len(world.credits())) == ("completed", ["0", "0"], 1)
    assert dict(world.used())["lookup_error"] == 2
    assert right == live_settings.BILLING_URL


@pytest.mark.parametrize("broken", ["keys_ignored", "key_retention"])
def test_a_receiver_that_breaks_its_promise_is_found_out(world: World, broken: str) -> None:
    """It loses the answer, hides the credit from the first lookup, and does not keep its key: there are two credits.
    That is never reported as done; an admin names both, and a person has the run: one is to be reversed there."""
    run = world.unknown()
    if broken == "keys_ignored":
        world.fault("keys_ignored")
    else:
        world.sandbox.settings(key_retention_seconds=0)
    world.fault("lookup_not_found", LIST)
    run = world.work(run, until=lambda one: Case.objects.filter(operation__run=one, kind="duplicate").exists())
    made = world.credits()
    assert len(made) == 2 and keys(world, run) == ["0", "0"]
    assert (world.credit(run).state, run.state) == ("unknown", "outcome_unknown")

    references = _references(run)
    assert settle(world, run, "twice", reference=references[0]).code == "other_reference_needed"
    assert settle(world, run, "twice", reference=references[0], other_reference=references[1]).ok
    run = world.work(run)
    assert (run.state, run.person_code) == ("needs_person", "recorded_twice")
    assert all(one in run.person_reason for one in references)
    operation = world.credit(run)
    assert (operation.external_reference, operation.other_reference) == tuple(references)
    assert set(Case.objects.values_list("verdict", flat=True)) == {"twice"}
    assert len(world.credits()) == 2 and not Case.objects.exclude(state="resolved").exists()


def _references(run: Run) -> list[str]:
    several = Observation.objects.filter(operation__run=run, finding="several").latest("asked_at")
    return several.summary.partition("recorded: ")[2].split(", ")


def test_another_amount_than_was_sent_goes_to_a_person_with_the_real_one(world: World) -> None:
    world.fault("wrong_amount", delta_minor=100)
    run = world.work(world.start("CS-8815"), until=lambda one: "different" in findings(one))
    assert world.used() == [("wrong_amount", 1)]
    operation = world.credit(run)
    assert (operation.state, run.state) == ("unknown", "outcome_unknown")
    assert Case.objects.get(operation=operation).kind == "different"
    note = Observation.objects.filter(operation=operation, source="probe", finding="different").latest("asked_at")
    reference = note.summary.split(", ")[1]

    assert settle(world, run, "differently", reference=reference).code == "amount_needed"
    assert settle(world, run, "differently", reference=reference, actual_minor=42_100).ok
    run = world.work(run)
    assert (run.state, run.person_code) == ("needs_person", "recorded_differently")
    assert [one["amount_minor"] for one in world.credits()] == [42_100]
    total = Allowance.objects.get()
    assert (total.reserved_minor, total.settled_minor, total.overrun_minor) == (0, 42_100, 0)


def test_a_credit_on_another_account_is_never_taken_for_absent(world: World) -> None:
    """Nothing is found where we look, for it is elsewhere; sending again would make a second one."""
    world.fault("wrong_account", target=world.named("INV-2041"))
    run = world.work(world.start("CS-8815"), until=lambda one: findings(one).count("absent") >= 4, seconds=120)
    assert world.used() == [("wrong_account", 1)]
    assert (world.credit(run).state, keys(world, run), len(world.credits())) == ("unknown", ["0"], 1)
    assert not Observation.objects.filter(operation__run=run, conclusive=True, finding="absent").exists()
    assert Case.objects.get(operation=world.credit(run)).kind == "different"
    assert run.waits_for.startswith("an admin to settle RC-")


def _last_call_ends(run: Run) -> dt.datetime:
    attempt = Attempt.objects.filter(operation__run=run).latest("number")
    return attempt.send_before + dt.timedelta(seconds=attempt.call_limit_seconds)


@pytest.mark.parametrize(
    ("change", "sent", "proposals"),
    [
        ({"repeat": Repeat.LOOK_UP_FIRST}, ["0", "1"], 1),  # the receiver ignores keys: only after proof, with the next
        ({"repeat": Repeat.ONCE}, ["0"], 2),  # never again: proved undone, it is proposed afresh
    ],
)
def test_proof_of_absence_comes_before_anything_else_is_sent(
    world: World, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], sent: list[str], proposals: int
) -> None:
    monkeypatch.setattr(CreateCredit, "contract", replace(CreateCredit.contract, **change))
    world.fault("timeout_without_effect")
    run = world.work(world.start("CS-8815"))
    first = Operation.objects.filter(run=run, tool="billing.create_credit").earliest("created_at")
    assert world.used() == [("timeout_without_effect", 1)]
    assert (run.state, len(world.credits())) == ("completed", 1), run.person_reason
    assert run.proposals.filter(step="credit").count() == proposals
    seen = world.sandbox.requests(identity=first.identity, operation=CREATE)
    assert [one["wire_key"].rpartition(":")[2] for one in seen] == sent
    proof = first.observations.filter(finding="absent", conclusive=True).earliest("asked_at")
    attempt = first.attempts.get(number=1)
    contract = CreateCredit.contract
    assert proof.asked_at > attempt.send_before + contract.call_limit + contract.settling


def test_where_a_lookup_proves_nothing_a_person_settles_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    weak = replace(CreateCredit.contract, repeat=Repeat.ONCE, lookup_is_conclusive=False, max_probes=2)
    monkeypatch.setattr(CreateCredit, "contract", weak)
    run = world.unknown("timeout_without_effect")
    run = world.work(run, until=lambda one: Case.objects.filter(operation__run=one).exists())
    assert (world.credit(run).state, Case.objects.get().kind) == ("unknown", "not_confirmed")
    told = settle(world, run, "did_not")
    while told.code == "too_early":  # the call that was lost may still arrive
        time.sleep(0.2)
        told = settle(world, run, "did_not")
    assert told.ok and clock.now() > _last_call_ends(run)
    run = world.work(run, until=lambda one: one.state != "outcome_unknown")
    operation = world.credit(run)
    assert (operation.state, operation.settled_by, keys(world, run)) == ("failed", "person", ["0"])
    run = world.work(run)
    assert (run.state, world.credits()) == ("needs_person", [])
