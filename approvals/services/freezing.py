"""Freezing and lifting. After either has returned, nothing is sent or approved under the state before it.

A sender looks under the shared half of one advisory lock, in the transaction that opens its attempt; whoever freezes or
lifts takes the whole of it. What was opened before is in flight: it is settled and asked about as always. A sender that
stands still in that transaction is waited for by several short tries: the database ends it after a while, and a try
that is over lets the other senders pass.
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.db import OperationalError, connection, transaction

from approvals import freezes
from approvals.models import Freeze
from runs import advisory, clock, record, rights
from runs.models import Principal
from runs.nudging import nudge_relay
from runs.texts import typed

PERMISSION = "approvals.freeze"
TOPIC = "freezes"
TRIES = 5  # each as long as a lock is waited for: 25 seconds together, and no statement nears its own limit
LOCK_NOT_AVAILABLE = "55P03"


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeResult:
    """`code` is ok, or a refusal: no_right, reason_needed, already_frozen, no_such_freeze, already_lifted, not_yours.
    `freeze` is the one made, found or lifted."""

    code: str
    freeze: Freeze | None = None
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.code == "ok"


def _no_right(principal: Principal, act: str, about: str) -> FreezeResult | None:
    """Looked at under the lock of the person's row, as for every act; the refusal is kept in the record."""
    if rights.entitled_held(principal=principal, permission=PERMISSION):
        return None
    record.append_system(
        topic=TOPIC, kind="freeze.refused", actor=principal, act=act, about=about, code=rights.NO_RIGHT
    )
    return FreezeResult(code=rights.NO_RIGHT)


def _alone() -> None:
    """Wait for those who are opening an attempt at this moment, and let no other begin."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [advisory.FREEZES])


def _by_tries(act: Callable[[], FreezeResult]) -> FreezeResult:
    """Do the act, each try a transaction of its own. Raises OperationalError when a sender stood still all the time."""
    for _ in range(TRIES - 1):
        try:
            return act()
        except OperationalError as problem:
            if getattr(problem.__cause__, "sqlstate", None) != LOCK_NOT_AVAILABLE:
                raise
    return act()


def freeze(*, scope: str, principal: Principal, reason: str) -> FreezeResult:
    """Hold everything of that scope (`all`, `tool:<name>` or `workflow:<name>`, which the caller knows to exist).

    Raises OperationalError when a sender stood still all the while; then nothing is frozen, and it is tried again.
    """
    reason = typed(text=reason)
    if not reason:
        return FreezeResult(code="reason_needed")
    return _by_tries(lambda: _freeze(scope, principal, reason))


def _freeze(scope: str, principal: Principal, reason: str) -> FreezeResult:
    with transaction.atomic(durable=True):
        if refused := _no_right(principal, "freeze", scope):
            return refused
        _alone()
        if found := freezes.current().filter(scope=scope).first():
            return FreezeResult(code="already_frozen", freeze=found, detail={"words": found.words})
        made = Freeze.objects.create(scope=scope, by=principal, reason=reason, since=clock.read())
        record.append_system(
            topic=TOPIC, kind="freeze.begun", actor=principal, freeze=str(made.pk), scope=scope, reason=made.reason
        )
        return FreezeResult(code="ok", freeze=made)


def lift(*, freeze_id: uuid.UUID, principal: Principal, reason: str) -> FreezeResult:
    """End a freeze. What it held goes on within moments, woken by the relay; deadlines move on by the frozen time.

    An integration lifts only what it froze itself. Raises OperationalError as `freeze` does.
    """
    reason = typed(text=reason)
    if not reason:
        return FreezeResult(code="reason_needed")
    return _by_tries(lambda: _lift(freeze_id, principal, reason))


def _lift(freeze_id: uuid.UUID, principal: Principal, reason: str) -> FreezeResult:
    with transaction.atomic(durable=True):
        if refused := _no_right(principal, "lift", str(freeze_id)):
            return refused
        _alone()
        found = Freeze.objects.select_related("by", "lifted_by").filter(pk=freeze_id).first()
        if found is None:
            return FreezeResult(code="no_such_freeze")
        if found.lifted_at is not None:
            return FreezeResult(code="already_lifted", freeze=found, detail={"by": str(found.lifted_by)})
        if principal.kind == Principal.Kind.INTEGRATION and found.by_id != principal.pk:
            return FreezeResult(code="not_yours", freeze=found, detail={"by": str(found.by)})
        found.lifted_at, found.lifted_by, found.lift_reason = clock.read(), principal, reason
        found.save(update_fields=["lifted_at", "lifted_by", "lift_reason"])
        record.append_system(
            topic=TOPIC, kind="freeze.lifted", actor=principal, freeze=str(found.pk), scope=found.scope, reason=reason
        )
        nudge_relay()
        return FreezeResult(code="ok", freeze=found)
