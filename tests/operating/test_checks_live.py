"""What is wrong with the servers is found by connecting, on real ones, and only when that is asked for."""

import sys
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.core.checks import run_checks
from django.db import connection

from agentops import checks_live
from agentops.local.postgres import EmbeddedPostgres
from agentops.local.valkey import EmbeddedValkey


@pytest.fixture(autouse=True)
def servers_there(settings: Any, valkey: EmbeddedValkey, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["manage.py", "check"])
    settings.BROKER_URL, settings.CHANNEL_URL = valkey.broker_url(), valkey.channel_url()


def said() -> dict[str, str]:
    return {str(one.id): str(one.msg) for one in checks_live.servers_are_usable(databases=["default"])}


@pytest.fixture
def as_owner(db: str, postgres: EmbeddedPostgres) -> Iterator[None]:
    """Django's connection with the owner's rights, as somebody might configure it by mistake."""
    yield from connected_as(postgres, "owner", db)


def connected_as(postgres: EmbeddedPostgres, role: str, database: str) -> Iterator[None]:
    wanted = psycopg.conninfo.conninfo_to_dict(postgres.url(role, database))
    kept = dict(connection.settings_dict)
    connection.close()
    connection.settings_dict.update(USER=wanted["user"], PASSWORD=wanted["password"])
    yield
    connection.close()
    connection.settings_dict.update(USER=kept["USER"], PASSWORD=kept["PASSWORD"])


def test_a_good_installation_is_silent(db: str) -> None:
    assert said() == {}


def test_nothing_is_connected_to_unless_the_database_is_asked_about(settings: Any) -> None:
    settings.DATABASE_URL = settings.BROKER_URL = "nonsense"
    assert checks_live.servers_are_usable() == []
    assert checks_live.servers_are_usable(databases=["replica"]) == []


def test_django_runs_them(db: str, settings: Any) -> None:
    settings.BROKER_URL = "redis://127.0.0.1:9/0"
    assert "agentops.W008" in {one.id for one in run_checks(databases=["default"])}
    assert "agentops.W008" not in {one.id for one in run_checks()}


def test_a_database_that_does_not_answer(db: str) -> None:
    kept = dict(connection.settings_dict)
    connection.close()
    connection.settings_dict.update(HOST="127.0.0.1", PORT="9", PASSWORD="hidden-word")
    try:
        found = said()
    finally:
        connection.settings_dict.update(kept)
    assert list(found) == ["agentops.E004"] and found["agentops.E004"].startswith("DATABASE_URL")
    assert "refused" in found["agentops.E004"] and "hidden-word" not in found["agentops.E004"]


def test_a_wrong_password(db: str) -> None:
    kept = dict(connection.settings_dict)
    connection.close()
    connection.settings_dict.update(PASSWORD="hidden-word")
    try:
        found = said()
    finally:
        connection.settings_dict.update(kept)
    assert list(found) == ["agentops.E004"] and "authentication failed" in found["agentops.E004"]
    assert "hidden-word" not in found["agentops.E004"]


def test_an_owner_as_the_application(as_owner: None) -> None:
    found = said()
    assert list(found) == ["agentops.W005"] and "owns the tables" in found["agentops.W005"]


def test_a_superuser_as_the_application(db: str, postgres: EmbeddedPostgres) -> None:
    steps = connected_as(postgres, "superuser", db)
    next(steps)
    found = said()
    assert list(found) == ["agentops.W005"] and "superuser" in found["agentops.W005"]
    assert list(steps) == []


def test_pending_migrations(db: str, owner: psycopg.Connection) -> None:
    owner.execute("DELETE FROM django_migrations WHERE app = 'agentops'")
    found = said()
    assert list(found) == ["agentops.E006"]
    assert "agentops.0001_framework_grants" in found["agentops.E006"] and "migrate" in found["agentops.E006"]


def test_an_empty_database(db: str, postgres: EmbeddedPostgres) -> None:
    postgres.create_database("empty_one")
    kept = connection.settings_dict["NAME"]
    connection.close()
    connection.settings_dict["NAME"] = "empty_one"
    try:
        found = said()
    finally:
        connection.close()
        connection.settings_dict["NAME"] = kept
        postgres.drop_database("empty_one")
    assert list(found) == ["agentops.E006"]


def test_an_inconsistent_history(db: str, owner: psycopg.Connection) -> None:
    owner.execute("DELETE FROM django_migrations WHERE app = 'runs'")
    assert list(said()) == ["agentops.E006"]


@pytest.mark.parametrize(("name", "number"), [("BROKER_URL", "agentops.W008"), ("CHANNEL_URL", "agentops.W010")])
def test_a_queue_that_does_not_answer_is_a_warning(db: str, settings: Any, name: str, number: str) -> None:
    setattr(settings, name, "redis://:hidden-word@127.0.0.1:9/0")
    found = said()
    assert list(found) == [number] and found[number].startswith(name) and "hidden-word" not in found[number]


def test_amqp_that_does_not_answer_is_a_warning(db: str, settings: Any) -> None:
    settings.BROKER_URL = "amqp://me:hidden-word@127.0.0.1:9//"
    assert "hidden-word" not in said()["agentops.W008"]


def test_migrating_is_let_through(db: str, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    owner.execute("DELETE FROM django_migrations WHERE app = 'agentops'")
    monkeypatch.setattr(sys, "argv", ["manage.py", "migrate"])
    assert said() == {}
