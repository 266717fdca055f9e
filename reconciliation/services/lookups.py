"""Recording what a lookup found: an observation first, which then settles the operation where it is clear, or a case
does. Needs no lease.
"""

import datetime as dt
import uuid

from django.db import transaction

from reconciliation import late, moves
from reconciliation.attempts import may_have_acted, seen_recorded, sent_attempts, shown, standing_references
from reconciliation.case_opening import open_case, resolve_by_probe
from reconciliation.classification import Sent, absence_is_conclusive, conclusive_from
from reconciliation.findings import as_found, finding_of
from reconciliation.models import Observation, Operation
from reconciliation.models.case import UNRESOLVED, Case
from reconciliation.models.operation import IN_FLIGHT, OperationState
from reconciliation.settling import disagree, succeed
from runs import clock, faultpoints, record, retry, transitions, words
from runs.models import Principal, Run
from runs.tools.base import Contract, Lookup, Record

S = OperationState
F = Observation.Finding


def record_lookup(
    *,
    operation_id: uuid.UUID,
    lookup: Lookup | None,
    problem: str,
    asked_at: dt.datetime,
    contract: Contract,
    actor: Principal,
) -> Observation:
    """Store what a lookup found (`lookup` None and `problem` in words: it could not be asked) and settle if it can be.

    Found once as sent: succeeded, unless another call of ours may make one more. Found otherwise, or twice: a case.
    Absent: proof only when the absence rule says so (the caller then sends again or fails it). Unreachable is not
    absent. Past the contract's probes a case is opened. What is shown against a settled operation is a case too.
    """
    with transaction.atomic(durable=True):
        run, operation = moves.lock(operation_id=operation_id)
        attempts = sent_attempts(operation=operation)
        finding, summary, conclusive = finding_of(
            lookup=lookup,
            problem=problem,
            asked_at=asked_at,
            contract=contract,
            attempts=attempts,
            seen=seen_recorded(operation=operation),
        )
        observation = Observation.objects.create(
            operation=operation,
            source=Observation.Source.PROBE,
            finding=finding,
            conclusive=conclusive,
            summary=summary,
            raw=as_found(lookup) if lookup else {},
            actor=actor,
            asked_at=asked_at,
        )
        record.append(
            run=run, kind="probe.made", actor=actor, operation=str(operation.pk), finding=str(finding), summary=summary,
            conclusive=conclusive,
        )  # fmt: skip
        if operation.state in IN_FLIGHT:
            _after_probe(run, operation, observation, lookup, contract, attempts, actor)
        else:
            for one in lookup.records if lookup else ():
                late.judge(run=run, operation=operation, found=one, what="a lookup", actor=actor, asked_at=asked_at)
        late.looked(run=run, operation=operation, by=observation, contract=contract, actor=actor)
        transitions.wake(run=run, mark=False)
        faultpoints.reach("probe.recorded.before")
        return observation


def _after_probe(
    run: Run,
    operation: Operation,
    observation: Observation,
    lookup: Lookup | None,
    contract: Contract,
    attempts: list[Sent],
    actor: Principal,
) -> None:
    """Settle by the finding or schedule the next question."""
    operation.probes_made += 1
    over = conclusive_from(contract=contract, attempts=attempts)
    pending = lookup is not None and any(one.pending for one in lookup.records)
    if lookup is not None and operation.state == S.ACCEPTED and _not_carried_out(run, operation, lookup, actor):
        operation.save(update_fields=["probes_made"])
        return
    if pending:
        pass
    elif lookup is not None and observation.finding == F.FOUND:
        if _found(run, operation, observation, lookup.records[0], over, actor):
            operation.save(update_fields=["probes_made"])
            return
    elif lookup is not None and observation.finding == F.DIFFERENT:
        disagree(run=run, operation=operation, found=lookup.records[0], actor=actor)
    elif lookup is not None and observation.finding == F.SEVERAL:
        doubt, why = ":".join(("several", *sorted(one.reference for one in lookup.records))), observation.summary
        open_case(run=run, operation=operation, kind=Case.Kind.DUPLICATE, doubts=[doubt], why=why, actor=actor)
    waited = pending and _still_to_come(operation, contract)
    if operation.probes_made >= contract.max_probes and not waited and not operation.cases.filter(UNRESOLVED).exists():
        why = f"asked {operation.probes_made} times; last answer: {observation.summary}"
        kind = Case.Kind.NOT_CONFIRMED
        open_case(run=run, operation=operation, kind=kind, doubts=["asked_often"], why=why, actor=actor)
    now = clock.now()
    due = now + retry.backoff(attempt=operation.probes_made, base=1, cap=900)
    if waited:
        pass
    elif observation.finding == F.FOUND or (observation.finding == F.ABSENT and not observation.conclusive):
        proof = over + late.MOMENT
        due = proof if proof > now else due  # the next question is worth asking once its answer can be proof
    wanted = operation.next_probe_at  # set while this question was under way: somebody wants a fresh answer
    operation.next_probe_at = min(due, wanted) if wanted is not None and wanted > observation.asked_at else due
    operation.save(update_fields=["probes_made", "next_probe_at"])


def _still_to_come(operation: Operation, contract: Contract) -> bool:
    """Is what they took on within the time in which the contract says its outcome is known?"""
    since = operation.unknown_since
    return contract.final_within is not None and since is not None and clock.now() < since + contract.final_within


def _not_carried_out(run: Run, operation: Operation, lookup: Lookup, actor: Principal) -> bool:
    """They took it on and then did not do it, which the one record that they ever showed says: by their own word."""
    every = shown(observations=operation.observations.order_by("at"))
    if len(lookup.records) != 1 or not all(one.void for one in every):
        return False
    why = f"{words.system(operation.system)} took it on as {lookup.records[0].reference}, and did not carry it out"
    moves.move(
        run=run, operation=operation, to=S.FAILED, actor=actor, why=why, failure=why, failure_code="not_carried_out",
        settled_by="probe",
    )  # fmt: skip
    resolve_by_probe(run=run, operation=operation, evidence=why, actor=actor)
    return True


def _found(
    run: Run, operation: Operation, observation: Observation, found: Record, over: dt.datetime, actor: Principal
) -> bool:
    """Settle by the one record that is shown, unless that may not be all there is: another one was shown before, or of
    several calls, each of which may make one, not all were over (`over`) and shown when the question was put."""
    standing = standing_references(observations=operation.observations.order_by("at"))
    if others := [one for one in standing if one != found.reference]:
        why = f"{observation.summary}; shown before: {', '.join(others)}"
        doubt = ":".join(("besides", found.reference, *sorted(others)))
        open_case(run=run, operation=operation, kind=Case.Kind.DUPLICATE, doubts=[doubt], why=why, actor=actor)
        return False
    acted = may_have_acted(operation=operation)
    if len(acted) > 1 and (observation.asked_at <= over or any(one.may_wake for one in acted)):
        return False
    return succeed(
        run=run, operation=operation, found=found, by="probe", why=observation.summary, actor=actor
    )  # fmt: skip


def fail_as_absent(*, operation_id: uuid.UUID, contract: Contract, code: str, actor: Principal) -> bool:
    """Absence was proved and the operation may not be sent again: it failed. False when it has moved meanwhile or the
    latest lookup is no proof, as when another worker has sent it since. `code` is absent or gave_up."""
    with transaction.atomic(durable=True):
        run, operation = moves.lock(operation_id=operation_id)
        probe = operation.observations.filter(source="probe").order_by("-asked_at").first()
        if operation.state != S.UNKNOWN or probe is None or probe.finding != F.ABSENT:
            return False
        attempts = sent_attempts(operation=operation)
        seen = seen_recorded(operation=operation)
        if not absence_is_conclusive(contract=contract, attempts=attempts, asked_at=probe.asked_at, seen=seen):
            return False
        why = "it is proved that nothing happened, and it may not be sent again"
        moves.move(
            run=run, operation=operation, to=S.FAILED, actor=actor, why=why, failure=probe.summary,
            failure_code=code, settled_by="probe"
        )  # fmt: skip
        resolve_by_probe(run=run, operation=operation, evidence=probe.summary, actor=actor)
        transitions.wake(run=run, mark=False)
        return True
