"""What is wrong with the servers behind the settings: `manage.py check --database default`, and at the stack's start.

A broker that is down is a warning: runs wait in the database, and nothing may refuse to start because of it.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import DatabaseError, connection
from django.db.migrations.exceptions import InconsistentMigrationHistory
from django.db.migrations.executor import MigrationExecutor

from agentops import servers
from agentops.checks import only_code

SECONDS = 5

_ROLE = """
SELECT r.rolsuper, pg_has_role(current_user, c.relowner, 'MEMBER')
  FROM pg_roles r, pg_class c WHERE r.rolname = current_user AND c.oid = to_regclass('runs_run')
"""


def pending_migrations() -> list[str]:
    """The migrations the database lacks, as app.name. Raises DatabaseError, InconsistentMigrationHistory."""
    executor = MigrationExecutor(connection)
    executor.loader.check_consistent_history(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{one.app_label}.{one.name}" for one, _ in plan]


def _database() -> Iterator[CheckMessage]:
    if not settings.DATABASE_URL:
        return  # said without a connection already
    try:
        connection.ensure_connection()
        version: int = connection.pg_version  # type: ignore[attr-defined]  # PostgreSQL's connection has it
    except DatabaseError as problem:
        words = str(problem).strip().replace(settings.DATABASE_URL, "(the address)")
        hint = "check that the server runs and that address, name and password are right"
        yield Error(f"DATABASE_URL: the database cannot be used: {words}; {hint}", id="agentops.E004")
        return
    if version < servers.OLDEST_POSTGRES:
        yield Error(f"DATABASE_URL: PostgreSQL 15 or later is needed, this is {version // 10000}", id="agentops.E004")
        return
    yield from _migrations()
    yield from _role()


def _migrations() -> Iterator[CheckMessage]:
    try:
        missing = pending_migrations()
    except (DatabaseError, InconsistentMigrationHistory) as problem:
        yield Error(f"the state of the migrations cannot be told: {problem}", id="agentops.E006")
        return
    if missing:
        hint = "run manage.py migrate with DATABASE_URL set to the owner role's address"
        names = ", ".join(missing[:3]) + (" ..." if len(missing) > 3 else "")
        yield Error(f"the database lacks {len(missing)} migration(s) ({names}): {hint}", id="agentops.E006")


def _role() -> Iterator[CheckMessage]:
    with connection.cursor() as cursor:
        cursor.execute(_ROLE)
        row = cursor.fetchone()
    if row is None or not any(row):
        return
    what = "is a superuser" if row[0] else "owns the tables"
    hint = f"connect as a role of its own ({settings.APP_DB_ROLE}) and give the owner's address to migrations only"
    yield Warning(
        f"DATABASE_URL: its role {what}, so the database does not hold it to what it may change: {hint}",
        id="agentops.W005",
    )


def _queues() -> Iterator[CheckMessage]:
    for name, attempt, number in (
        ("BROKER_URL", servers.try_broker, "agentops.W008"),
        ("CHANNEL_URL", servers.try_channel, "agentops.W010"),
    ):
        try:
            attempt(url=getattr(settings, name), seconds=SECONDS)
        except servers.BadScheme:
            continue  # said without a connection already
        except servers.Unusable as problem:
            lost = "runs wait in the database" if name == "BROKER_URL" else "pages refresh by asking"
            hint = f"check the address and that the server runs; until then {lost}"
            yield Warning(f"{name}: the server cannot be used: {problem}; {hint}", id=number)


@register(Tags.database)
def servers_are_usable(*, databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """All of the above, when the default database is asked about. Migrating itself is let through: it is the cure."""
    if not databases or "default" not in databases or only_code():
        return []
    return [*_database(), *_queues()]
