"""Storing what was read and proposed, inside the caller's transaction with the run's row locked."""

import datetime as dt
import uuid
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from django.db import connection

from runs import hot, record
from runs.actions import Action
from runs.canonical import digest
from runs.identity import operation_identity
from runs.ids import new_id
from runs.models import Evidence, ModelCall, Principal, Proposal, Run
from runs.tools.base import Contract, Reading


def as_evidence(*, run: Run, readings: Sequence[Reading], retrieved_at: dt.datetime) -> dict[str, Evidence]:
    """What was read, by kind, ready to be stored by `keep_evidence`; the ids are given here already.

    `retrieved_at` is the database's time from *before* the first read, so that nothing looks fresher than it is.
    """
    return {
        one.kind: Evidence(
            run=run,
            kind=one.kind,
            source=one.source,
            locator=one.locator,
            version=one.version,
            title=one.title,
            summary=one.summary,
            authoritative=one.authoritative,
            untrusted=one.untrusted,
            content=one.content,
            content_digest=digest(one.content),
            bound_digest=digest(one.content if one.bound is None else one.bound),
            retrieved_at=retrieved_at,
        )
        for one in readings
    }


def keep_evidence(*, run: Run, evidence: Collection[Evidence], actor: Principal, saving: Iterable[str] = ()) -> None:
    """Store one reading of the facts (all pieces share its number), and the fields of the run named in `saving`.

    It ends a row of failed readings, and answers those who wanted the facts read before it began.
    """
    run.tries_in_row = 0
    asked_at = min((one.retrieved_at for one in evidence), default=None)
    if asked_at is not None and run.facts_wanted_at is not None and run.facts_wanted_at <= asked_at:
        run.facts_wanted_at = None
    number = last_reading(run=run) + 1
    for one in evidence:
        one.reading = number
    if evidence:
        hot.insert(*evidence)
    record.append(
        run=run,
        kind="evidence.read",
        actor=actor,
        saving=["tries_in_row", "facts_wanted_at", *saving],
        reading=number,
        pieces=[{"kind": one.kind, "title": one.title, "version": one.version} for one in evidence],
    )


def newest_facts(*, run: Run) -> dict[str, Evidence]:
    """The latest reading, by kind; empty before the first."""
    return {one.kind: one for one in newest_reading(run_id=run.pk)}


def newest_reading(*, run_id: uuid.UUID) -> list[Evidence]:
    """All pieces of the latest reading; none before the first."""
    return _rows(f"SELECT {_PIECE} WHERE run_id = %s AND reading = ({_LAST})", [run_id, run_id])


def pieces(*, run_id: uuid.UUID, ids: Iterable[str]) -> list[Evidence]:
    """Those pieces of the run's evidence."""
    return _rows(f"SELECT {_PIECE} WHERE run_id = %s AND id = ANY(%s::uuid[])", [run_id, list(ids)])


_PIECE = f"{hot.columns(model=Evidence)} FROM runs_evidence"
_LAST = "SELECT max(reading) FROM runs_evidence WHERE run_id = %s"


def _rows(sql: str, given: list[Any]) -> list[Evidence]:
    with connection.cursor() as cursor:
        cursor.execute(sql, given)
        return [hot.from_row(model=Evidence, row=row) for row in cursor.fetchall()]


def last_reading(*, run: Run) -> int:
    """The number of the latest reading; 0 before the first."""
    with connection.cursor() as cursor:
        cursor.execute(_LAST, [run.pk])
        row = cursor.fetchone()
    return 0 if row is None or row[0] is None else int(row[0])


_BEFORE = "SELECT number, step, id FROM runs_proposal WHERE run_id = %s ORDER BY number"


def _before(run: Run) -> list[tuple[int, str, uuid.UUID]]:
    with connection.cursor() as cursor:
        cursor.execute(_BEFORE, [run.pk])
        return list(cursor.fetchall())


def keep_proposal(
    *,
    run: Run,
    installation: str,
    step: str,
    action: Action,
    contract: Contract,
    rests_on: Sequence[Evidence],
    workings: dict[str, Any],
    rationale: str,
    proposer: Principal,
    model_call: ModelCall | None = None,
) -> Proposal:
    """Store a proposal with its operation's identity, before anything can act on it."""
    reading = max((one.reading for one in rests_on), default=0)
    # after the first reading something was proposed before only if that was refused, or a person proposes instead
    is_first = reading == 1 and not run.refusals and proposer.kind != Principal.Kind.PERSON
    before = [] if is_first else _before(run)
    predecessor = next((pk for _, its_step, pk in reversed(before) if its_step == step), None)
    money = contract.money(action.effect)
    proposal_id = new_id()
    proposal = Proposal(
        id=proposal_id,
        run=run,
        number=before[-1][0] + 1 if before else 1,
        step=step,
        predecessor_id=predecessor,
        proposer=proposer,
        model_call=model_call,
        tool=action.tool,
        contract_version=action.contract_version,
        effect=action.effect,
        action_digest=action.digest(),
        identity=operation_identity(installation=installation, tool=action.tool, number=proposal_id),
        business_key=contract.business_key(action.effect),
        amount_minor=money.minor if money else None,
        currency=money.currency if money else "",
        reading=reading,
        rests_on=[str(one.pk) for one in rests_on],
        workings=workings,
        rationale=rationale,
    )
    hot.insert(proposal)
    record.append(
        run=run,
        kind="proposal.made",
        actor=proposer,
        proposal=str(proposal.pk),
        number=proposal.number,
        step=step,
        tool=proposal.tool,
        amount_minor=proposal.amount_minor,
        currency=proposal.currency,
        identity=proposal.identity,
    )
    return proposal
