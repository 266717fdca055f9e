"""What was learned about an operation, by whoever learned it: never lost, even when its finder lost the lease."""

from django.db import models
from django.db.models.functions import Now

from reconciliation.models.operation import Operation
from runs.ids import new_id
from runs.models import Principal


class Observation(models.Model):
    class Source(models.TextChoices):
        SENDER = "sender", "the call's answer"
        PROBE = "probe", "a lookup"
        EVENT = "event", "an event from the other side"
        PERSON = "person", "a person"

    class Finding(models.TextChoices):
        FOUND = "found", "exactly one, as sent"
        DIFFERENT = "different", "one, but not as sent"
        SEVERAL = "several", "more than one"
        ABSENT = "absent", "none"
        UNREACHABLE = "unreachable", "no answer"
        REFUSED = "refused", "refused"
        NO_ANSWER = "no_answer", "no certain answer"
        NOT_SENT = "not_sent", "never sent"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="observations")
    source = models.CharField(max_length=8, choices=Source.choices)
    finding = models.CharField(max_length=12, choices=Finding.choices)
    conclusive = models.BooleanField(default=False)
    summary = models.TextField()
    raw = models.JSONField(default=dict)
    actor = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="+")
    asked_at = models.DateTimeField(help_text="when the question was put; absence counts from here")
    at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(name="observation_by_operation", fields=["operation", "at"])]

    def __str__(self) -> str:
        return f"{self.source}: {self.finding}"
