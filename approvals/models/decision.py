"""The one decision on a proposal: by people through a request, or by policy alone. Immutable; machine and human
decisions are told apart by kind and can never be mixed."""

from django.db import models
from django.db.models import Q

from approvals.models.policy import PolicyVersion
from approvals.models.request import ApprovalRequest
from runs.ids import new_id
from runs.models import Proposal


class Decision(models.Model):
    class Kind(models.TextChoices):
        POLICY = "policy"
        PEOPLE = "people"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    kind = models.CharField(max_length=8, choices=Kind.choices)
    approved = models.BooleanField()
    proposal = models.ForeignKey(Proposal, on_delete=models.PROTECT, related_name="decisions")
    request = models.OneToOneField(
        ApprovalRequest, null=True, blank=True, on_delete=models.PROTECT, related_name="decision"
    )
    policy_version = models.ForeignKey(PolicyVersion, on_delete=models.PROTECT, related_name="+")
    rules = models.JSONField(help_text="[{id, text}] of the rules that decided, or that asked")
    binding_digest = models.CharField(max_length=64)
    decided_at = models.DateTimeField()
    valid_until = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="decision_people_iff_request",
                condition=Q(kind="people", request__isnull=False) | Q(kind="policy", request__isnull=True),
            ),
            models.CheckConstraint(name="decision_policy_only_allows", condition=Q(kind="people") | Q(approved=True)),
            # one automatic decision a proposal; another needs a new proposal
            models.UniqueConstraint(name="decision_policy_once", fields=["proposal"], condition=Q(kind="policy")),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {'yes' if self.approved else 'no'}"
