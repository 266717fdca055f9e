"""Runs that wait for an approval, in numbers: copies of one that really does, written past the engine as the owner."""

import psycopg

TABLES = ("runs_run", "runs_proposal", "approvals_approvalrequest")
ANSWERED_WITH = ("runs_evidence", "approvals_stage")
# an id that both the copied piece of evidence and the proposal that rests on it can work out
_PIECE = "md5(m.run::text || {old})::uuid"


def park(*, url: str, like: object, count: int, answerable: bool = False) -> None:
    """Copy the waiting run `like` that often, with its proposal and its open request. `url` is the owner's.

    `answerable` copies its facts and its stages too and gives each copy a record of its own, so that people can answer.
    """
    with psycopg.connect(url, autocommit=True) as session:
        tables = (*TABLES, *ANSWERED_WITH) if answerable else TABLES
        for table in tables:  # a row begins in its first state; these are in the middle of their lives
            session.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        try:
            session.execute(
                "CREATE TEMP TABLE made AS SELECT gen_random_uuid() AS run, gen_random_uuid() AS proposal,"
                " gen_random_uuid() AS request, n FROM generate_series(1, %s) n",
                [count],
            )
            for table in tables:
                _copy(session, table, _new(table, answerable), like)
            session.execute("DROP TABLE made")
        finally:
            for table in tables:
                session.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
        session.execute("ANALYZE")


def _new(table: str, answerable: bool) -> dict[str, str]:
    """What differs in a copy of a row `o`, by column, in SQL."""
    if table == "runs_run":
        own = {"event_seq": "0", "event_hash": "''"} if answerable else {}
        return {"id": "m.run", "start_key": "m.run::text", "subject": "m.run::text", **own}
    if table == "runs_proposal":
        pieces = f"SELECT jsonb_agg({_PIECE.format(old='one')}) FROM jsonb_array_elements_text(o.rests_on) one"
        own = {"rests_on": f"({pieces})"} if answerable else {}
        name = {"identity": "m.proposal::text", "business_key": "m.proposal::text"}
        return {"id": "m.proposal", "run_id": "m.run", **name, **own}
    if table == "approvals_approvalrequest":
        return {"id": "m.request", "run_id": "m.run", "proposal_id": "m.proposal"}
    if table == "runs_evidence":
        return {"id": _PIECE.format(old="o.id::text"), "run_id": "m.run"}
    return {"id": "gen_random_uuid()", "request_id": "m.request"}


def _copy(session: psycopg.Connection, table: str, new: dict[str, str], like: object) -> None:
    found = session.execute(
        "SELECT column_name FROM information_schema.columns WHERE table_name = %s ORDER BY ordinal_position", [table]
    ).fetchall()
    columns = [row[0] for row in found]
    values = [new.get(name, f'o."{name}"') for name in columns]
    named = ", ".join(f'"{name}"' for name in columns)
    of = {
        "runs_run": "o.id = %s",
        "approvals_stage": "o.request_id IN (SELECT id FROM approvals_approvalrequest WHERE run_id = %s)",
    }
    where = of.get(table, "o.run_id = %s")
    session.execute(
        f"INSERT INTO {table} ({named}) SELECT {', '.join(values)} FROM made m, {table} o WHERE {where}", [like]
    )
