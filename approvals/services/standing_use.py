"""Letting a standing approval decide, and holding it while something is sent under it. Building blocks: they run inside
the caller's open transaction, with the run's row locked."""

import datetime as dt
import uuid

from django.db import connection

from approvals import locks
from approvals.evaluation import Verdict
from approvals.models import Decision, PolicyVersion, StandingApproval
from runs import clock, record
from runs.models import Principal, Proposal, Run


def decide(
    *,
    run: Run,
    proposal: Proposal,
    version: PolicyVersion,
    verdict: Verdict,
    standing: StandingApproval,
    binding_digest: str,
    valid_for: dt.timedelta,
    actor: Principal,
) -> Decision:
    """The decision that people gave beforehand, on what the policy asks people about. Raises ValueError unless it asks.

    Nothing of the standing approval is used by this: sending takes it, under lock, and looks at everything again.
    """
    if verdict.effect != "ask":
        raise ValueError("only where people are asked can they have answered beforehand")
    now = clock.now()
    decision = Decision.objects.create(
        kind=Decision.Kind.STANDING,
        approved=True,
        proposal=proposal,
        standing=standing,
        policy_version=version,
        rules=verdict.rules,
        binding_digest=binding_digest,
        decided_at=now,
        valid_until=min(now + valid_for, standing.ends_at),
    )
    record.append(
        run=run,
        kind="decision.standing",
        actor=actor,
        decision=str(decision.pk),
        proposal=str(proposal.pk),
        standing=str(standing.pk),
        short=standing.short,
        by=standing.by,
        policy_version=str(version.pk),
        rules=[rule["id"] for rule in verdict.rules],
        binding_digest=binding_digest,
        valid_until=decision.valid_until.isoformat(),
    )
    return decision


def hold(*, standing_id: uuid.UUID) -> StandingApproval:
    """The standing approval with its people, each held FOR SHARE until the transaction ends: who revokes it, or takes a
    right away, waits for this sender or is seen by it."""
    found = StandingApproval.objects.select_related("asked_by", "granted_by")
    people = found.get(pk=standing_id)  # who they are does not change once it is in force
    locks.share_users(user_ids=[one.user_id for one in people.people if one.user_id], groups=[people.group])
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM approvals_standingapproval WHERE id = %s FOR SHARE", [standing_id])
    return found.get(pk=standing_id)
