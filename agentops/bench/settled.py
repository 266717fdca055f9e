"""Runs that did something, in numbers: copies of one that really did, written past the engine as the owner."""

import datetime as dt

import psycopg


def copy_settled(
    *, session: psycopg.Connection, like: object, rows: list[tuple[str, str, dt.datetime]], minor: int, currency: str
) -> None:
    """Copy the ended run `like` with its one operation for each of `rows`: the operation's identity, their name for it
    and when it happened. The copies are of `minor` in `currency`."""
    tables = (
        "runs_run", "runs_proposal", "approvals_approvalrequest", "approvals_decision", "reconciliation_operation",
        "reconciliation_theirname",
    )  # fmt: skip
    for table in tables:
        session.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    try:
        session.execute(
            "CREATE TEMP TABLE made (identity text, name text, at timestamptz, run uuid DEFAULT gen_random_uuid(),"
            " proposal uuid DEFAULT gen_random_uuid(), request uuid DEFAULT gen_random_uuid(),"
            " decision uuid DEFAULT gen_random_uuid(), operation uuid DEFAULT gen_random_uuid())"
        )
        with session.cursor() as cursor, cursor.copy("COPY made (identity, name, at) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        run = {"id": "m.run", "start_key": "m.run::text", "subject": "m.run::text"}
        _copy(session, "runs_run", run, like)
        keys = {"run_id": "m.run", "identity": "m.identity", "business_key": "m.identity"}
        _copy(session, "runs_proposal", {"id": "m.proposal", **keys}, like)
        request = {"id": "m.request", "run_id": "m.run", "proposal_id": "m.proposal"}
        _copy(session, "approvals_approvalrequest", request, like)
        decision = {"id": "m.decision", "proposal_id": "m.proposal", "request_id": "m.request"}
        its = "proposal_id IN (SELECT id FROM runs_proposal WHERE run_id = %s)"
        _copy(session, "approvals_decision", decision, like, its)
        operation = {
            "id": "m.operation", "proposal_id": "m.proposal", "decision_id": "m.decision", "created_at": "m.at",
            "external_reference": "m.name", "settled_at": "m.at", "amount_minor": str(minor),
            "currency": f"'{currency}'", **keys,
        }  # fmt: skip
        _copy(session, "reconciliation_operation", operation, like)
        session.execute(
            f"INSERT INTO {tables[-1]} (system, name, operation_id)"
            " SELECT o.system, m.name, m.operation FROM made m JOIN reconciliation_operation o ON o.id = m.operation"
        )
        session.execute("DROP TABLE made")
    finally:
        for table in tables:
            session.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
    session.execute("ANALYZE")


def _copy(session: psycopg.Connection, table: str, new: dict[str, str], like: object, its: str = "") -> None:
    found = session.execute(
        "SELECT column_name FROM information_schema.columns WHERE table_name = %s ORDER BY ordinal_position", [table]
    ).fetchall()
    columns = [row[0] for row in found]
    values = [new.get(name, f'o."{name}"') for name in columns]
    named = ", ".join(f'"{name}"' for name in columns)
    its = its or ("id = %s" if table == "runs_run" else "run_id = %s")
    session.execute(
        f"INSERT INTO {table} ({named}) SELECT {', '.join(values)} FROM made m, {table} o WHERE o.{its}", [like]
    )
