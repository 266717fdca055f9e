"""A reversal: what was done is to be undone by a new action of its own, in a run of its own."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from reconciliation.models.case import Case
from reconciliation.models.operation import Operation
from runs.ids import new_id
from runs.models import Principal, Run


class Reversal(models.Model):
    """`operation` is what is undone, `reference` which of its records there; `run` the run that does it, once it was
    started. While it has not ended no other is proposed for the same operation."""

    class Origin(models.TextChoices):
        OPERATOR = "operator", "An operator"
        CASE = "case", "A case"
        CANCELLED = "cancelled", "A cancelled run"
        FAILED = "failed", "A failed run"

    class Result(models.TextChoices):
        DONE = "done", "Reversed"
        REJECTED = "rejected", "Rejected"
        CANCELLED = "cancelled", "Cancelled"
        FAILED = "failed", "Not reversed"
        DROPPED = "dropped", "Not proposed"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="reversals")
    reference = models.CharField(max_length=200, help_text="which of the other side's records is undone")
    effect = models.JSONField(help_text="of the tool that undoes, as its declaration worked it out")
    tool = models.CharField(max_length=80)
    origin = models.CharField(max_length=10, choices=Origin)
    case = models.ForeignKey(Case, null=True, blank=True, on_delete=models.PROTECT, related_name="reversals")
    after = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="then")
    proposed_by = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="+")
    reason = models.TextField()
    # without a constraint: checking one would lock another run's row, and nobody ever locks two
    run = models.OneToOneField(
        Run, null=True, blank=True, on_delete=models.PROTECT, related_name="reversal", db_constraint=False
    )
    due_at = models.DateTimeField(null=True, blank=True, help_text="something is to be done about it")
    tries = models.PositiveIntegerField(default=0, db_default=0, help_text="that failed, of what is due, in a row")
    problem = models.TextField(blank=True, default="", db_default="", help_text="why the last of them failed")
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True, blank=True)
    result = models.CharField(max_length=10, blank=True, choices=Result)
    what = models.TextField(blank=True, help_text="what came of it, in a sentence")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="reversal_one_living", fields=["operation"], condition=Q(ended_at__isnull=True)
            ),
            models.CheckConstraint(
                name="reversal_ended_iff_result",
                condition=Q(ended_at__isnull=True, result="") | (Q(ended_at__isnull=False) & ~Q(result="")),
            ),
        ]
        indexes = [models.Index(name="reversal_due", fields=["due_at"], condition=Q(due_at__isnull=False))]

    def __str__(self) -> str:
        return f"Reversal of {self.reference}"
