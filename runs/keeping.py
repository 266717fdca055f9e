"""Storing what was read and proposed, inside the caller's transaction with the run's row locked."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

from django.db.models import Max

from runs import record
from runs.actions import Action
from runs.canonical import digest
from runs.identity import operation_identity
from runs.ids import new_id
from runs.models import Evidence, ModelCall, Principal, Proposal, Run
from runs.tools.base import Contract, Reading


def keep_readings(
    *, run: Run, readings: Sequence[Reading], retrieved_at: dt.datetime, actor: Principal
) -> dict[str, Evidence]:
    """Store one reading of the facts (all pieces share its number) and return it by kind.

    `retrieved_at` is the database's time from *before* the first read, so that nothing looks fresher than it is.
    """
    number = (run.evidence.aggregate(last=Max("reading"))["last"] or 0) + 1
    kept = Evidence.objects.bulk_create(
        Evidence(
            run=run,
            reading=number,
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
    )
    record.append(
        run=run,
        kind="evidence.read",
        actor=actor,
        reading=number,
        pieces=[{"kind": one.kind, "title": one.title, "version": one.version} for one in kept],
    )
    return {one.kind: one for one in kept}


def newest_facts(*, run: Run) -> dict[str, Evidence]:
    """The latest reading, by kind; empty before the first."""
    last = run.evidence.aggregate(last=Max("reading"))["last"]
    return {one.kind: one for one in run.evidence.filter(reading=last)} if last else {}


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
    last = run.proposals.order_by("-number").first()
    predecessor = run.proposals.filter(step=step).order_by("-number").first()
    money = contract.money(action.effect)
    proposal_id = new_id()
    proposal = Proposal.objects.create(
        id=proposal_id,
        run=run,
        number=last.number + 1 if last else 1,
        step=step,
        predecessor=predecessor,
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
        reading=max((one.reading for one in rests_on), default=0),
        rests_on=[str(one.pk) for one in rests_on],
        workings=workings,
        rationale=rationale,
    )
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
