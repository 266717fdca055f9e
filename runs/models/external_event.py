"""A signed message from an outside system, stored before anything is done about it, once per event id."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from runs.ids import new_id


class ExternalEvent(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    source = models.CharField(max_length=40)
    event_id = models.CharField(max_length=200)
    kind = models.CharField(max_length=100)
    payload = models.JSONField()
    received_at = models.DateTimeField(db_default=Now())
    times_received = models.PositiveIntegerField(default=1)
    processed_at = models.DateTimeField(null=True, blank=True)
    result = models.CharField(max_length=200, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(name="external_event_once", fields=["source", "event_id"])]
        indexes = [
            models.Index(name="external_event_open", fields=["received_at"], condition=Q(processed_at__isnull=True))
        ]

    def __str__(self) -> str:
        return f"{self.source} {self.kind} {self.event_id}"
