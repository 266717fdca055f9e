"""The stages of a request, as they were when it was opened, with those a person added; and who is asked in each now."""

from django.contrib.auth.models import Group, User
from django.db import models
from django.db.models import F, Q

from approvals.models.request import ApprovalRequest
from approvals.requirement import Person, StageNeed
from runs.ids import new_id
from runs.models import Principal


class Stage(models.Model):
    """`quorum` people of `groups` (or `also`, whom an escalation asked), or exactly the named `person`.

    It takes answers from `opened_at` until `met_at`; one that waits its turn (`in_turn`) is opened when those before it
    have their people. What is asked never changes; a person who lost the right takes a quorum away again. A stage that
    was handed on waits for that person or group alone, though whoever satisfies it may still answer.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    request = models.ForeignKey(ApprovalRequest, on_delete=models.PROTECT, related_name="stages")
    position = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=150)
    groups = models.JSONField(default=list, help_text="names; whose members may answer")
    conditions = models.JSONField(default=dict, help_text="on the person: within_limit, team, region")
    quorum = models.PositiveSmallIntegerField()
    reject_at = models.PositiveSmallIntegerField(default=1, help_text="so many who say no end it")
    in_turn = models.BooleanField(default=False, help_text="opens when those before it have their people")
    person = models.ForeignKey(User, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    added_by = models.ForeignKey(Principal, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    added_why = models.TextField(blank=True)
    also = models.JSONField(default=list, help_text="groups that an escalation asks as well")
    handed_user = models.ForeignKey(User, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    handed_group = models.ForeignKey(Group, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    opened_at = models.DateTimeField(null=True, blank=True)
    met_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(name="stage_once", fields=["request", "position"]),
            models.CheckConstraint(name="stage_people_needed", condition=Q(quorum__gte=1, reject_at__gte=1)),
            models.CheckConstraint(
                name="stage_handed_to_one", condition=Q(handed_user__isnull=True) | Q(handed_group__isnull=True)
            ),
            models.CheckConstraint(
                name="stage_person_iff_added",
                condition=Q(person__isnull=True, added_by__isnull=True)
                | Q(person__isnull=False, added_by__isnull=False, quorum=1, groups=[], also=[], in_turn=False),
            ),
        ]
        indexes = [
            models.Index(
                name="stage_asked_now", fields=["request"], condition=Q(opened_at__isnull=False, met_at__isnull=True)
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_asked(self) -> bool:
        return self.opened_at is not None and self.met_at is None

    @property
    def need(self) -> StageNeed:
        return StageNeed(
            name=self.name,
            groups=tuple(self.groups),
            quorum=self.quorum,
            reject_at=self.reject_at,
            person=Person(**self.conditions),
        )

    @property
    def every_group(self) -> list[str]:
        return [*self.groups, *self.also]


class Prompt(models.Model):
    """What happens of its own accord while a request waits: a reminder, or another group being asked as well."""

    class Kind(models.TextChoices):
        REMIND = "remind"
        ESCALATE = "escalate"

    class Result(models.TextChoices):
        DONE = "done"
        NOT_NEEDED = "not_needed"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    request = models.ForeignKey(ApprovalRequest, on_delete=models.PROTECT, related_name="prompts")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    group = models.CharField(max_length=150, blank=True, help_text="who is asked as well")
    asked_for = models.DateTimeField(help_text="when it was due at first")
    due_at = models.DateTimeField(help_text="the same, later by what freezes have stopped the clock")
    ended_at = models.DateTimeField(null=True, blank=True)
    result = models.CharField(max_length=10, choices=Result.choices, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="prompt_group_iff_escalation",
                condition=Q(kind="remind", group="") | (Q(kind="escalate") & ~Q(group="")),
            ),
            models.CheckConstraint(name="prompt_only_later", condition=Q(due_at__gte=F("asked_for"))),
            models.CheckConstraint(
                name="prompt_ended_iff_result",
                condition=Q(result="", ended_at__isnull=True) | (~Q(result="") & Q(ended_at__isnull=False)),
            ),
        ]
        indexes = [models.Index(name="prompt_due", fields=["due_at"], condition=Q(ended_at__isnull=True))]

    def __str__(self) -> str:
        return f"{self.kind} at {self.due_at}"
