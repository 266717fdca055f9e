"""Something that happens to a run from outside: stored first, once per key, and found by the run when it waits for it.

An answer that comes before the wait is kept for it; one for a run that is over is kept as such and changes nothing.
"""

import uuid
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from runs import clock, record, transitions, waiting
from runs.models import Principal, Run, Signal
from runs.models.run import RunState

DOCUMENT = "document"  # what was asked for can be read now


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """`code` is stored, already (same key, same content), differs (same key, other content), over, or late: stored,
    but the run has waited for it before, and uses it only if it waits for the same again."""

    code: str
    signal: Signal


def send(*, run_id: uuid.UUID, key: str, kind: str, payload: dict[str, Any], sender: Principal) -> Sent:
    """Store the signal and wake the run. Raises Run.DoesNotExist."""
    with transaction.atomic(durable=True):
        run = Run.objects.select_for_update(of=("self",)).get(pk=run_id)
        before = Signal.objects.filter(run=run, key=key).first()
        if before is not None:
            same = (before.kind, before.payload, before.sender_id) == (kind, payload, sender.pk)
            return Sent(code="already" if same else "differs", signal=before)
        signal = Signal.objects.create(run=run, key=key, kind=kind, payload=payload, sender=sender)
        record.append(run=run, kind="signal.received", actor=sender, signal=str(signal.pk), about=kind, key=key)
        if run.is_over:
            _apply(signal, "the run was over")
            return Sent(code="over", signal=signal)
        transitions.wake(run=run)
        return Sent(code="stored" if waiting.expects(run=run, event=kind) else "late", signal=signal)


def unused(*, run: Run, kind: str) -> bool:
    """Is there a signal of this kind that nothing has used yet?"""
    return Signal.objects.filter(run=run, kind=kind, applied_at__isnull=True).exists()


def use(*, run: Run, kind: str, to: RunState, actor: Principal) -> bool:
    """Let what was waited for take the locked run on; False when there is no such signal. All unused ones of the kind
    are used up: the run reads everything again anyway."""
    found = list(Signal.objects.select_for_update(of=("self",)).filter(run=run, kind=kind, applied_at__isnull=True))
    for signal in found:
        _apply(signal, "applied")
    if found:
        transitions.move(run=run, to=to, actor=actor, why=f"{kind}: {found[0].sender} says it is there")
    return bool(found)


def _apply(signal: Signal, result: str) -> None:
    signal.applied_at, signal.result = clock.now(), result
    signal.save(update_fields=["applied_at", "result"])
