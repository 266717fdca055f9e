"""The desk beside the other side's word: a verdict against it is refused, what came to light later can be noted."""

import datetime as dt
import uuid
from typing import Any

import psycopg
import pytest
from django.test import Client

from reconciliation.models import Case, Observation, Operation, WorkerProcess
from reconciliation.services import lookups
from runs.models import Event, Run
from runs.services import principals
from runs.tools.base import Lookup
from tests.runpages import scenes, world
from tests.runpages.billing import Billing, record
from tests.runpages.test_desk import AGO, SEE, SETTLE, Maker, claimed, html, me

DID_NOT = {"verdict": "did_not", "evidence_did_not": "billing searched every page"}
NOTED = {"verdict": "noted", "evidence_noted": "voided CR-5519 in billing"}
PROCESS = "worker-1 pid 41"


@pytest.fixture
def tomas(signed_in: Maker) -> Client:
    return signed_in(SEE, SETTLE, "runs.view_run", name="tomas")


@pytest.fixture
def case(db: str, billing: Billing) -> Case:
    """Not confirmed, asked often; nothing has ever been seen of it."""
    return world.open_case(scenes.unknown(AGO)[1], "asked 8 times; last answer: billing did not answer")


def settled(client: Client, case: Case, form: dict[str, str]) -> tuple[int, str]:
    answer = client.post(f"/cases/{case.number}/settle", me(**form))
    return answer.status_code, html(answer)


def state(case: Case) -> tuple[str, str]:
    case.refresh_from_db()
    return case.state, Operation.objects.get(pk=case.operation_id).state


def test_it_did_not_happen_is_taken_once_billing_has_just_said_none(
    case: Case, tomas: Client, billing: Billing
) -> None:
    claimed(tomas, case)
    assert settled(tomas, case, DID_NOT)[0] == 302
    assert billing.asked == 1 and state(case) == ("resolved", "failed")
    case.refresh_from_db()
    assert case.verdict == "did_not"
    assert Operation.objects.get(pk=case.operation_id).failure_code == "settled_absent"
    page = html(tomas.get(f"/runs/{case.operation.run_id}/?tab=operations"))
    assert "A person settled that it did not happen" in page and "Proof that nothing happened" not in page


def test_it_did_not_happen_is_refused_while_billing_cannot_be_asked(
    case: Case, tomas: Client, billing: Billing
) -> None:
    claimed(tomas, case)
    billing.records = None
    status, page = settled(tomas, case, DID_NOT)
    assert status == 409 and "Billing could not be asked just now" in page and "try again" in page
    assert DID_NOT["evidence_did_not"] in page, "what was typed stays"
    assert billing.asked == 1 and state(case) == ("claimed", "unknown")
    assert Observation.objects.filter(operation=case.operation, finding="unreachable").count() == 2, "kept as asked"


def test_what_billing_has_shown_cannot_be_said_not_to_have_happened(
    case: Case, tomas: Client, billing: Billing
) -> None:
    claimed(tomas, case)
    billing.records = (record(case.operation.identity),)
    status, page = settled(tomas, case, DID_NOT)
    assert status == 409 and "has shown CR-5519 under our identity" in page
    billing.records = ()
    status, page = settled(tomas, case, DID_NOT)
    assert status == 409 and "has shown CR-5519" in page, "not finding it again takes nothing back"
    assert "Not while billing shows CR-5519 under our identity." in page
    assert state(case) == ("claimed", "unknown")


def test_what_billing_has_undone_counts_as_not_having_happened(case: Case, tomas: Client, billing: Billing) -> None:
    claimed(tomas, case)
    billing.records = (record(case.operation.identity),)
    assert settled(tomas, case, DID_NOT)[0] == 409
    billing.records = (record(case.operation.identity, void=True),)
    assert settled(tomas, case, DID_NOT)[0] == 302
    assert state(case) == ("resolved", "failed")


def test_a_case_that_asking_just_settled_takes_no_verdict(case: Case, tomas: Client, billing: Billing) -> None:
    claimed(tomas, case)
    billing.records = (record(case.operation.identity, "CR-5520", amount="120000"),)
    status, page = settled(tomas, case, DID_NOT)
    assert status == 409
    assert "Billing was asked just before, and its answer settled this case" in page and "CR-5520" in page
    assert state(case) == ("resolved", "succeeded")


def test_nobody_is_asked_for_who_does_not_have_the_case(case: Case, tomas: Client, billing: Billing) -> None:
    assert settled(tomas, case, DID_NOT)[0] == 409
    assert billing.asked == 0


# ---- a process that no kernel can vouch for


@pytest.fixture
def asleep(case: Case) -> WorkerProcess:
    """An attempt that was never closed, by a process of another machine."""
    return world.attempt(case.operation, 3, AGO + dt.timedelta(hours=4, minutes=30)).sender


def gone(client: Client, case: Case, process: Any, evidence: str) -> tuple[int, str]:
    path = f"/cases/{case.number}/processes/{process}/gone"
    answer = client.post(path, me(evidence=evidence))
    return answer.status_code, html(answer)


def test_a_sender_that_may_wake_closes_that_verdict_until_a_person_says_that_it_is_gone(
    case: Case, asleep: WorkerProcess, tomas: Client, billing: Billing, owner: psycopg.Connection
) -> None:
    assert gone(tomas, case, asleep.pk, "rebooted")[0] == 409, "whoever says so has the case"
    claimed(tomas, case)
    page = html(tomas.get(f"/cases/{case.number}/"))
    assert "Not while a sender may still wake" in page and "This process is gone" in page
    assert f"<b>{PROCESS}</b> made an attempt" in page and "could then happen twice" in page
    status, page = settled(tomas, case, DID_NOT)
    assert status == 409 and "may still send" in page and state(case) == ("claimed", "unknown")

    status, page = gone(tomas, case, asleep.pk, " ")
    assert status == 422 and "Say how you know" in page
    assert gone(tomas, case, asleep.pk, "the machine was started anew at noon")[0] == 302
    asleep.refresh_from_db()
    assert asleep.ended_at is not None
    said = Event.objects.get(stream=f"run:{case.operation.run_id}", kind="process.ended")
    assert said.data["evidence"] == "the machine was started anew at noon" and said.data["attempts"] == [3]
    run_page = html(tomas.get(f"/runs/{case.operation.run_id}/"))
    assert f"{PROCESS} is gone, says Tomas Example" in run_page
    assert "This process is gone" not in html(tomas.get(f"/cases/{case.number}/"))
    status, page = settled(tomas, case, DID_NOT)
    assert status == 409 and "may still arrive" in page, "it may have called until a moment ago"
    owner.execute("ALTER TABLE reconciliation_workerprocess DISABLE TRIGGER USER")
    owner.execute("UPDATE reconciliation_workerprocess SET ended_at = ended_at - interval '1 hour'")
    assert settled(tomas, case, DID_NOT)[0] == 302 and state(case) == ("resolved", "failed")


def test_a_process_that_shows_life_is_not_gone(case: Case, asleep: WorkerProcess, tomas: Client) -> None:
    claimed(tomas, case)
    soon = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=50)
    other = world.new_run(subject="CS-9")
    Run.objects.filter(pk=other.pk).update(lease_holder=str(asleep.pk), lease_until=soon)
    status, page = gone(tomas, case, asleep.pk, "I am sure")
    assert status == 409 and f"{PROCESS[:1].upper()}{PROCESS[1:]} shows that it is alive" in page
    assert "I am sure" in page, "what was typed stays"
    asleep.refresh_from_db()
    assert asleep.ended_at is None


def test_only_a_process_that_is_waited_for_can_be_said_to_be_gone(
    case: Case, asleep: WorkerProcess, tomas: Client, signed_in: Maker
) -> None:
    claimed(tomas, case)
    other = WorkerProcess.objects.create(host="worker-2", boot="boot", pid=7, start_ticks=7)
    for process in (other.pk, uuid.uuid4()):
        status, page = gone(tomas, case, process, "sure")
        assert status == 409 and "Nothing waits for that process" in page
    path = f"/cases/{case.number}/processes/{asleep.pk}/gone"
    assert signed_in(SEE, name="olga").post(path, me("olga", evidence="x")).status_code == 403
    assert tomas.post(path, {"as_user": "0", "evidence": "x"}).status_code == 403
    assert tomas.get(path).status_code == 405
    assert not WorkerProcess.objects.filter(ended_at__isnull=False).exists()


# ---- what came to light after it was settled


@pytest.fixture
def late(case: Case, tomas: Client, billing: Billing) -> Case:
    """Settled as not having happened; then billing names a record after all."""
    claimed(tomas, case)
    assert settled(tomas, case, DID_NOT)[0] == 302
    billing.records = (record(case.operation.identity, amount="120000"),)
    lookups.record_lookup(
        operation_id=case.operation_id,
        lookup=Lookup(records=billing.records, pages=1),
        problem="",
        asked_at=world.NOW,
        contract=billing.contract,
        actor=principals.system(),
    )
    return Case.objects.get(operation=case.operation_id, state="open")


def test_late_truth_can_be_noted_and_is_not_called_right(late: Case, tomas: Client, billing: Billing) -> None:
    claimed(tomas, late)
    page = html(tomas.get(f"/cases/{late.number}/"))
    assert "Noted; put right outside" in page and 'value="did_not" disabled' in page and 'value="happened"' in page
    assert "Our record says: failed, as not done" in page
    assert "Billing names CR-5519, so $1,200.00 USD may be out although our record says it is not." in page
    status, page = settled(tomas, late, DID_NOT)
    assert status == 409 and "Not while billing shows CR-5519" in page
    status, page = settled(tomas, late, {"verdict": "stands", "evidence_stands": "I am sure"})
    assert status == 409 and "our record is not right" in page
    status, page = settled(tomas, late, {"verdict": "noted", "evidence_noted": " "})
    assert status == 422 and "Say how you know" in page
    assert settled(tomas, late, NOTED)[0] == 302
    late.refresh_from_db()
    assert (late.state, late.verdict, late.evidence) == ("resolved", "noted", "voided CR-5519 in billing")
    page = html(tomas.get(f"/cases/{late.number}/"))
    assert "Noted; put right outside" in page and "Billing names CR-5519" in page


def test_what_is_in_dispute_is_never_shown_as_nothing_done(late: Case, tomas: Client) -> None:
    run = f"/runs/{late.operation.run_id}/"
    page = html(tomas.get(run))
    assert "In dispute" in page and late.label in page and "proved not done" not in page
    assert "$1,200.00" in html(tomas.get("/cases/")), "it is at risk"
    claimed(tomas, late)
    assert settled(tomas, late, NOTED)[0] == 302
    for path in (run, f"{run}?tab=operations"):
        page = html(tomas.get(path))
        assert late.label in page and "voided CR-5519 in billing" in page, path
    page = html(tomas.get(run))
    assert "Put right outside" in page and "In dispute" not in page
    assert "Nothing" in html(tomas.get("/cases/")), "nothing is at risk any more"


def test_noting_is_for_settled_operations_only(case: Case, tomas: Client) -> None:
    claimed(tomas, case)
    assert 'value="noted"' not in html(tomas.get(f"/cases/{case.number}/"))
    status, page = settled(tomas, case, NOTED)
    assert status == 409 and "has to be settled before" in page and state(case) == ("claimed", "unknown")


def test_a_second_record_is_named_wherever_the_operation_is_shown(case: Case, tomas: Client, billing: Billing) -> None:
    claimed(tomas, case)
    billing.records = tuple(record(case.operation.identity, one, amount="120000") for one in ("CR-1", "CR-2"))
    form = {"verdict": "twice", "reference_twice": "CR-1", "other_reference_twice": "CR-2", "evidence_twice": "both"}
    assert settled(tomas, case, form)[0] == 302
    assert Operation.objects.get(pk=case.operation_id).other_reference == "CR-2"
    run = f"/runs/{case.operation.run_id}/"
    for path in (run, f"{run}?tab=operations", f"/cases/{case.number}/"):
        page = html(tomas.get(path))
        assert "CR-1" in page and "CR-2" in page and "reversed in billing" in page, path


def test_the_second_record_cannot_be_another_operations(case: Case, tomas: Client, billing: Billing) -> None:
    _, other = scenes.completed(AGO, subject="CS-7")
    claimed(tomas, case)
    billing.records = None
    form = {"verdict": "twice", "reference_twice": "CR-1", "other_reference_twice": str(other.external_reference),
            "evidence_twice": "both"}  # fmt: skip
    status, page = settled(tomas, case, form)
    assert status == 409 and f"{other.external_reference} already settles another operation" in page
