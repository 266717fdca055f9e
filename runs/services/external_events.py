"""Storing a verified event from outside, once per event id, before anything is done about it."""

from typing import Any

from django.db import transaction
from django.db.models import F

from runs.models import ExternalEvent
from runs.nudging import nudge_relay


def receive(*, source: str, event_id: str, kind: str, payload: dict[str, Any]) -> bool:
    """Store the event; True the first time, False (and counted) when the same id was received before."""
    with transaction.atomic(durable=True):
        made = ExternalEvent.objects.bulk_create(
            [ExternalEvent(source=source, event_id=event_id, kind=kind[:100], payload=payload, times_received=0)],
            ignore_conflicts=True,
        )
        assert made
        ExternalEvent.objects.filter(source=source, event_id=event_id).update(times_received=F("times_received") + 1)
        first = ExternalEvent.objects.values_list("times_received", flat=True).get(source=source, event_id=event_id)
        nudge_relay()
    return first == 1
