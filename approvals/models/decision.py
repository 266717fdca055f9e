"""The one decision on a proposal: by people through a request, by policy alone, or by an approval that people gave
beforehand. Immutable; the kinds are told apart and can never be mixed."""

from django.db import models
from django.db.models import JSONField, Q, Value

from approvals.models.policy import PolicyVersion
from approvals.models.request import ApprovalRequest
from approvals.models.standing import StandingApproval
from approvals.models.vote import Vote
from runs.ids import new_id
from runs.models import Proposal


class Decision(models.Model):
    class Kind(models.TextChoices):
        POLICY = "policy"
        PEOPLE = "people"
        STANDING = "standing"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    kind = models.CharField(max_length=8, choices=Kind.choices)
    approved = models.BooleanField()
    proposal = models.ForeignKey(Proposal, on_delete=models.PROTECT, related_name="decisions")
    request = models.OneToOneField(
        ApprovalRequest, null=True, blank=True, on_delete=models.PROTECT, related_name="decision"
    )
    standing = models.ForeignKey(
        StandingApproval, null=True, blank=True, on_delete=models.PROTECT, related_name="decisions"
    )
    policy_version = models.ForeignKey(PolicyVersion, on_delete=models.PROTECT, related_name="+")
    rules = models.JSONField(help_text="[{id, text}] of the rules that decided, or that asked")
    votes = models.JSONField(
        default=list,
        db_default=Value([], JSONField()),
        help_text="the ids of the votes that made it; none where no people decided, or before that was kept",
    )
    binding_digest = models.CharField(max_length=64)
    decided_at = models.DateTimeField()
    valid_until = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="decision_people_iff_request",
                condition=Q(kind="people", request__isnull=False) | (~Q(kind="people") & Q(request__isnull=True)),
            ),
            models.CheckConstraint(
                name="decision_standing_iff_approval",
                condition=Q(kind="standing", standing__isnull=False) | (~Q(kind="standing") & Q(standing__isnull=True)),
            ),
            models.CheckConstraint(name="decision_policy_only_allows", condition=Q(kind="people") | Q(approved=True)),
            # one automatic decision a proposal; another needs a new proposal
            models.UniqueConstraint(name="decision_policy_once", fields=["proposal"], condition=Q(kind="policy")),
            models.UniqueConstraint(name="decision_standing_once", fields=["proposal"], condition=Q(kind="standing")),
        ]

    def made_by(self, vote: Vote) -> bool:
        """Whether it rests on this vote, which is its request's: one whose person had lost the right is not among
        those."""
        said = Vote.Choice.APPROVE if self.approved else Vote.Choice.REJECT
        return vote.choice == said and (not self.votes or str(vote.pk) in self.votes)

    def __str__(self) -> str:
        return f"{self.kind} {'yes' if self.approved else 'no'}"
