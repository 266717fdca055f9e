"""A person's word on a request: immutable, one per request and principal."""

from django.db import models
from django.db.models import Q

from approvals.models.request import ApprovalRequest
from runs.ids import new_id
from runs.models import Principal


class Vote(models.Model):
    class Choice(models.TextChoices):
        APPROVE = "approve"
        REJECT = "reject"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    request = models.ForeignKey(ApprovalRequest, on_delete=models.PROTECT, related_name="votes")
    principal = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="+")
    choice = models.CharField(max_length=8, choices=Choice.choices)
    comment = models.TextField(blank=True)
    page_digest = models.CharField(max_length=64, help_text="of what the voter had before them")
    binding_digest = models.CharField(max_length=64)
    authenticated_by = models.CharField(max_length=200, help_text="how and when the session was authenticated")
    group = models.CharField(max_length=150, help_text="the membership that gave the right")
    channel = models.CharField(max_length=20)
    confirmed = models.CharField(
        max_length=14, default="click", db_default="click", help_text="what the yes came with, as the request takes it"
    )
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(name="vote_once", fields=["request", "principal"]),
            models.CheckConstraint(
                name="vote_reject_has_reason", condition=~Q(choice="reject") | ~Q(comment__regex=r"^\s*$")
            ),
        ]

    def __str__(self) -> str:
        return f"{self.principal}: {self.choice}"
