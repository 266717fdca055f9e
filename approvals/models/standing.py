"""A standing approval: a named person's yes given beforehand, for one tool and named resources, within amounts, a count
and dates. What is used of it is in `Allowance` rows, so the database holds that it is never passed."""

from django.db import models
from django.db.models import F, Q
from django_fsm import transition

from approvals.models.policy import PolicyVersion
from runs.ids import new_id
from runs.models import Principal
from runs.models.state_field import StateField


class StandingState(models.TextChoices):
    ASKED = "asked", "Not in force yet"
    IN_FORCE = "in_force", "In force"
    DECLINED = "declined", "Declined"
    WITHDRAWN = "withdrawn", "Withdrawn"
    REVOKED = "revoked", "Revoked"


class Period(models.TextChoices):
    WHOLE = "whole", "in all"
    DAY = "day", "a day"
    WEEK = "week", "a week"
    MONTH = "month", "a month"


S = StandingState
ENDED = (S.DECLINED, S.WITHDRAWN, S.REVOKED)


class StandingApproval(models.Model):
    """Its terms never change. `only` names what it is for ({variable: value}) and is never empty; the total and the
    count are for each `period`, which are UTC's days, ISO weeks and months."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    state = StateField(choices=S.choices, default=S.ASKED, max_length=10)
    tool = models.CharField(max_length=80)
    group = models.CharField(max_length=150, help_text="in whose name it is given")
    only = models.JSONField(help_text="{variable: value}; an action that lacks one is never covered")
    currency = models.CharField(max_length=3)
    each_minor = models.BigIntegerField(help_text="the most of one action")
    total_minor = models.BigIntegerField(help_text="the most of a period")
    count = models.PositiveIntegerField(help_text="how many actions a period")
    period = models.CharField(max_length=6, choices=Period.choices)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    reason = models.TextField()
    policy_version = models.ForeignKey(PolicyVersion, on_delete=models.PROTECT, related_name="+")
    one_is_enough = models.BooleanField(help_text="its author may put it in force alone")
    asked_by = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="+")
    asked_at = models.DateTimeField()
    granted_by = models.ForeignKey(Principal, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    granted_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.ForeignKey(Principal, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    ended_at = models.DateTimeField(null=True, blank=True)
    end_reason = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(name="standing_state_known", condition=Q(state__in=S.values)),
            models.CheckConstraint(
                name="standing_within_bounds",
                condition=Q(each_minor__gt=0, count__gt=0, total_minor__gte=F("each_minor"), ends_at__gt=F("starts_at"))
                & Q(currency__regex=r"^[A-Z]{3}$"),
            ),
            models.CheckConstraint(name="standing_for_something", condition=~Q(only={})),
            models.CheckConstraint(
                name="standing_granted_by_somebody",
                condition=Q(state__in=["asked", "declined", "withdrawn"], granted_by__isnull=True)
                | Q(state__in=["in_force", "revoked"], granted_by__isnull=False, granted_at__isnull=False),
            ),
            models.CheckConstraint(
                name="standing_second_person",
                condition=Q(granted_by__isnull=True) | Q(one_is_enough=True) | ~Q(granted_by=F("asked_by")),
            ),
            models.CheckConstraint(
                name="standing_ended_by_somebody",
                condition=Q(state__in=ENDED, ended_by__isnull=False, ended_at__isnull=False)
                | (~Q(state__in=ENDED) & Q(ended_by__isnull=True, ended_at__isnull=True)),
            ),
        ]
        indexes = [models.Index(name="standing_in_force", fields=["tool", "currency"], condition=Q(state="in_force"))]

    def __str__(self) -> str:
        return f"standing approval {self.short} by {self.by}"

    @property
    def short(self) -> str:
        """What people call it by."""
        return str(self.pk)[-6:]

    @property
    def people(self) -> list[Principal]:
        """Who stands behind it, each once."""
        found = [self.asked_by] if self.granted_by is None else [self.asked_by, self.granted_by]
        return list({one.pk: one for one in found}.values())

    @property
    def by(self) -> str:
        return " and ".join(one.label for one in self.people)

    @transition(field=state, source=S.ASKED, target=S.IN_FORCE)
    def grant(self) -> None:
        """A second person, or its author where one is enough, puts it in force."""

    @transition(field=state, source=S.ASKED, target=S.DECLINED)
    def decline(self) -> None:
        """A second person says no."""

    @transition(field=state, source=S.ASKED, target=S.WITHDRAWN)
    def withdraw(self) -> None:
        """Its author no longer wants it."""

    @transition(field=state, source=S.IN_FORCE, target=S.REVOKED)
    def revoke(self) -> None:
        """Nothing more is done under it, from this moment."""
