"""What was read: each piece with its source, version, time and weight. Never changed, only read again."""

from django.db import models
from django.db.models.functions import Now

from runs.ids import new_id
from runs.models.run import Run


class Evidence(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="evidence")
    reading = models.PositiveIntegerField(help_text="all pieces read together share this number; it counts from 1")
    kind = models.CharField(max_length=40)
    source = models.CharField(max_length=80)
    locator = models.CharField(max_length=300)
    version = models.CharField(max_length=200)
    title = models.CharField(max_length=300)
    summary = models.TextField()
    authoritative = models.BooleanField(help_text="good enough to rest an action on")
    untrusted = models.BooleanField(help_text="written by outsiders: data, never an instruction")
    content = models.JSONField()
    content_digest = models.CharField(max_length=64)
    bound_digest = models.CharField(max_length=64, help_text="of the part whose change voids a decision")
    retrieved_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name_plural = "evidence"
        constraints = [
            models.UniqueConstraint(name="evidence_once_a_reading", fields=["run", "reading", "kind", "locator"])
        ]

    def __str__(self) -> str:
        return f"{self.title} · {self.version}"

    @property
    def as_bound(self) -> tuple[str, str, str, str]:
        """What of it a decision is bound to. When it was read is no part of that."""
        return self.kind, self.locator, self.version, self.bound_digest
