"""Running totals: what may be spent under one key, held by the database whatever the code believes."""

from django.db import models
from django.db.models import F, Q


class Allowance(models.Model):
    """`key` names the total, such as `service-credits/customer-month/ACC-1093/2026-11/USD`; amounts in minor units."""

    key = models.CharField(max_length=300, primary_key=True)
    label = models.CharField(max_length=300)
    currency = models.CharField(max_length=3)
    limit_minor = models.BigIntegerField()
    reserved_minor = models.BigIntegerField(default=0, help_text="running and unknown")
    settled_minor = models.BigIntegerField(default=0, help_text="known to have happened")
    overrun_minor = models.BigIntegerField(default=0, help_text="raised only by settling at other actual values")
    # how many actions, where that is limited too; not counted elsewhere
    count_limit = models.PositiveIntegerField(null=True, blank=True)
    reserved_count = models.PositiveIntegerField(default=0, db_default=0)
    settled_count = models.PositiveIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="allowance_not_negative",
                condition=Q(limit_minor__gte=0, reserved_minor__gte=0, settled_minor__gte=0, overrun_minor__gte=0),
            ),
            models.CheckConstraint(
                name="allowance_within_limit",
                condition=Q(limit_minor__gte=F("reserved_minor") + F("settled_minor") - F("overrun_minor")),
            ),
            models.CheckConstraint(
                name="allowance_within_count",
                condition=Q(count_limit__isnull=True) | Q(count_limit__gte=F("reserved_count") + F("settled_count")),
            ),
        ]

    def __str__(self) -> str:
        return self.key
