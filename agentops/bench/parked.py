"""Runs that wait for an approval, in numbers: copies of one that really does, written past the engine as the owner."""

import psycopg


def park(*, url: str, like: object, count: int) -> None:
    """Copy the waiting run `like` that often, with its proposal and its open request. `url` is the owner's."""
    with psycopg.connect(url, autocommit=True) as session:
        tables = ("runs_run", "runs_proposal", "approvals_approvalrequest")
        for table in tables:  # a row begins in its first state; these are in the middle of their lives
            session.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        try:
            session.execute(
                "CREATE TEMP TABLE made AS SELECT gen_random_uuid() AS run, gen_random_uuid() AS proposal,"
                " gen_random_uuid() AS request, n FROM generate_series(1, %s) n",
                [count],
            )
            _copy(session, "runs_run", {"id": "m.run", "start_key": "m.run::text", "subject": "m.run::text"}, like)
            _copy(
                session,
                "runs_proposal",
                {
                    "id": "m.proposal",
                    "run_id": "m.run",
                    "identity": "m.proposal::text",
                    "business_key": "m.proposal::text",
                },
                like,
            )
            _copy(
                session,
                "approvals_approvalrequest",
                {"id": "m.request", "run_id": "m.run", "proposal_id": "m.proposal"},
                like,
            )
            session.execute("DROP TABLE made")
        finally:
            for table in tables:
                session.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
        session.execute("ANALYZE")


def _copy(session: psycopg.Connection, table: str, new: dict[str, str], like: object) -> None:
    found = session.execute(
        "SELECT column_name FROM information_schema.columns WHERE table_name = %s ORDER BY ordinal_position", [table]
    ).fetchall()
    columns = [row[0] for row in found]
    values = [new.get(name, f'o."{name}"') for name in columns]
    named = ", ".join(f'"{name}"' for name in columns)
    of = "id" if table == "runs_run" else "run_id"
    session.execute(
        f"INSERT INTO {table} ({named}) SELECT {', '.join(values)} FROM made m, {table} o WHERE o.{of} = %s", [like]
    )
