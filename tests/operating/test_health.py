"""Health: alive, ready to serve, and with ?all=1 every part; without a login and without secrets."""

import re
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.test import Client

from agentops.local.valkey import EmbeddedValkey
from reconciliation.classification import Result
from reconciliation.services import gates
from runs import clock
from runs.advisory import RELAY
from runs.models import Run
from tests.runpages.world import new_run

READY = "/health/ready"


@pytest.fixture(autouse=True)
def broker(settings: Any, valkey: EmbeddedValkey) -> None:
    settings.BROKER_URL = valkey.broker_url()


@pytest.fixture
def relay(owner: psycopg.Connection) -> None:
    """Some session holds what a relay at work holds."""
    owner.execute("SELECT pg_advisory_lock(%s)", [RELAY])


def parts(*, all_: bool = True) -> tuple[int, dict[str, str]]:
    answer = Client().get(READY, {"all": "1"} if all_ else {})
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json()["ready"] == (answer.status_code == 200)
    assert "no-store" in answer.headers["Cache-Control"]
    return answer.status_code, answer.json()["parts"]


def test_live_needs_nothing() -> None:
    """No database is open in this test: touching one would fail."""
    answer = Client().get("/health/live")
    assert (answer.status_code, answer.json()) == (200, {"live": True})
    assert Client().post("/health/live").status_code == 405


def test_all_is_well(db: str, relay: None) -> None:
    assert parts() == (
        200,
        {"database": "ok", "broker": "ok", "relay": "ok", "workers": "ok", "outside": "ok", "recurring": "ok"},
    )


def test_no_relay_at_work(db: str) -> None:
    status, found = parts()
    assert status == 503 and "relay" in found["relay"]
    assert {name for name, words in found.items() if words != "ok"} == {"relay"}


def test_another_lock_is_no_relay(db: str, owner: psycopg.Connection) -> None:
    owner.execute("SELECT pg_advisory_lock(%s)", [RELAY + 1])
    owner.execute("SELECT pg_advisory_lock(%s, %s)", [RELAY >> 32, (RELAY & 0xFFFFFFFF) - 2**32])
    assert parts()[0] == 503


def test_a_broker_that_is_down_takes_no_page_out_of_service(db: str, relay: None, settings: Any) -> None:
    settings.BROKER_URL = "redis://:hidden-word@127.0.0.1:9/0"
    status, found = parts()
    assert status == 503 and found["broker"] != "ok" and found["relay"] == "ok"
    status, found = parts(all_=False)
    assert status == 200 and found["broker"] != "ok"
    assert "hidden-word" not in str(found) and "127.0.0.1" not in str(found)


def test_a_run_that_nobody_takes_up(db: str, relay: None, owner: psycopg.Connection) -> None:
    run = new_run()
    assert parts()[0] == 200
    owner.execute("UPDATE runs_run SET wake_at = clock_timestamp() - interval '5 minutes' WHERE id = %s", [run.pk])
    status, found = parts()
    assert status == 503 and re.search(r"due for 30\d s", found["workers"])
    owner.execute("UPDATE runs_run SET lease_until = clock_timestamp() + interval '1 minute'")
    assert parts()[1]["workers"] == "ok"


def test_an_outside_system_that_does_not_answer(db: str, relay: None) -> None:
    for _ in range(gates.OPENS_AFTER):
        gates.heard(
            name="billing", result=Result.NOT_SENT, detail="No way to hidden-word.", raw={"error": "ConnectionError"},
            retry_after=None, now=clock.now(), troubled=True,
        )  # fmt: skip
    run = new_run()
    Run.objects.filter(pk=run.pk).update(waits_on="billing")
    status, found = parts()
    assert status == 503 and found["outside"].startswith("no answer from billing (1 waiting);")
    assert "hidden-word" not in str(found)
    assert parts(all_=False)[0] == 200  # no web process is taken out of service for it


def test_pending_migrations(db: str, relay: None, owner: psycopg.Connection) -> None:
    owner.execute("DELETE FROM django_migrations WHERE app = 'agentops'")
    status, found = parts(all_=False)
    assert status == 503 and "lacks 1 migration" in found["database"]


def test_without_a_database(db: str) -> None:
    kept = dict(connection.settings_dict)
    connection.close()
    connection.settings_dict.update(HOST="127.0.0.1", PORT="9", PASSWORD="hidden-word")
    try:
        status, found = parts(all_=False)
        alive = Client().get("/health/live").status_code
    finally:
        connection.settings_dict.update(kept)
    assert status == 503 and found["database"] != "ok" and "hidden-word" not in str(found)
    assert "without the database" in found["relay"] and found["broker"] == "ok"
    assert alive == 200
