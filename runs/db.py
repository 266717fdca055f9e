"""SQL that migrations share: what the application's role may do, and which edges a state may take."""

from django.conf import settings
from django.db import migrations


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


def grant(*tables: str, rights: str) -> migrations.RunSQL:
    """Give the application's role exactly `rights` on new tables (an UPDATE right on one column allows row locks)."""
    statements = "".join(
        f"EXECUTE 'REVOKE ALL ON {table} FROM {_role()}'; EXECUTE 'GRANT {rights} ON {table} TO {_role()}';"
        for table in tables
    )
    sequences = f"EXECUTE 'GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {_role()}';"
    return migrations.RunSQL(_if_role(statements + sequences), migrations.RunSQL.noop)


def grant_also(table: str, *, columns: str) -> migrations.RunSQL:
    """Let the application's role change these new columns too, beside what it may already do."""
    sql = f"EXECUTE 'GRANT UPDATE ({columns}) ON {table} TO {_role()}';"
    return migrations.RunSQL(_if_role(sql), migrations.RunSQL.noop)


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


def edges(*, machine: str, table: str, initial: str, pairs: list[tuple[str, str]]) -> migrations.RunSQL:
    """Write a machine's edges and guard its table: a row begins in `initial` and takes declared edges only.

    Plain SQL, so no session setting switches it off. A test compares `pairs` with the model's declarations.
    """
    values = ", ".join(f"('{machine}', '{source}', '{target}')" for source, target in pairs)
    return migrations.RunSQL(
        [
            "CREATE OR REPLACE FUNCTION agentops_guard_edge() RETURNS trigger LANGUAGE plpgsql AS $fn$"
            " BEGIN"
            "  IF TG_OP = 'INSERT' THEN"
            "    IF NEW.state <> TG_ARGV[1] THEN RAISE EXCEPTION '% cannot begin as %', TG_ARGV[0], NEW.state"
            "      USING ERRCODE = 'restrict_violation'; END IF;"
            "  ELSIF NEW.state <> OLD.state AND NOT EXISTS (SELECT FROM runs_stateedge e WHERE e.machine = TG_ARGV[0]"
            "      AND e.source = OLD.state AND e.target = NEW.state) THEN"
            "    RAISE EXCEPTION '% cannot go from % to %', TG_ARGV[0], OLD.state, NEW.state"
            "      USING ERRCODE = 'restrict_violation';"
            "  END IF; RETURN NEW; END $fn$",
            f"DELETE FROM runs_stateedge WHERE machine = '{machine}'",
            f"INSERT INTO runs_stateedge (machine, source, target) VALUES {values}",
            f"DROP TRIGGER IF EXISTS {machine}_edges ON {table}",
            f"CREATE TRIGGER {machine}_edges BEFORE INSERT OR UPDATE ON {table} FOR EACH ROW"
            f" EXECUTE FUNCTION agentops_guard_edge('{machine}', '{initial}')",
        ],
        migrations.RunSQL.noop,
    )


def edges_also(*, machine: str, pairs: list[tuple[str, str]]) -> migrations.RunSQL:
    """Further edges of a machine that `edges` has written."""
    values = ", ".join(f"('{machine}', '{source}', '{target}')" for source, target in pairs)
    return migrations.RunSQL(
        f"INSERT INTO runs_stateedge (machine, source, target) VALUES {values}", migrations.RunSQL.noop
    )


def closed_once(*, table: str, column: str) -> migrations.RunSQL:
    """A row whose `column` is set never changes again (an attempt is only closed, once)."""
    return migrations.RunSQL(
        [
            f"CREATE OR REPLACE FUNCTION {table}_closed_once() RETURNS trigger LANGUAGE plpgsql AS $fn$ BEGIN"
            f" IF OLD.{column} IS NOT NULL THEN RAISE EXCEPTION '{table} row is closed'"
            f" USING ERRCODE = 'restrict_violation'; END IF; RETURN NEW; END $fn$",
            f"CREATE TRIGGER {table}_closed_once BEFORE UPDATE ON {table} FOR EACH ROW"
            f" EXECUTE FUNCTION {table}_closed_once()",
        ],
        migrations.RunSQL.noop,
    )
