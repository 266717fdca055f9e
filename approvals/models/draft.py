"""A change of a policy before it is in force: one open draft a policy, each save a revision that never changes."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django_fsm import transition

from approvals.models.policy import Policy, PolicyVersion
from runs.ids import new_id
from runs.models import Principal
from runs.models.state_field import StateField


class DraftState(models.TextChoices):
    WRITING = "writing", "Being written"
    ASKED = "asked", "Waiting for a second person"
    PUBLISHED = "published", "Published"
    DISCARDED = "discarded", "Discarded"


S = DraftState
OPEN = (S.WRITING, S.ASKED)


class PolicyDraft(models.Model):
    """One open draft a policy, whoever writes: two drafts would each be judged against a version that the other is
    about to replace, and it would not be plain who may publish which. `revision` is the number of the last save."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    policy = models.ForeignKey(Policy, on_delete=models.PROTECT, related_name="drafts")
    based_on = models.ForeignKey(PolicyVersion, on_delete=models.PROTECT, related_name="+")
    state = StateField(choices=S.choices, default=S.WRITING, max_length=10)
    revision = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(db_default=Now())
    asked_by = models.ForeignKey(Principal, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    asked_at = models.DateTimeField(null=True, blank=True)
    reason = models.TextField(blank=True, help_text="why it was sent back last, or discarded")
    closed_by = models.ForeignKey(Principal, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        permissions = [
            ("edit_policy", "Can write drafts of policies and ask for their publication"),
            ("publish_policy", "Can publish what somebody else has written"),
        ]
        constraints = [
            models.UniqueConstraint(name="draft_one_open_per_policy", fields=["policy"], condition=Q(state__in=OPEN)),
            models.CheckConstraint(name="draft_state_known", condition=Q(state__in=S.values)),
            models.CheckConstraint(
                name="draft_open_iff_not_closed",
                condition=Q(state__in=OPEN, closed_at__isnull=True)
                | (~Q(state__in=OPEN) & Q(closed_at__isnull=False, closed_by__isnull=False)),
            ),
            models.CheckConstraint(
                name="draft_asked_by_somebody",
                condition=~Q(state="asked") | Q(asked_by__isnull=False, asked_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"draft of {self.policy}"

    @transition(field=state, source=S.WRITING, target=S.ASKED)
    def ask(self) -> None:
        """Somebody who may write asks a second person to publish it."""

    @transition(field=state, source=S.ASKED, target=S.WRITING)
    def reopen(self) -> None:
        """It was sent back with a reason, or saved again."""

    @transition(field=state, source=S.ASKED, target=S.PUBLISHED)
    def publish(self) -> None:
        """A second person put it in force, as the next version."""

    @transition(field=state, source=[S.WRITING, S.ASKED], target=S.DISCARDED)
    def discard(self) -> None:
        """Nobody wants it any more."""


class DraftRevision(models.Model):
    """One save: the whole document, the tools and the reason as they were then, and who saved. Immutable."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    draft = models.ForeignKey(PolicyDraft, on_delete=models.PROTECT, related_name="revisions")
    number = models.PositiveIntegerField(help_text="within the draft, from 1")
    document = models.JSONField(help_text="as `PolicyDocument.stored` gives it")
    digest = models.CharField(max_length=64)
    tools = models.JSONField(help_text="names of the tools the policy would govern, in order")
    note = models.TextField(blank=True, help_text="why it changes; kept with the version")
    author = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(name="draft_revision_once", fields=["draft", "number"])]

    def __str__(self) -> str:
        return f"{self.draft}, revision {self.number}"
