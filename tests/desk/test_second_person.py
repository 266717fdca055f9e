"""Above a limit a verdict is only proposed; another admin confirms it, on the same evidence, or nothing comes of it."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, connections, transaction

from reconciliation.models import Case, Operation, ProposedVerdict
from reconciliation.services import cases
from reconciliation.services.cases import CaseResult
from runs import record
from runs.models import Event, Principal
from runs.services import principals
from runs.tools.registry import tool
from tests.desk.conftest import Desk
from tests.desk.credits import again, reference
from tests.desk.test_lock_order import judge, watching
from tests.desk.test_verdicts import found, shown
from tests.engine.conftest import World
from tests.runpages.world import person

TYPED: dict[str, Any] = {"reference": "CN-1", "other_reference": "CN-2", "actual_minor": 70_000}


@pytest.fixture(autouse=True)
def limit(settings: Any) -> None:
    settings.SETTLE_ALONE_UP_TO = {"USD": 100_000}


@pytest.fixture
def noor(desk: Desk) -> Principal:
    user = person("noor")
    user.groups.add(Group.objects.get(name="admin"))
    return principals.of_user(user=user)


@pytest.fixture
def case(world: World, desk: Desk) -> Case:
    """$1,200.00, not confirmed; nothing was made and nothing has been shown."""
    return desk.case(world.unknown("timeout_without_effect"))


def propose(desk: Desk, case: Case, verdict: str = "happened", **more: Any) -> str:
    """What Tomas gives; the digest that the page then carries."""
    assert desk.settle(case, verdict, **{**TYPED, **more}) == "proposed"
    return ProposedVerdict.objects.filter(case=case).latest("number").digest


def confirm(desk: Desk, case: Case, who: Principal, digest: str, *, ask: bool = True, claim: bool = True) -> CaseResult:
    if claim:
        assert cases.claim(case_number=case.pk, principal=who).ok
    if ask:
        desk.ask(case.operation)
    contract = tool(case.operation.tool).contract
    return cases.confirm(case_number=case.pk, principal=who, contract=contract, digest=digest)


def without_effect(case: Case) -> None:
    operation = Operation.objects.get(pk=case.operation_id)
    case.refresh_from_db()
    assert (operation.state, operation.settled_by, case.verdict, case.confirmed_by) == ("unknown", "", "", None)
    assert not operation.their_names.exists() and not operation.observations.filter(source="person").exists()
    assert record.verify(stream=f"run:{operation.run_id}") is None


def test_nothing_comes_of_it_until_another_admin_confirms(desk: Desk, noor: Principal, case: Case) -> None:
    digest = propose(desk, case)
    without_effect(case)
    assert (case.state, case.claimed_by) == ("open", None), "whoever is to confirm can claim it"
    assert confirm(desk, case, noor, digest).ok
    case.refresh_from_db()
    operation = Operation.objects.get(pk=case.operation_id)
    assert (case.state, case.verdict, case.resolved_by, case.confirmed_by) == ("resolved", "happened", desk.tomas, noor)
    assert (operation.state, operation.external_reference, operation.settled_by) == ("succeeded", "CN-1", "person")
    said = Event.objects.filter(stream=f"run:{operation.run_id}", kind__in=["case.proposed", "case.resolved"])
    assert [(one.kind, one.actor_id) for one in said.order_by("seq")] == [
        ("case.proposed", desk.tomas.pk),
        ("case.resolved", noor.pk),
    ]
    assert record.verify(stream=f"run:{operation.run_id}") is None


@pytest.mark.parametrize("verdict", ["happened", "differently", "did_not", "twice"])
def test_every_verdict_takes_two_above_the_limit(desk: Desk, noor: Principal, case: Case, verdict: str) -> None:
    if verdict == "did_not":
        desk.until_proof()
    digest = propose(desk, case, verdict)
    without_effect(case)
    assert confirm(desk, case, noor, digest).ok
    operation = Operation.objects.get(pk=case.operation_id)
    assert operation.state == ("failed" if verdict == "did_not" else "succeeded")
    assert operation.real_minor == (70_000 if verdict == "differently" else 120_000)


def test_noting_takes_two_as_well(desk: Desk, noor: Principal, case: Case) -> None:
    desk.until_proof()
    assert confirm(desk, case, noor, propose(desk, case, "did_not")).ok
    found(desk, case.operation, shown(case.operation))
    later = desk.case(case.operation.run)
    digest = propose(desk, later, "noted")
    later.refresh_from_db()
    assert later.state == "open"
    assert confirm(desk, later, noor, digest).ok
    later.refresh_from_db()
    assert f"{desk.tomas}, confirmed by {noor}: looked it up in billing" in later.dispute


@pytest.mark.parametrize(
    ("limits", "verdict", "code"),
    [
        ({}, "happened", "ok"),
        ({"USD": 120_000}, "happened", "ok"),
        ({"USD": 119_999}, "happened", "proposed"),
        ({"EUR": 900_000}, "happened", "proposed"),
        ({"USD": 120_000}, "differently", "proposed"),
        ({"USD": 239_999}, "twice", "proposed"),
        ({"USD": 240_000}, "twice", "ok"),
    ],
)
def test_what_is_at_stake_counts(
    desk: Desk, case: Case, settings: Any, limits: dict[str, int], verdict: str, code: str
) -> None:
    settings.SETTLE_ALONE_UP_TO = limits
    assert desk.settle(case, verdict, **{**TYPED, "actual_minor": 120_001}) == code


# ---- refusals


def test_nobody_confirms_their_own(desk: Desk, case: Case) -> None:
    digest = propose(desk, case)
    assert confirm(desk, case, desk.tomas, digest).code == "own_proposal"
    without_effect(case)


def test_the_database_holds_that_two_people_are_two(desk: Desk, noor: Principal, case: Case) -> None:
    assert confirm(desk, case, noor, propose(desk, case)).ok
    with pytest.raises(IntegrityError, match="case_confirmed_by_another"), transaction.atomic():
        Case.objects.filter(pk=case.pk).update(confirmed_by=desk.tomas)


def test_it_is_confirmed_by_who_has_the_case(desk: Desk, noor: Principal, case: Case) -> None:
    digest = propose(desk, case)
    assert confirm(desk, case, noor, digest, claim=False).code == "not_claimed"
    assert cases.claim(case_number=case.pk, principal=desk.tomas).ok
    assert confirm(desk, case, noor, digest, claim=False).code == "claimed_by_other"
    without_effect(case)


def test_there_has_to_be_something_to_confirm(desk: Desk, noor: Principal, case: Case) -> None:
    assert cases.release(case_number=case.pk, principal=desk.tomas).ok
    assert confirm(desk, case, noor, "").code == "nothing_proposed"
    without_effect(case)


def test_what_is_confirmed_is_what_was_read(desk: Desk, noor: Principal, case: Case) -> None:
    read = propose(desk, case)
    assert cases.claim(case_number=case.pk, principal=desk.tomas).ok
    newer = propose(desk, case, reference="CN-7")
    assert confirm(desk, case, noor, read).code == "proposal_changed"
    without_effect(case)
    assert confirm(desk, case, noor, newer, claim=False).ok
    assert Operation.objects.get(pk=case.operation_id).external_reference == "CN-7"


def test_what_billing_shows_has_to_be_what_it_showed(world: World, desk: Desk, noor: Principal) -> None:
    run = world.unknown("execute_and_timeout")
    operation, case = world.credit(run), desk.case(run)
    first, second = reference(world), again(operation)
    digest = propose(desk, case, "twice", reference=first, other_reference=second)
    again(operation)
    assert confirm(desk, case, noor, digest).code == "evidence_changed"
    without_effect(case)


def test_what_rules_a_verdict_out_rules_out_confirming_it(desk: Desk, noor: Principal, case: Case) -> None:
    digest = propose(desk, case)  # too early for billing's none to be proof
    desk.until_proof()
    assert confirm(desk, case, noor, digest).code == "none_recorded"
    without_effect(case)


@pytest.mark.parametrize("who", ["proposer", "confirmer"])
def test_both_have_the_right_when_it_takes_effect(desk: Desk, noor: Principal, case: Case, who: str) -> None:
    digest = propose(desk, case)
    assert cases.claim(case_number=case.pk, principal=noor).ok
    user = desk.tomas.user if who == "proposer" else noor.user
    assert user is not None
    user.groups.clear()
    code = confirm(desk, case, noor, digest, claim=False).code
    assert code == ("proposer_lost_right" if who == "proposer" else "no_right")
    without_effect(case)


def test_another_verdict_takes_the_place_of_the_proposed_one(desk: Desk, noor: Principal, case: Case) -> None:
    """The second admin knows better; then the first may confirm that."""
    old = propose(desk, case)
    assert cases.claim(case_number=case.pk, principal=noor).ok
    desk.ask(case.operation)
    contract = tool(case.operation.tool).contract
    given: dict[str, Any] = {"verdict": "differently", "evidence": "half", "reference": "CN-1", "actual_minor": 60_000}
    assert cases.settle(case_number=case.pk, principal=noor, contract=contract, **given).code == "proposed"
    assert confirm(desk, case, desk.tomas, old).code == "proposal_changed"
    newest = ProposedVerdict.objects.filter(case=case).latest("number")
    assert confirm(desk, case, desk.tomas, newest.digest, claim=False).ok
    assert Operation.objects.get(pk=case.operation_id).real_minor == 60_000


# ---- at once


def test_proposing_and_confirming_lock_in_the_one_order(
    desk: Desk, noor: Principal, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cases.release(case_number=case.pk, principal=desk.tomas).ok
    assert cases.claim(case_number=case.pk, principal=desk.tomas).ok
    with watching(monkeypatch) as seen:
        digest = propose(desk, case)
        assert confirm(desk, case, noor, digest).ok
    assert judge(seen) >= {"runs_run", "auth_user", "reconciliation_case", "approvals_allowance"}
    both = sorted(one.user_id or 0 for one in (desk.tomas, noor))
    held = [ids for locked in seen.transactions for table, (ids, *_) in locked if table == "auth_user"]
    assert any(isinstance(ids, list) and sorted(ids) == both for ids in held), "both people at once"


def at_once(*acts: Callable[[], str]) -> list[str]:
    barrier, codes = threading.Barrier(len(acts), timeout=120), [""] * len(acts)

    def run(number: int) -> None:
        try:
            barrier.wait()
            codes[number] = acts[number]()
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=[number]) for number in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return codes


def test_confirming_twice_at_once_settles_once(desk: Desk, noor: Principal, case: Case) -> None:
    digest = propose(desk, case)
    assert cases.claim(case_number=case.pk, principal=noor).ok

    def act() -> str:
        return confirm(desk, case, noor, digest, ask=False, claim=False).code

    assert sorted(at_once(act, act, act)) == ["ok", "resolved", "resolved"]
    operation = Operation.objects.get(pk=case.operation_id)
    assert operation.state == "succeeded" and operation.observations.filter(source="person").count() == 1
    assert record.verify(stream=f"run:{operation.run_id}") is None


def test_confirming_while_billing_is_found_to_have_it_ends_one_way(world: World, desk: Desk, noor: Principal) -> None:
    run = world.unknown("timeout_without_effect")
    operation, case = world.credit(run), desk.case(run)
    digest = propose(desk, case)
    assert cases.claim(case_number=case.pk, principal=noor).ok

    def answer() -> str:
        found(desk, operation, shown(operation, "CN-9"))
        return "found"

    code, _ = at_once(lambda: confirm(desk, case, noor, digest, ask=False, claim=False).code, answer)
    operation.refresh_from_db()
    assert (code, operation.external_reference) in (("ok", "CN-1"), ("resolved", "CN-9"))
    assert operation.settled_by == ("person" if code == "ok" else "probe")
    later = Case.objects.filter(operation=operation).exclude(state="resolved")
    assert later.count() == (1 if code == "ok" else 0), "what came to light after it was settled is a case again"
