"""Giving an approval beforehand, and taking it back: write the terms, put them in force, decline, withdraw, revoke.

Each act looks at the person's right under its locks (users, then the standing approval); every refusal is recorded in
`system:standing` with its own code, and the sentences are in `approvals.standing_words`.
"""

import datetime as dt
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from approvals import locks, rights
from approvals.models import PolicyVersion, StandingApproval
from approvals.models.standing import Period, StandingState
from approvals.rules import PolicyDocument, Standing
from approvals.services import policies
from approvals.standing import CONDITIONS, RESOURCES
from runs import clock, record
from runs.canonical import digest, nfc
from runs.models import Principal
from runs.money import MAX_MINOR, Money
from runs.rights import NO_RIGHT, entitled
from runs.texts import typed

TOPIC = "standing"
STOPS = "approvals.freeze"  # who may stop everything may revoke as well
LONGEST_VALUE = 300
MOST_ACTIONS = 10_000
MOVING = ["state", "granted_by", "granted_at", "ended_by", "ended_at", "end_reason"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingResult:
    """`code` is ok or a refusal's; `faults` ({field: remedy}) are set for `invalid` alone."""

    code: str
    standing: StandingApproval | None = None
    faults: dict[str, str] = field(default_factory=dict)
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.code == "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What is approved beforehand. Amounts in minor units of `each`'s currency; `total` and `count` a period."""

    tool: str
    only: Mapping[str, str]
    each: Money
    total: Money
    count: int
    period: Period
    starts_at: dt.datetime
    ends_at: dt.datetime
    reason: str


def section(*, tool: str) -> tuple[PolicyVersion, Standing] | None:
    """The version in force for the tool and how far it lets approvals be given beforehand; None: not at all."""
    version = policies.governing(tool=tool)
    if version is None:
        return None
    terms = PolicyDocument.model_validate(version.rules).standing
    return None if terms is None else (version, terms)


def seen_digest(*, standing: StandingApproval) -> str:
    """What somebody has before them who puts it in force: posted back by the page, compared under the locks."""
    return digest(_terms(standing) | {"standing": str(standing.pk), "asked_by": standing.asked_by.key})


def _terms(one: StandingApproval) -> dict[str, Any]:
    return {
        "tool": one.tool, "group": one.group, "only": one.only, "currency": one.currency,
        "each_minor": one.each_minor, "total_minor": one.total_minor, "count": one.count, "period": one.period,
        "starts_at": one.starts_at.isoformat(), "ends_at": one.ends_at.isoformat(), "reason": one.reason,
    }  # fmt: skip


def ask(*, terms: Terms, principal: Principal) -> StandingResult:
    """Write it down; it is not in force before `grant`. Refusals: no_right, not_opened, invalid (remedies by field)."""
    with transaction.atomic(durable=True):
        found = section(tool=terms.tool)
        if found is None:
            return _refuse("not_opened", "ask", principal, tool=terms.tool)
        version, allowed = found
        if not _may_grant(principal, allowed.group):
            return _refuse(NO_RIGHT, "ask", principal, group=allowed.group)
        now = clock.read()
        if faults := _faults(terms, allowed, now):
            return StandingResult(code="invalid", faults=faults)
        currency = terms.each.currency
        made = StandingApproval.objects.create(
            tool=terms.tool,
            group=allowed.group,
            only={name: nfc(value) for name, value in sorted(terms.only.items())},
            currency=currency,
            each_minor=terms.each.minor,
            total_minor=terms.total.minor,
            count=terms.count,
            period=terms.period,
            starts_at=terms.starts_at,
            ends_at=terms.ends_at,
            reason=typed(text=terms.reason),
            policy_version=version,
            one_is_enough=terms.total.minor <= int(allowed.alone_up_to.get(currency, "0")),
            asked_by=principal,
            asked_at=now,
        )
        _record("standing.asked", made, principal, one_is_enough=made.one_is_enough, **_terms(made))
        return StandingResult(code="ok", standing=made)


def _faults(terms: Terms, allowed: Standing, now: dt.datetime) -> dict[str, str]:
    """By field, why the terms cannot be approved beforehand."""
    faults: dict[str, str] = {}
    named = {name: value for name, value in terms.only.items() if value}
    if not set(named) & set(RESOURCES):
        faults["account"] = "Name an account, a ticket or an incident: a standing approval is never for everybody."
    for name, value in terms.only.items():
        if name not in CONDITIONS or not value or value != typed(text=value) or len(value) > LONGEST_VALUE:
            faults[name if name in CONDITIONS else "account"] = f"Write up to {LONGEST_VALUE} readable characters."
    most = allowed.most.get(terms.each.currency)
    if most is None or terms.total.currency != terms.each.currency:
        faults["currency"] = f"The policy lets nothing in {terms.each.currency} be approved beforehand."
    elif terms.total.minor > int(most):
        faults["total"] = f"The policy lets at most {Money(int(most), terms.each.currency)} be approved beforehand."
    if not 0 < terms.each.minor <= MAX_MINOR or terms.each.minor > terms.total.minor:
        faults["each"] = "Write an amount above zero that is not above the total."
    if not 1 <= terms.count <= MOST_ACTIONS:
        faults["count"] = f"Write a whole number from 1 to {MOST_ACTIONS}."
    if terms.ends_at <= max(terms.starts_at, now):
        faults["ends"] = "Choose a day that is still to come, after the first."
    elif terms.ends_at - terms.starts_at > dt.timedelta(days=allowed.longest_days + 1):
        faults["ends"] = f"The policy lets approvals be given beforehand for {allowed.longest_days} days at most."
    if not typed(text=terms.reason):
        faults["reason"] = "Say why: it is shown with everything that is done under it."
    return faults


def _may_grant(principal: Principal, group: str) -> bool:
    """An active person who may vote in the group, held until the transaction ends."""
    if principal.kind != Principal.Kind.PERSON or principal.user_id is None:
        return False
    locks.share_users(user_ids=[principal.user_id], groups=[group])
    return bool(rights.still_entitled(user_ids=[principal.user_id], group=group))


def _refuse(code: str, act: str, principal: Principal, **detail: Any) -> StandingResult:
    record.append_system(topic=TOPIC, kind="standing.refused", actor=principal, act=act, code=code, **detail)
    return StandingResult(code=code, detail=detail)


def _record(kind: str, one: StandingApproval, actor: Principal, **data: Any) -> None:
    record.append_system(topic=TOPIC, kind=kind, actor=actor, standing=str(one.pk), **data)


def _act(
    act: str, standing_id: uuid.UUID, principal: Principal, check: Callable[[StandingApproval], StandingResult | None]
) -> StandingResult:
    """One act on the locked row: refused, or done by `check` returning None and the edge of that name taken.

    Raises StandingApproval.DoesNotExist.
    """
    with transaction.atomic(durable=True):
        found = StandingApproval.objects.get(pk=standing_id)
        if principal.user_id is not None:
            locks.share_users(user_ids=[principal.user_id], groups=[found.group])
        one = (
            StandingApproval.objects.select_for_update(of=("self",))
            .select_related("asked_by", "granted_by", "ended_by")
            .get(pk=standing_id)
        )
        refused = check(one)
        if refused is not None:
            return refused
        edge: Callable[[], None] = getattr(one, act)
        edge()
        one.save(update_fields=MOVING)
        _record(f"standing.{one.state}", one, principal, reason=one.end_reason)
        return StandingResult(code="ok", standing=one)


def grant(*, standing_id: uuid.UUID, principal: Principal, seen: str) -> StandingResult:
    """Put it in force. `seen` is the `seen_digest` of the page.

    Refusals: no_right, closed, own (a second person is needed), page_differs, not_opened, over (a policy published
    meanwhile lets less be approved beforehand), past.
    """

    def check(one: StandingApproval) -> StandingResult | None:
        about = {"standing": str(one.pk)}
        if one.state != StandingState.ASKED:
            return _refuse("closed", "grant", principal, state=str(one.state), **about)
        if not _may_grant(principal, one.group):
            return _refuse(NO_RIGHT, "grant", principal, group=one.group, **about)
        if seen != seen_digest(standing=one):
            return _refuse("page_differs", "grant", principal, **about)
        found = section(tool=one.tool)
        if found is None or found[1].group != one.group:
            return _refuse("not_opened", "grant", principal, tool=one.tool, **about)
        alone = int(found[1].alone_up_to.get(one.currency, "0"))
        if one.asked_by_id == principal.pk and not (one.one_is_enough and one.total_minor <= alone):
            return _refuse("own", "grant", principal, **about)
        now = clock.read()
        if now >= one.ends_at:
            return _refuse("past", "grant", principal, **about)
        longest = dt.timedelta(days=found[1].longest_days + 1)
        if one.total_minor > int(found[1].most.get(one.currency, "0")) or one.ends_at - one.starts_at > longest:
            return _refuse("over", "grant", principal, **about)
        one.granted_by, one.granted_at = principal, now
        return None

    return _act("grant", standing_id, principal, check)


def decline(*, standing_id: uuid.UUID, principal: Principal, reason: str) -> StandingResult:
    """Somebody else than its author says no. Refusals: reason_needed, closed, no_right, own."""

    def check(one: StandingApproval) -> StandingResult | None:
        if one.state != StandingState.ASKED:
            return _refuse("closed", "decline", principal, standing=str(one.pk), state=str(one.state))
        if not _may_grant(principal, one.group):
            return _refuse(NO_RIGHT, "decline", principal, standing=str(one.pk), group=one.group)
        return _refuse("own_decline", "decline", principal) if one.asked_by_id == principal.pk else None

    return _ending("decline", standing_id, principal, reason, check)


def withdraw(*, standing_id: uuid.UUID, principal: Principal, reason: str) -> StandingResult:
    """Its author takes it back before it is in force. Refusals: reason_needed, closed, not_yours."""

    def check(one: StandingApproval) -> StandingResult | None:
        if one.state != StandingState.ASKED:
            return _refuse("closed", "withdraw", principal, standing=str(one.pk), state=str(one.state))
        return None if one.asked_by_id == principal.pk else _refuse("not_yours", "withdraw", principal)

    return _ending("withdraw", standing_id, principal, reason, check)


def revoke(*, standing_id: uuid.UUID, principal: Principal, reason: str) -> StandingResult:
    """Once this returns, no attempt is opened under it. What was opened before is settled and asked about as always.

    Members of its group may, and whoever may freeze. Refusals: reason_needed, closed, no_right.
    """

    def check(one: StandingApproval) -> StandingResult | None:
        if one.state != StandingState.IN_FORCE:
            return _refuse("closed", "revoke", principal, standing=str(one.pk), state=str(one.state))
        person = principal.kind == Principal.Kind.PERSON
        if _may_grant(principal, one.group) or (person and entitled(principal=principal, permission=STOPS)):
            return None
        return _refuse(NO_RIGHT, "revoke", principal, standing=str(one.pk), group=one.group)

    return _ending("revoke", standing_id, principal, reason, check)


def _ending(
    act: str,
    standing_id: uuid.UUID,
    principal: Principal,
    reason: str,
    check: Callable[[StandingApproval], StandingResult | None],
) -> StandingResult:
    reason = typed(text=reason)
    if not reason:
        return StandingResult(code="reason_needed")

    def ending(one: StandingApproval) -> StandingResult | None:
        refused = check(one)
        if refused is None:
            one.ended_by, one.ended_at, one.end_reason = principal, clock.read(), reason
        return refused

    return _act(act, standing_id, principal, ending)
