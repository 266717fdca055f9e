"""A reconciliation case: an operation that no machine could settle, for a person who brings evidence."""

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django_fsm import transition

from reconciliation.models.operation import Operation
from runs.ids import new_id
from runs.models import Principal
from runs.models.state_field import StateField


class CaseState(models.TextChoices):
    OPEN = "open", "Open"
    CLAIMED = "claimed", "Claimed"
    RESOLVED = "resolved", "Resolved"


S = CaseState
SETTLE = "reconciliation.settle_case"  # the right to settle one
# how what they have recorded and what our record says differ: one open case at a time is about that, whatever it is
OF_THEIR_RECORD = frozenset(
    {"different", "other_amount", "other_account", "duplicate", "missing_there", "missing_here"}
)


class Case(models.Model):
    class Kind(models.TextChoices):
        NOT_CONFIRMED = "not_confirmed", "Not confirmed"
        DIFFERENT = "different", "Recorded differently"
        OTHER_AMOUNT = "other_amount", "Another amount recorded"
        OTHER_ACCOUNT = "other_account", "On another account"
        DUPLICATE = "duplicate", "Recorded more than once"
        MISSING_THERE = "missing_there", "Here, and not there"
        MISSING_HERE = "missing_here", "There, and not here"
        DOUBTED = "doubted", "Our record is doubted"
        NOT_UNDONE = "not_undone", "To be undone, and could not be"

    class Verdict(models.TextChoices):
        HAPPENED = "happened", "It happened"
        DIFFERENTLY = "differently", "It happened differently"
        DID_NOT = "did_not", "It did not happen"
        TWICE = "twice", "It happened twice"
        NOTED = "noted", "Noted; put right outside"
        STANDS = "stands", "Our record is right"
        BY_PROBE = "by_probe", "Settled by asking"

    number = models.BigAutoField(primary_key=True)
    key = models.UUIDField(unique=True, default=new_id, editable=False)
    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="cases")
    kind = models.CharField(max_length=16, choices=Kind.choices)
    state = StateField(choices=S.choices, default=S.OPEN, max_length=10)
    why = models.TextField()
    # what is doubted, as codes: an open case is told each once, and what was noted is no new case, however it is said
    doubts = models.JSONField(default=list, db_default=[])
    opened_at = models.DateTimeField(db_default=Now())
    claimed_by = models.ForeignKey(Principal, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    claimed_at = models.DateTimeField(null=True, blank=True)
    verdict = models.CharField(max_length=12, choices=Verdict.choices, blank=True)
    evidence = models.TextField(blank=True)
    resolved_by = models.ForeignKey(Principal, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    resolved_at = models.DateTimeField(null=True, blank=True)
    # who confirmed the verdict of `resolved_by`, where its amount takes two
    confirmed_by = models.ForeignKey(Principal, null=True, blank=True, on_delete=models.PROTECT, related_name="+")

    class Meta:
        permissions = [("settle_case", "Can claim and settle reconciliation cases")]
        constraints = [
            models.UniqueConstraint(name="case_one_open", fields=["operation", "kind"], condition=~Q(state="resolved")),
            models.CheckConstraint(
                name="case_resolved_iff_verdict",
                condition=Q(state="resolved", resolved_at__isnull=False, resolved_by__isnull=False) & ~Q(verdict="")
                | (~Q(state="resolved") & Q(resolved_at__isnull=True, verdict="")),
            ),
            models.CheckConstraint(
                name="case_claimed_iff_owner",
                condition=Q(state="claimed", claimed_by__isnull=False, claimed_at__isnull=False) | ~Q(state="claimed"),
            ),
            models.CheckConstraint(
                name="case_confirmed_by_another",
                condition=Q(confirmed_by__isnull=True) | (Q(state="resolved") & ~Q(confirmed_by=F("resolved_by"))),
            ),
        ]

    def __str__(self) -> str:
        return self.label

    @property
    def label(self) -> str:
        return f"RC-{self.number}"

    @property
    def settled_by(self) -> str:
        """Whose verdict it is, and who confirmed it, in words."""
        return f"{self.resolved_by}, confirmed by {self.confirmed_by}" if self.confirmed_by else str(self.resolved_by)

    @property
    def dispute(self) -> str:
        """What a case about a settled operation says to whoever looks at that operation, in a sentence or two."""
        if self.verdict:
            return f"Put right outside ({self.label}): {self.why}. {self.settled_by}: {self.evidence}"
        return f"In dispute ({self.label}): {self.why.removesuffix('.')}."

    @transition(field=state, source=S.OPEN, target=S.CLAIMED)
    def claim(self) -> None:
        """Somebody works on it."""

    @transition(field=state, source=S.CLAIMED, target=S.OPEN)
    def release(self) -> None:
        """The claim lapsed or was given back."""

    @transition(field=state, source=[S.OPEN, S.CLAIMED], target=S.RESOLVED)
    def resolve(self) -> None:
        """A verdict with evidence, or a probe's finding, settled it."""


UNRESOLVED = ~Q(state=S.RESOLVED)  # open, whether somebody has claimed it or not
# what could not be undone stands as our record has it; every other case says that the record may be wrong
ABOUT_OUR_RECORD = ~Q(kind=Case.Kind.NOT_UNDONE)
# noted, and nothing has been put right in our own record since
NOTED_SINCE = Q(verdict=Case.Verdict.NOTED) & (
    Q(operation__corrected_at__isnull=True) | Q(resolved_at__gt=F("operation__corrected_at"))
)


class ProposedVerdict(models.Model):
    """A verdict whose amount takes two people, as the first of them gave it. The newest of an open case counts; nothing
    comes of it until another person confirms it."""

    number = models.BigAutoField(primary_key=True)
    case = models.ForeignKey(Case, on_delete=models.PROTECT, related_name="proposals")
    verdict = models.CharField(max_length=12, choices=Case.Verdict.choices)
    evidence = models.TextField()
    reference = models.CharField(max_length=200, blank=True)
    other_reference = models.CharField(max_length=200, blank=True)
    actual_minor = models.BigIntegerField(null=True, blank=True)
    digest = models.CharField(
        max_length=64, help_text="of the verdict, whose it is, and what the other side had shown by then"
    )
    proposed_by = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="+")
    proposed_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(name="proposed_by_case", fields=["case", "number"])]

    def __str__(self) -> str:
        return f"{self.get_verdict_display()}, proposed by {self.proposed_by}"
