"""A freeze: what is held, by whom, why and since when, and who lifted it. Rows stay; one of a scope is in force."""

from django.db import models
from django.db.models import Q

from runs.ids import new_id
from runs.models import Principal

EVERYTHING = "all"


class Freeze(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    scope = models.CharField(max_length=120, help_text="all, tool:<name> or workflow:<name>")
    by = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="+")
    reason = models.TextField()
    since = models.DateTimeField()
    lifted_at = models.DateTimeField(null=True, blank=True)
    lifted_by = models.ForeignKey(Principal, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    lift_reason = models.TextField(blank=True)
    # after the lift the relay moves deadlines on and wakes what parked, a part at a time
    thaw_after = models.UUIDField(null=True, blank=True, help_text="the last request whose deadline was looked at")
    thawed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        permissions = [("freeze", "Can freeze and lift freezes")]
        indexes = [
            models.Index(
                name="freeze_to_thaw",
                fields=["lifted_at"],
                condition=Q(lifted_at__isnull=False, thawed_at__isnull=True),
            ),
            models.Index(name="freeze_newest", fields=["-since"]),
        ]
        constraints = [
            models.UniqueConstraint(name="freeze_one_a_scope", fields=["scope"], condition=Q(lifted_at__isnull=True)),
            models.CheckConstraint(
                name="freeze_lifted_by_somebody",
                condition=Q(lifted_at__isnull=True, lifted_by__isnull=True, thawed_at__isnull=True)
                | Q(lifted_at__isnull=False, lifted_by__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.words

    @property
    def what(self) -> str:
        """The tool's or workflow's name; `everything`."""
        return "everything" if self.scope == EVERYTHING else self.scope.partition(":")[2]

    @property
    def name(self) -> str:
        """`Tool billing.create_credit`, `Workflow …` or `Everything`."""
        kind, _, what = self.scope.partition(":")
        return f"{kind.capitalize()} {what}" if what else "Everything"

    @property
    def dialog(self) -> str:
        """The name of the dialog that lifts it."""
        return f"lift-{self.pk}"

    @property
    def words(self) -> str:
        return f"a freeze of {self.what} by {self.by}: {self.reason}"
