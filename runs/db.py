"""What migrations share: tables made at once, what the application's role may do, and which edges a state may take."""

from pathlib import Path

from django.conf import settings
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState


def _role() -> str:
    role: str = settings.APP_DB_ROLE
    if not role.replace("_", "").isalnum():
        raise ValueError("APP_DB_ROLE must be a plain name of letters, digits and underscores")
    return f'"{role}"'


def _if_role(sql: str) -> str:
    """Run only where the application has its own role (an external database may use one role for both)."""
    name = settings.APP_DB_ROLE
    return f"""
    DO $do$ BEGIN
      IF EXISTS (SELECT FROM pg_roles WHERE rolname = '{name}') AND current_user <> '{name}' THEN {sql} END IF;
    END $do$"""


class CreateTables(Operation):
    """Creates the tables of an app together, so that they may refer to each other in any order.

    For each `CreateModel` by itself Django builds anew whatever model is related to that in any way, which nearly all
    are: that took longer than the rest of a new database's migrations.
    """

    reversible = False

    def __init__(self, tables: list[migrations.CreateModel]) -> None:
        self.tables = tables

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        vars(state).pop("apps", None)  # the models as built; Django builds them from the state once they are asked for
        for table in self.tables:
            table.state_forwards(app_label, state)

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        for table in self.tables:
            table.database_forwards(app_label, schema_editor, from_state, to_state)

    def describe(self) -> str:
        return f"Create {len(self.tables)} tables"

    def __repr__(self) -> str:
        return f"<{self.describe()}>"


def grant(*tables: str, rights: str) -> migrations.RunSQL:
    """Give the application's role exactly `rights` on these tables (an UPDATE right on one column allows row locks)."""
    statements = "".join(
        f"EXECUTE 'REVOKE ALL ON {table} FROM {_role()}'; EXECUTE 'GRANT {rights} ON {table} TO {_role()}';"
        for table in tables
    )
    sequences = f"EXECUTE 'GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {_role()}';"
    return migrations.RunSQL(_if_role(statements + sequences), migrations.RunSQL.noop)


def grant_framework() -> migrations.RunSQL:
    """Everything but TRUNCATE on the tables of Django and allauth; reading only on the list of migrations."""
    sql = f"""
      DECLARE name text; BEGIN
        EXECUTE 'GRANT USAGE ON SCHEMA public TO {_role()}';
        FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public'
            AND tablename !~ '^(runs|approvals|reconciliation)_' LOOP
          EXECUTE format('GRANT SELECT ON %I TO {_role()}', name);
          IF name <> 'django_migrations' THEN
            EXECUTE format('GRANT INSERT, UPDATE, DELETE ON %I TO {_role()}', name);
          END IF;
        END LOOP;
        EXECUTE 'GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {_role()}';
      END;"""
    return migrations.RunSQL(_if_role(sql), migrations.RunSQL.noop)


def script(migration: str, name: str) -> migrations.RunSQL:
    """Run the file `name` of the folder `sql` beside the file of the migration."""
    sql = (Path(migration).parent / "sql" / name).read_text(encoding="utf-8")
    return migrations.RunSQL(sql, migrations.RunSQL.noop)


def edges(*, machine: str, table: str, initial: str, pairs: list[tuple[str, str]]) -> migrations.RunSQL:
    """Write a machine's edges and guard its table: a row begins in `initial` and takes declared edges only.

    Plain SQL, so no session setting switches it off. A test compares `pairs` with the model's declarations.
    """
    values = ", ".join(f"('{machine}', '{source}', '{target}')" for source, target in pairs)
    return migrations.RunSQL(
        [
            f"INSERT INTO runs_stateedge (machine, source, target) VALUES {values}",
            f"CREATE TRIGGER {machine}_edges BEFORE INSERT OR UPDATE ON {table} FOR EACH ROW"
            f" EXECUTE FUNCTION agentops_guard_edge('{machine}', '{initial}')",
        ],
        migrations.RunSQL.noop,
    )


def closed_once(*, table: str, column: str) -> migrations.RunSQL:
    """A row whose `column` is set never changes again (an attempt is only closed, once)."""
    return migrations.RunSQL(
        [
            f"CREATE FUNCTION {table}_closed_once() RETURNS trigger LANGUAGE plpgsql AS $fn$ BEGIN"
            f" IF OLD.{column} IS NOT NULL THEN RAISE EXCEPTION '{table} row is closed'"
            f" USING ERRCODE = 'restrict_violation'; END IF; RETURN NEW; END $fn$",
            f"CREATE TRIGGER {table}_closed_once BEFORE UPDATE ON {table} FOR EACH ROW"
            f" EXECUTE FUNCTION {table}_closed_once()",
        ],
        migrations.RunSQL.noop,
    )
