"""Something that happened to a run from outside it. A row, so that an answer before the wait is found by the wait."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from runs.ids import new_id
from runs.models.principal import Principal
from runs.models.run import Run


class Signal(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="signals")
    key = models.CharField(max_length=200, help_text="the sender's own id: the same signal twice is one")
    kind = models.CharField(max_length=60)
    payload = models.JSONField(default=dict)
    sender = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="+")
    received_at = models.DateTimeField(db_default=Now())
    applied_at = models.DateTimeField(null=True, blank=True)
    result = models.CharField(max_length=60, blank=True, help_text="applied, or why it made no difference")

    class Meta:
        constraints = [models.UniqueConstraint(name="signal_once", fields=["run", "key"])]
        indexes = [models.Index(name="signal_open", fields=["run"], condition=Q(applied_at__isnull=True))]

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"
