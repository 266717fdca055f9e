"""A person's word on a request: immutable, one per request and principal."""

from django.db import models
from django.db.models import F, Q

from approvals.models.request import ApprovalRequest
from approvals.models.stage import Stage
from runs.ids import new_id
from runs.models import Principal


class Vote(models.Model):
    class Choice(models.TextChoices):
        APPROVE = "approve"
        REJECT = "reject"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    request = models.ForeignKey(ApprovalRequest, on_delete=models.PROTECT, related_name="votes")
    principal = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="+")
    stage = models.ForeignKey(Stage, on_delete=models.PROTECT, related_name="votes")
    instead_of = models.ForeignKey(
        Principal, null=True, blank=True, on_delete=models.PROTECT, related_name="+", help_text="who was away"
    )
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
            models.UniqueConstraint(
                name="vote_once_instead", fields=["request", "instead_of"], condition=Q(instead_of__isnull=False)
            ),
            models.CheckConstraint(
                name="vote_not_instead_of_self",
                condition=Q(instead_of__isnull=True) | ~Q(principal=F("instead_of")),
            ),
            models.CheckConstraint(
                name="vote_reject_has_reason", condition=~Q(choice="reject") | ~Q(comment__regex=r"^\s*$")
            ),
        ]

    def __str__(self) -> str:
        return f"{self.principal}: {self.choice}"

    @property
    def counts_for(self) -> int | None:
        """The id of the user whose right it is that counts: the voter, or whom they stood in for."""
        return (self.instead_of or self.principal).user_id

    @property
    def whose(self) -> str:
        """`Anna`, or `Bert for Anna`."""
        return f"{self.principal} for {self.instead_of}" if self.instead_of is not None else str(self.principal)
