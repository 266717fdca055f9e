"""One word of one person on several requests: written down at once, then counted vote by vote, each with its result."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from approvals.models.request import ApprovalRequest
from approvals.models.vote import Vote
from runs.ids import new_id
from runs.models import Principal


class BulkVote(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False, help_text="made with the page that asked")
    principal = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="+")
    choice = models.CharField(max_length=8, choices=Vote.Choice.choices)
    comment = models.TextField(blank=True)
    authenticated_by = models.CharField(max_length=200, help_text="how and when the session was authenticated")
    total = models.PositiveSmallIntegerField()
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True, blank=True, help_text="when the last request had its result")

    class Meta:
        indexes = [
            models.Index(name="bulk_vote_open", fields=["created_at"], condition=Q(finished_at__isnull=True)),
        ]
        constraints = [
            models.CheckConstraint(
                name="bulk_reject_has_reason", condition=~Q(choice="reject") | ~Q(comment__regex=r"^\s*$")
            ),
        ]

    def __str__(self) -> str:
        return f"{self.choice} {self.total} requests"


class BulkItem(models.Model):
    id = models.BigAutoField(primary_key=True)
    bulk = models.ForeignKey(BulkVote, on_delete=models.PROTECT, related_name="items")
    request = models.ForeignKey(ApprovalRequest, on_delete=models.PROTECT, related_name="+")
    page_digest = models.CharField(max_length=64, help_text="of what the voter had before them")
    code = models.CharField(max_length=40, blank=True, help_text="as the vote's result; empty until it was tried")
    detail = models.JSONField(default=dict)
    done_at = models.DateTimeField(null=True, blank=True)
    tries = models.PositiveSmallIntegerField(default=0, db_default=0, help_text="how often somebody had it locked")
    try_after = models.DateTimeField(null=True, blank=True, help_text="when it is tried again after that")

    class Meta:
        indexes = [models.Index(name="bulk_item_open", fields=["bulk", "id"], condition=Q(done_at__isnull=True))]
        constraints = [
            models.UniqueConstraint(name="bulk_item_once", fields=["bulk", "request"]),
            models.CheckConstraint(
                name="bulk_item_done_iff_result",
                condition=Q(code="", done_at__isnull=True) | (~Q(code="") & Q(done_at__isnull=False)),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.request_id}: {self.code or 'not yet'}"
