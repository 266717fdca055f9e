"""What a person says became of an operation, and what rules it out: its own gaps, our record, the senders, and above
all the other side's own word. Reads only; the caller holds the locks and has had the other side asked just before.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from reconciliation.attempts import Shown, sent_attempts, shown
from reconciliation.classification import absence_is_conclusive, calls_over, conclusive_from
from reconciliation.comparison import in_words
from reconciliation.corrections import booked_as_undone, correctable, successor
from reconciliation.models import Case, Observation, Operation
from reconciliation.models.operation import OperationState
from runs import clock
from runs.canonical import digest
from runs.models import Principal
from runs.money import MAX_MINOR, Money
from runs.tools.base import Contract

V = Case.Verdict
FAILED = OperationState.FAILED
VERDICTS = (V.HAPPENED, V.DIFFERENTLY, V.DID_NOT, V.TWICE, V.NOTED, V.STANDS)
NEED_REFERENCE = (V.HAPPENED, V.DIFFERENTLY, V.TWICE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A verdict as it was given: `reference` is theirs for what counts, `other_reference` for the second record of what
    happened twice, `actual_minor` what was recorded instead of what was sent, in the operation's currency."""

    verdict: str
    evidence: str
    reference: str = ""
    other_reference: str = ""
    actual_minor: int | None = None

    @property
    def named(self) -> list[str]:
        return [one for one in (self.reference, self.other_reference) if one]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """`code` is stable, `detail` fills its sentence in `reconciliation.words`."""

    code: str
    detail: dict[str, Any] = field(default_factory=dict)


def ruled_out(*, operation: Operation, case: Case, given: Given, contract: Contract | None) -> Refusal | None:
    """Why this verdict cannot be recorded. `contract` is the tool's, None when there is no such tool any more."""
    if refused := _incomplete(operation, given):
        return refused
    if given.verdict == V.NOTED:
        return None if operation.is_settled else Refusal(code="not_settled", detail=state_of(operation))
    if given.verdict == V.STANDS:
        return _not_as_recorded(operation, case)
    if operation.is_settled:
        if refused := _no_correction(operation, given):
            return refused
    elif not operation.is_unconfirmed:
        return Refusal(code="not_unknown", detail=state_of(operation))
    if given.verdict == V.DID_NOT:
        return _may_have_happened(operation, case, contract)
    return _shown_otherwise(operation, case, given, contract)


def _not_as_recorded(operation: Operation, case: Case) -> Refusal | None:
    """Why our record of a settled operation cannot be called right: the other side has just been asked, and what it
    shows is what our record says, all of it and nothing else."""
    detail = state_of(operation)
    if not operation.is_settled:
        return Refusal(code="not_settled", detail=detail)
    asked, found = _last_asked(operation, case), _shown(operation)
    if asked is None:
        return Refusal(code="not_asked", detail=detail)
    if asked.finding == Observation.Finding.UNREACHABLE:
        return Refusal(code="unreachable", detail={**detail, "problem": asked.summary})
    if asked.finding == Observation.Finding.ABSENT and operation.state != FAILED:
        return Refusal(code="shows_nothing", detail=detail)
    stands = operation.state == OperationState.SUCCEEDED
    ours = {operation.external_reference, operation.other_reference} - {None, ""} if stands else set()
    against = [
        one.reference
        for one in found
        if one.void == bool(ours & set(one.names)) or (not one.void and one.mismatch and not operation.is_different)
    ]
    return Refusal(code="not_right", detail={**detail, "reference": ", ".join(against)}) if against else None


def _no_correction(operation: Operation, given: Given) -> Refusal | None:
    """Why our record of a settled operation cannot be corrected to this; the same evidence is asked for as ever."""
    if not correctable(operation):
        return Refusal(code="not_unknown", detail=state_of(operation))
    if given.verdict == V.DID_NOT:
        if operation.state == FAILED:
            return Refusal(code="as_recorded", detail=state_of(operation))
        return Refusal(code="reversal_booked", detail=state_of(operation)) if booked_as_undone(operation) else None
    if operation.state == FAILED:
        if other := successor(operation):
            return Refusal(code="done_anew", detail={**state_of(operation), "by": other.run.title})
        return None
    records = named_records(operation=operation, given=given)
    now = [one.reference for one in records], given.verdict == V.DIFFERENTLY, given.actual_minor
    then = (
        [one for one in (operation.external_reference, operation.other_reference) if one],
        operation.is_different and not operation.other_reference,
        operation.real_minor if operation.is_different and not operation.other_reference else None,
    )
    return Refusal(code="as_recorded", detail=state_of(operation)) if now == then else None


def takes_two(*, operation: Operation, given: Given, alone_up_to: Mapping[str, int]) -> bool:
    """Is more at stake than one person settles alone? What has no amount is settled alone."""
    records = [one.minor(sent=operation.amount_minor) or 0 for one in named_records(operation=operation, given=given)]
    most = max(stake(operation=operation), given.actual_minor or 0, sum(records))
    return beyond_one(operation=operation, minor=most, alone_up_to=alone_up_to)


def stake(*, operation: Operation) -> int:
    """The most that is known to have moved, or was to: what was sent, or what is recorded, in minor units."""
    return max(operation.amount_minor or 0, (operation.real_minor or 0) + (operation.other_minor or 0))


def beyond_one(*, operation: Operation, minor: int, alone_up_to: Mapping[str, int]) -> bool:
    """Is this more than one person answers for alone? `alone_up_to` is in minor units by currency: empty, there is no
    limit; otherwise a currency that is not named has none. What has no amount is answered for alone."""
    return bool(alone_up_to and operation.amount_minor) and minor > alone_up_to.get(operation.currency, 0)


def basis(*, case: Case, given: Given, proposer: Principal) -> str:
    """The digest of a verdict with whose it is and all that the other side has shown so far: what is confirmed."""
    seen = [
        {"names": one.names, "void": one.void, "mismatch": one.mismatch, **({"pending": True} if one.pending else {})}
        for one in _shown(case.operation)
    ]
    return digest({**asdict(given), "case": str(case.pk), "proposer": str(proposer.pk), "shown": seen})


def state_of(operation: Operation) -> dict[str, Any]:
    return {"state": operation.get_state_display().lower(), "system": operation.system}


def named_records(*, operation: Operation, given: Given) -> list[Shown]:
    """The standing records that the verdict names, in its order; what was never shown is known by that name alone."""
    known = [one for one in _shown(operation) if not one.void]
    return [
        next((one for one in known if name in one.names), Shown(names=(name,), void=False, mismatch={}))
        for name in given.named
    ]


def _incomplete(operation: Operation, given: Given) -> Refusal | None:
    """Each verdict demands its own evidence."""
    if given.verdict not in VERDICTS:
        return Refusal(code="unknown_verdict")
    if not given.evidence.strip():
        return Refusal(code="evidence_needed")
    if given.verdict in NEED_REFERENCE and not given.reference:
        return Refusal(code="reference_needed")
    amount = given.actual_minor
    if given.verdict == V.DIFFERENTLY and operation.amount_minor and (amount is None or not 0 < amount <= MAX_MINOR):
        return Refusal(code="amount_needed")
    if given.verdict == V.TWICE and given.other_reference in ("", given.reference):
        return Refusal(code="other_reference_needed")
    return None


def _shown(operation: Operation) -> list[Shown]:
    return shown(observations=operation.observations.order_by("at"))


def _last_asked(operation: Operation, case: Case) -> Observation | None:
    """The newest lookup since the case was claimed; None when the other side was not asked since."""
    asked = operation.observations.filter(source=Observation.Source.PROBE).order_by("-asked_at", "-at").first()
    return asked if asked and case.claimed_at is not None and asked.asked_at > case.claimed_at else None


def _shown_otherwise(operation: Operation, case: Case, given: Given, contract: Contract | None) -> Refusal | None:
    """Why something cannot be recorded as having happened: the verdict accounts for every record that stands, and says
    of each what the other side says. What was shown once stands until it is shown void. A name that was never shown
    counts only where the other side could not be asked, or has none and cannot know yet."""
    found, asked = _shown(operation), _last_asked(operation, case)
    standing = [one for one in found if not one.void]
    answered = asked is not None and asked.finding != Observation.Finding.UNREACHABLE
    detail = {**state_of(operation), "reference": ", ".join(one.reference for one in standing)}
    for name in given.named:
        if any(name in one.names for one in found if one.void):
            return Refusal(code="undone", detail={**detail, "reference": name})
    if not standing and asked is not None and answered and _proves_none(operation, asked, contract):
        return Refusal(code="none_recorded", detail=detail)
    if any(not set(one.names) & set(given.named) for one in standing):
        return Refusal(code="left_out", detail=detail)
    records = named_records(operation=operation, given=given)
    if standing and answered:
        strange = [one.reference for one in records if one not in standing]
        if strange:
            return Refusal(code="not_shown", detail={**detail, "named": ", ".join(strange)})
    if given.verdict == V.TWICE and records[0] == records[1]:
        return Refusal(code="same_record", detail=detail)
    return _recorded_otherwise(operation, given, [one for one in records if one in standing], detail)


def _recorded_otherwise(
    operation: Operation, given: Given, records: list[Shown], detail: dict[str, Any]
) -> Refusal | None:
    """Why the verdict does not say of these records, which were shown, what the other side says of them."""
    for one in records:
        detail = {**detail, "reference": one.reference}
        if one.pending:
            return Refusal(code="not_final", detail=detail)
        if given.verdict == V.HAPPENED and one.mismatch:
            differing = in_words(mismatch=one.mismatch, currency=operation.currency)
            return Refusal(code="not_as_sent", detail={**detail, "differing": differing})
        recorded = one.minor(sent=operation.amount_minor)
        if given.verdict == V.TWICE and operation.amount_minor and recorded is None:
            return Refusal(code="no_amount", detail=detail)
        if given.verdict == V.DIFFERENTLY and recorded is not None and given.actual_minor != recorded:
            money = str(Money(recorded, operation.currency))
            return Refusal(code="other_amount", detail={**detail, "amount": money})
    return None


def _proves_none(operation: Operation, asked: Observation, contract: Contract | None) -> bool:
    attempts = sent_attempts(operation=operation)
    if contract is None or not attempts:
        return contract is not None and contract.lookup_is_conclusive
    return absence_is_conclusive(contract=contract, attempts=attempts, asked_at=asked.asked_at, seen=False)


def _seconds_until(moment: dt.datetime) -> int:
    return max(1, round((moment - clock.now()).total_seconds() + 0.5))


def _may_have_happened(operation: Operation, case: Case, contract: Contract | None) -> Refusal | None:
    """Why "it did not happen" cannot be recorded: it frees the business key for another try, so nobody may still be
    able to make it happen, the other side may never have shown it, and where it can say so it has just said "none"."""
    detail = state_of(operation)
    attempts = sent_attempts(operation=operation)
    if any(one.can_wake for one in attempts):
        return Refusal(code="sender_may_wake", detail=detail)
    if seen := [one.reference for one in _shown(operation) if not one.void]:
        return Refusal(code="seen_recorded", detail={**detail, "reference": ", ".join(seen)})
    # nor may a call still be on its way: until its limit is over, its effect may yet come
    if attempts and clock.now() <= (over := calls_over(attempts=attempts)):
        return Refusal(code="too_early", detail={**detail, "seconds": _seconds_until(over)})
    if contract is None or not contract.lookup_is_conclusive:
        return None  # nobody can be asked who would know: the person's evidence is all there is
    asked = _last_asked(operation, case)
    if asked is None:
        return Refusal(code="not_asked", detail=detail)
    if asked.finding == Observation.Finding.UNREACHABLE:
        return Refusal(code="unreachable", detail={**detail, "problem": asked.summary})
    if attempts and asked.asked_at <= (proof := conclusive_from(contract=contract, attempts=attempts)):
        return Refusal(code="too_early", detail={**detail, "seconds": _seconds_until(proof)})
    return None
