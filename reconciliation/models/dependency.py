"""What all workers know together about a system's reads, or a tool's calls: does it answer, and when may it be called.

A row appears with the first failure, limit or rated call; where there is none, all is well and nothing is limited.
"""

from django.db import models
from django.db.models import Q

from reconciliation.models.operation import Operation


class Dependency(models.Model):
    """`name` is a system ("billing": its reads and lookups) or a tool ("billing.create_credit": its calls)."""

    name = models.CharField(primary_key=True, max_length=80)
    failures = models.PositiveIntegerField(default=0, db_default=0, help_text="of the system itself, in a row")
    last_failure = models.TextField(blank=True, default="", db_default="")
    last_failure_at = models.DateTimeField(null=True, blank=True)
    open_since = models.DateTimeField(null=True, blank=True, help_text="since when nothing is called but trials")
    ask_at = models.DateTimeField(null=True, blank=True, help_text="when one call may try whether it answers again")
    trial_until = models.DateTimeField(null=True, blank=True, help_text="one call is trying; lapses with its worker")
    not_before = models.DateTimeField(null=True, blank=True, help_text="the other side asked to be left alone until")
    free_at = models.DateTimeField(null=True, blank=True, help_text="when the next evenly spaced call is due")
    line_at = models.DateTimeField(null=True, blank=True, help_text="the end of the line of those that wait")

    class Meta:
        verbose_name_plural = "dependencies"
        constraints = [
            models.CheckConstraint(
                name="dependency_open_says_when",
                condition=Q(open_since__isnull=True, trial_until__isnull=True)
                | Q(open_since__isnull=False, ask_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class ResourceHold(models.Model):
    """An operation in flight holds what it touches. The database lets go when the operation leaves flight."""

    name = models.CharField(primary_key=True, max_length=250)
    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="holds")

    def __str__(self) -> str:
        return self.name
