"""What the migrations made is what the models declare, and every file of SQL is run by one of them."""

import re
from pathlib import Path

import pytest
from django.apps import apps
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ModelState

REPO = Path(__file__).resolve().parents[2]
APPS = ("runs", "approvals", "reconciliation")


def declared() -> set[tuple[str, str, str]]:
    """Every reference between tables that the database is to hold: the table, its column, and the other table."""
    return {
        (model._meta.db_table, field.column, field.related_model._meta.db_table)
        for app in APPS
        for model in apps.get_app_config(app).get_models()
        for field in model._meta.local_fields
        if field.remote_field and field.db_constraint
    }


def test_the_database_holds_every_reference_that_is_declared(db: str) -> None:
    """Tables that refer to each other are made together, in any order."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conrelid::regclass::text, attname, confrelid::regclass::text FROM pg_constraint"
            " JOIN pg_attribute ON attrelid = conrelid AND attnum = conkey[1]"
            " WHERE contype = 'f' AND conrelid::regclass::text ~ '^(runs|approvals|reconciliation)_'"
        )
        held = set(cursor.fetchall())
    assert held == declared()
    assert {
        ("approvals_policy", "active_id", "approvals_policyversion"),
        ("approvals_policyversion", "policy_id", "approvals_policy"),
    } <= held


@pytest.mark.parametrize("app", APPS)
def test_making_tables_builds_no_model_for_each_of_them(app: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = MigrationLoader(None)
    state = loader.project_state((app, "0001_initial"), at_end=False)
    assert state.apps.get_models()  # built, as they are while a database is migrated
    monkeypatch.setattr(ModelState, "render", lambda model, apps: pytest.fail(f"{model.name} is built"))
    loader.graph.nodes[app, "0001_initial"].mutate_state(state, preserve=False)
    monkeypatch.undo()
    assert len(list(state.apps.get_app_config(app).get_models())) > 10


def test_every_file_of_sql_is_run_by_a_migration() -> None:
    for app in APPS:
        folder = REPO / app / "migrations"
        run = re.findall(r'script\(__file__, "([\w.]+)"\)', "".join(path.read_text() for path in folder.glob("0*.py")))
        assert sorted(run) == sorted(path.name for path in folder.glob("sql/*")) != []


def test_no_new_migration_has_a_number_that_an_earlier_chain_used() -> None:
    """A database that was migrated by it knows those names, and would take the new one for done."""
    numbers = {int(path.name[:4]) for app in APPS for path in (REPO / app / "migrations").glob("0*.py")}
    assert {1, 2} <= numbers and not numbers & set(range(3, 19))
