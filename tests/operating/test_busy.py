"""A row that somebody holds too long is 503 and nothing recorded, on pages and in the API; other trouble stays seen."""

from typing import Any

import psycopg
import pytest
from django.db import DataError, OperationalError, connection
from django.test import Client

from agentops import busy
from approvals.models import Refusal, Vote
from runs import record
from runs.models import Run, Signal
from runs.services import tokens
from tests.pages import world


@pytest.fixture
def impatient(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection gives up after a moment; it is kept from one request to the next."""
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", None)
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '200ms'")


def test_a_held_row_is_busy_and_nothing_is_recorded(impatient: None, owner: psycopg.Connection) -> None:
    ask, maya = world.ask(), world.person("Maya Lindgren", "manager")
    browser = Client(raise_request_exception=False)
    browser.force_login(maya)
    form = {"choice": "approve_confirmed", "page_digest": ask.page_digest, "as_user": str(maya.pk)}
    with owner.transaction():
        owner.execute("SELECT 1 FROM runs_run WHERE id = %s FOR UPDATE", [ask.run_id])
        answers = [browser.post(f"/approvals/{ask.pk}/", form), browser.post(f"/approvals/{ask.pk}/opened")]
    for answer in answers:
        assert answer.status_code == 503 and int(answer["Retry-After"]) > 0
        assert "Nothing was recorded" in answer.content.decode()
    assert (Vote.objects.count(), Refusal.objects.count()) == (0, 0)
    assert browser.post(f"/approvals/{ask.pk}/", form).status_code == 302
    assert Vote.objects.count() == 1


@pytest.mark.parametrize("debug", [False, True])
def test_the_api_says_so_in_its_own_shape(
    impatient: None, owner: psycopg.Connection, settings: Any, debug: bool
) -> None:
    settings.DEBUG = debug
    headers = {"Authorization": f"Bearer {tokens.issue(name='desk', label='Desk')}"}
    caller = Client(raise_request_exception=False)
    started = caller.post(
        "/api/v1/runs", {"workflow": "service_credit", "input": {"ticket": "CS-1"}}, content_type="application/json",
        headers={**headers, "Idempotency-Key": "k"},
    ).json()  # fmt: skip
    with owner.transaction():
        owner.execute("SELECT 1 FROM runs_run WHERE id = %s FOR UPDATE", [started["id"]])
        answer = caller.post(
            f"/api/v1/runs/{started['id']}/signals", {"key": "k", "kind": "document"}, content_type="application/json",
            headers=headers,
        )  # fmt: skip
    assert answer.status_code == 503 and answer.json()["code"] == "busy", answer.content
    assert not Signal.objects.exists()


def test_a_slow_statement_is_busy_and_nothing_else_is(db: str) -> None:
    found = {}
    for name, sql in {
        "slow": "SET statement_timeout = 50; SELECT pg_sleep(5)",
        "wrong": "SELECT 1/0",
        "gone": "SELECT pg_terminate_backend(pg_backend_pid())",
    }.items():
        with pytest.raises((OperationalError, DataError)) as caught, connection.cursor() as cursor:
            cursor.execute(sql)
        found[name] = (busy.is_busy(problem=caught.value), busy.is_gone(problem=caught.value))
        connection.close()
    assert found == {"slow": (True, False), "wrong": (False, False), "gone": (False, True)}


def by(code: type[psycopg.Error]) -> OperationalError:
    problem = OperationalError("x")
    problem.__cause__ = code("x")
    return problem


@pytest.mark.parametrize("code", [psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure])
def test_a_transaction_that_lost_is_busy_on_the_page_and_recorded_nothing(
    db: str, monkeypatch: pytest.MonkeyPatch, code: type[psycopg.Error]
) -> None:
    ask, maya = world.ask(), world.person("Maya Lindgren", "manager")
    browser = Client(raise_request_exception=False)
    browser.force_login(maya)
    form = {"choice": "approve_confirmed", "page_digest": ask.page_digest, "as_user": str(maya.pk)}

    def lose(**_: Any) -> None:
        raise by(code)

    with monkeypatch.context() as patch:
        patch.setattr(record, "append", lose)  # the last thing a vote does
        answer = browser.post(f"/approvals/{ask.pk}/", form)
    assert answer.status_code == 503 and "Nothing was recorded" in answer.content.decode()
    assert not Vote.objects.exists()
    assert browser.post(f"/approvals/{ask.pk}/", form).status_code == 302
    assert Vote.objects.count() == 1


@pytest.mark.parametrize("code", [psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure])
def test_a_transaction_that_lost_once_is_made_again_unasked(
    db: str, monkeypatch: pytest.MonkeyPatch, code: type[psycopg.Error]
) -> None:
    ask, maya = world.ask(), world.person("Maya Lindgren", "manager")
    browser = Client(raise_request_exception=False)
    browser.force_login(maya)
    headers = {"Authorization": f"Bearer {tokens.issue(name='desk', label='Desk')}", "Idempotency-Key": "k"}
    really, calls = record.append, []

    def lose_twice(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        if len(calls) <= 2:
            raise by(code)
        return really(*args, **kwargs)

    monkeypatch.setattr(record, "append", lose_twice)
    form = {"choice": "approve_confirmed", "page_digest": ask.page_digest, "as_user": str(maya.pk)}
    assert browser.post(f"/approvals/{ask.pk}/", form).status_code == 302
    assert Vote.objects.count() == 1 and len(calls) > 2
    calls.clear()
    started = browser.post(
        "/api/v1/runs", {"workflow": "service_credit", "input": {"ticket": "CS-1"}}, content_type="application/json",
        headers=headers,
    )  # fmt: skip
    assert started.status_code == 201, started.content
    assert Run.objects.filter(pk=started.json()["id"]).count() == 1 and len(calls) > 2


@pytest.mark.parametrize("path", ["/approvals/", "/accounts/login/", "/api/v1/runs/" + "0" * 32])
def test_a_database_that_is_gone_is_said_and_not_a_server_error(
    db: str, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    maya = world.person("Maya Lindgren", "manager")
    headers = {"Authorization": f"Bearer {tokens.issue(name='desk', label='Desk')}"}
    browser = Client(raise_request_exception=False)
    browser.force_login(maya)
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "HOST", "/nowhere")
    answer = browser.get(path, headers=headers)
    assert answer.status_code == 503 and int(answer["Retry-After"]) > 0, answer.content
    said = answer.content.decode()
    assert "cannot be reached" in said and "nothing was recorded" not in said.lower()
    assert path.startswith("/api/") == (answer.headers["Content-Type"] == "application/json")


def test_a_bug_stays_a_server_error(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("x")

    monkeypatch.setattr("django.contrib.auth.middleware.get_user", broken)
    browser = Client(raise_request_exception=False)
    answer = browser.get("/approvals/")
    assert answer.status_code == 500 and "Something broke" in answer.content.decode()
