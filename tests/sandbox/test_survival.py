"""What survives SIGKILL, two processes at once, and what nobody may change."""

import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests
import stripe

from tests.sandbox import places, receiver
from tests.sandbox.places import Place
from tests.sandbox_process import SandboxProcess, SandboxRefused, start

_ROOT = Path(__file__).parents[2]


def _moved(place: Place, sandbox: SandboxProcess) -> Place:
    """The same place, reached through another process on the same storage."""
    return Place(
        sandbox=sandbox,
        account=place.account,
        customer=place.customer,
        number=place.number,
        invoice=place.invoice,
        ticket=place.ticket,
        incident=place.incident,
    )


def test_everything_committed_survives_sigkill_in_the_middle_of_calls(tmp_path: Path) -> None:
    first = start(tmp_path)
    place = places.settle(first)
    first.faults({"mode": "execute_and_timeout", "match": {"identity": "stuck"}, "params": {"seconds": 60}})
    first.faults({"mode": "ok_slow", "match": {"identity": "slow"}, "params": {"seconds": 60}})
    first.faults({"mode": "5xx_without_effect", "match": {"identity": "later"}})
    made = place.credit(500, identity="a")
    with ThreadPoolExecutor() as pool:
        calls = [pool.submit(place.credit, 700, identity=name) for name in ("stuck", "slow")]
        while len(first.requests()) < 3 or len(first.ledger()) < 2:
            assert not any(call.done() for call in calls)
        ledger = first.ledger()
        first.kill()
        for call in calls:
            assert isinstance(call.exception(timeout=10), stripe.APIConnectionError)
    second = start(tmp_path)
    try:
        again = _moved(place, second)
        assert second.ledger() == ledger and [row["identity"] for row in ledger] == ["a", "stuck"]
        assert again.credit(500, identity="a").id == made.id
        assert again.credit(700, identity="stuck").last_response.headers["Idempotent-Replayed"] == "true"  # type: ignore[union-attr]
        assert [entry["status"] for entry in second.requests()][1:3] == ["no answer", "no answer"]
        with pytest.raises(stripe.APIError) as failed:
            again.credit(1, identity="later")
        assert failed.value.http_status == 500
        assert len(second.ledger()) == 2
    finally:
        second.stop()


def test_events_queued_before_sigkill_are_delivered_after(tmp_path: Path) -> None:
    with receiver.running() as target:
        first = start(tmp_path, webhook_url=target.url)
        place = places.settle(first)
        first.faults({"mode": "events_delay", "operation": "billing.*", "times": None, "params": {"seconds": 2}})
        place.credit(500, identity="a")
        first.kill()
        assert target.arrived == []
        second = start(tmp_path, webhook_url=target.url)
        try:
            types = [receiver.event_of(delivery).type for delivery in target.wait(2)]
        finally:
            second.stop()
    assert sorted(types) == ["credit_note.created", "invoice.updated"]


def test_two_processes_on_one_storage_share_keys_and_ledger(tmp_path: Path) -> None:
    one, two = start(tmp_path), start(tmp_path)
    try:
        place = places.settle(one)
        sides = [place, _moved(place, two)]
        with ThreadPoolExecutor(max_workers=8) as pool:
            ids = list(pool.map(lambda n: sides[n % 2].credit(10, identity=f"op-{n // 4}").id, range(40)))
        assert len(set(ids)) == 10
        assert one.ledger() == two.ledger() and len(one.ledger()) == 10
    finally:
        one.stop()
        two.stop()


def test_two_sandboxes_are_two_worlds(place: Place, tmp_path: Path) -> None:
    other = start(tmp_path)
    try:
        assert other.ledger() == [] and other.world()["accounts"] == []
        assert place.sandbox.url != other.url
    finally:
        other.stop()


def test_the_ledger_only_grows(place: Place) -> None:
    place.credit(500, identity=f"{place.number}/a")
    db = sqlite3.connect(place.sandbox.data_dir / "sandbox.sqlite3", timeout=10)
    try:
        for statement in (
            "UPDATE ledger SET amount_minor = 1",
            "DELETE FROM ledger",
            "INSERT OR REPLACE INTO ledger (seq, at, system, operation, objects, payload)"
            " VALUES (1, 0, '', '', '{}', '{}')",
        ):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                db.execute(statement)
    finally:
        db.rollback()
        db.close()
    assert [row["amount_minor"] for row in place.effects(f"{place.number}/a")] == [500]


def test_the_sandbox_imports_nothing_of_the_product_and_no_django() -> None:
    code = (
        "import sys; import agentops.sandbox.__main__; "
        "others = ('django', 'runs', 'approvals', 'reconciliation', 'celery'); "
        "bad = [m for m in sys.modules if m.split('.')[0] in others"
        " or (m.startswith('agentops.') and not m.startswith('agentops.sandbox'))]; sys.exit(str(bad) if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=_ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_taken_port_is_one_clear_message(place: Place, tmp_path: Path) -> None:
    port = place.sandbox.url.rpartition(":")[2]
    command = [sys.executable, "-m", "agentops.sandbox", "--port", port, "--data", str(tmp_path)]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 1 and "cannot listen" in done.stderr and "Traceback" not in done.stderr


def test_a_world_is_loaded_once_and_wrong_parts_are_named(place: Place) -> None:
    world = places.world_of(place, total_minor=5, currency="usd")
    assert set(place.sandbox.world(world)["created"].values()) == {0}
    assert place.billing().v1.invoices.retrieve(place.invoice).total == 1_200_000
    assert place.sandbox.ledger(object=place.invoice) == []
    invoice = world["invoices"][0]
    for bad, field in (
        ({"invoices": [{**invoice, "number": "X-1", "total_minor": "12.5"}]}, "invoices[0].total_minor"),
        ({"invoices": [{**invoice, "number": "X-1", "currency": "xyz"}]}, "invoices[0].currency"),
        ({"invoices": [{**invoice, "number": "X-1", "account": "ACC-none"}]}, "invoices[0].account"),
        ({"tickets": [{**world["tickets"][0], "id": "CS-x", "incident": "INC-none"}]}, "tickets[0].incident"),
        ({"planets": []}, "planets"),
    ):
        with pytest.raises(SandboxRefused) as refused:
            place.sandbox.world(bad)
        assert (refused.value.status, refused.value.error["field"]) == (400, field)


def test_malformed_requests_are_client_errors(place: Place) -> None:
    url = place.sandbox.url
    headers = {"Authorization": "Bearer sk_test_of_the_sandbox", "Content-Type": "application/x-www-form-urlencoded"}
    deep = "metadata" + "[a]" * 3000 + "=1"
    for body in (b"\xff\xfe=1", b"a=1&a[b]=2", deep.encode(), b"&".join(b"a%d=1" % n for n in range(3000))):
        answer = requests.post(f"{url}/v1/credit_notes", data=body, headers=headers, timeout=10)
        assert answer.status_code == 400 and answer.json()["error"]["type"] == "invalid_request_error"
    assert requests.post(f"{url}/_sandbox/world", data="{", timeout=10).status_code == 400
    nested = '{"plans":' + "[" * 500 + "]" * 500 + "}"
    for text in ("[" * 100_000, nested, '{"plans": NaN}', '{"plans": "\\ud800"}', "[]", "9" * 5000):
        assert requests.post(f"{url}/_sandbox/world", data=text, timeout=10).status_code == 400
    assert requests.get(f"{url}/v1/invoices?" + "a=1&" * 3000, headers=headers, timeout=10).status_code == 400
    assert requests.post(f"{url}/_sandbox/world", data=b"x" * 1_000_001, timeout=10).status_code == 413
    assert requests.get(f"{url}/v1/charges", headers=headers, timeout=10).json()["error"]["code"] == "unknown_operation"


def test_idle_connections_stay_open(place: Place) -> None:
    client = place.billing()
    client.v1.invoices.retrieve(place.invoice)
    time.sleep(6)  # longer than a server's usual five seconds
    assert client.v1.invoices.retrieve(place.invoice).id == place.invoice
