"""One act on many runs: who asked for it and why, and what became of it for each run."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from runs.ids import new_id
from runs.models.principal import Principal
from runs.models.run import Run


class Batch(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    act = models.CharField(max_length=20)
    reason = models.TextField()
    chosen = models.CharField(max_length=300, help_text="how the runs were chosen, in words")
    principal = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="+")
    total = models.PositiveIntegerField(help_text="how many runs were chosen")
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True, blank=True, help_text="when the last run had its result")

    class Meta:
        verbose_name_plural = "batches"
        indexes = [
            models.Index(name="batch_open", fields=["created_at"], condition=Q(finished_at__isnull=True)),
            models.Index(name="batch_newest", fields=["-created_at"]),
        ]

    def __str__(self) -> str:
        return f"{self.act} on {self.total} runs"


class BatchItem(models.Model):
    id = models.BigAutoField(primary_key=True)
    batch = models.ForeignKey(Batch, on_delete=models.PROTECT, related_name="items")
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="+")
    code = models.CharField(max_length=40, blank=True, help_text="ok, or why it was refused; empty until it was tried")
    detail = models.JSONField(default=dict)
    done_at = models.DateTimeField(null=True, blank=True)
    tries = models.PositiveSmallIntegerField(default=0, db_default=0, help_text="how often somebody had it locked")
    try_after = models.DateTimeField(null=True, blank=True, help_text="when it is tried again after that")

    class Meta:
        indexes = [models.Index(name="batch_item_open", fields=["batch", "id"], condition=Q(done_at__isnull=True))]
        constraints = [
            models.UniqueConstraint(name="batch_item_once", fields=["batch", "run"]),
            models.CheckConstraint(
                name="batch_item_done_iff_result",
                condition=Q(code="", done_at__isnull=True) | (~Q(code="") & Q(done_at__isnull=False)),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.run_id}: {self.code or 'not yet'}"
