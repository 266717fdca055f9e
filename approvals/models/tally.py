"""Amounts in the order in which they came before the policy, by what they are counted together by."""

from django.db import models

from runs.models import Proposal


class Tally(models.Model):
    """A proposal's amount under one variable. Numbers of one value and currency are given under a lock, so a smaller
    one was committed before a larger one looked."""

    proposal = models.ForeignKey(Proposal, on_delete=models.PROTECT, related_name="tallies")
    tool = models.CharField(max_length=80)
    by = models.CharField(max_length=20)
    value = models.CharField(max_length=300)
    currency = models.CharField(max_length=3)
    amount_minor = models.BigIntegerField()
    at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(name="tally_once", fields=["proposal", "by"])]
        indexes = [models.Index(name="tally_counted", fields=["by", "value", "currency", "at"])]

    def __str__(self) -> str:
        return f"{self.amount_minor} {self.currency} for {self.by} {self.value}"
