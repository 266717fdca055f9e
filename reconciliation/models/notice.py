"""That a person is told of a case: when it is new, and once more when it has been open for long."""

from django.contrib.auth.models import User
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from reconciliation.models.case import Case


class CaseNotice(models.Model):
    class Stage(models.TextChoices):
        NEW = "new", "New"
        AGEING = "ageing", "Still open"

    class Result(models.TextChoices):
        SENT = "sent"
        NOT_NEEDED = "not_needed"  # settled by then, or the person may not settle it
        NOT_WANTED = "not_wanted"
        NO_ADDRESS = "no_address"
        GIVEN_UP = "given_up"

    case = models.ForeignKey(Case, on_delete=models.PROTECT, related_name="notices")
    recipient = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    stage = models.CharField(max_length=8, choices=Stage.choices)
    created_at = models.DateTimeField(db_default=Now())
    due_at = models.DateTimeField(help_text="when it is sent, or tried again")
    tries = models.PositiveIntegerField(default=0, db_default=0)
    result = models.CharField(max_length=12, choices=Result.choices, blank=True, db_default="")
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="case_notice_once", fields=["case", "recipient", "stage"]),
            models.CheckConstraint(
                name="case_notice_ended_iff_result",
                condition=Q(result="", ended_at__isnull=True) | (~Q(result="") & Q(ended_at__isnull=False)),
            ),
        ]
        indexes = [models.Index(name="case_notice_due", fields=["due_at"], condition=Q(ended_at__isnull=True))]

    def __str__(self) -> str:
        return f"{self.stage} to {self.recipient}"
