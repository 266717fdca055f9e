"""A settled operation was not what our record said: the entry that puts it right. What stood before is kept in it."""

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from reconciliation.models.case import Case
from reconciliation.models.operation import Operation, OperationState
from runs.models import Principal
from runs.money import Money

S = OperationState
CORRECTABLE = (S.SUCCEEDED, S.FAILED)


class Correction(models.Model):
    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="corrections")
    number = models.PositiveIntegerField(help_text="counted from 1 for each operation")
    case = models.OneToOneField(Case, on_delete=models.PROTECT, related_name="correction")
    source = models.CharField(max_length=12, choices=S.choices)
    target = models.CharField(max_length=12, choices=S.choices)
    before = models.JSONField(help_text="what our record said until then")
    evidence = models.TextField()
    corrected_by = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="+")
    confirmed_by = models.ForeignKey(Principal, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(name="correction_number_once", fields=["operation", "number"]),
            models.CheckConstraint(
                name="correction_of_settled",
                condition=Q(source__in=CORRECTABLE, target__in=CORRECTABLE),
            ),
            models.CheckConstraint(
                name="correction_confirmed_by_another",
                condition=Q(confirmed_by__isnull=True) | ~Q(confirmed_by=F("corrected_by")),
            ),
        ]

    def __str__(self) -> str:
        return f"correction {self.number} of {self.operation_id}"

    @property
    def was(self) -> str:
        """What our record said until then, in a few words."""
        return _stood(
            state=self.source, reference=self.before.get("external_reference"), minor=self.before.get("real_minor"),
            sent=self.operation.amount_minor, currency=self.operation.currency,
        )  # fmt: skip

    @property
    def by(self) -> str:
        return f"{self.corrected_by}, confirmed by {self.confirmed_by}" if self.confirmed_by else str(self.corrected_by)

    @property
    def words(self) -> str:
        """The whole of it in a sentence or two."""
        became = "it happened" if self.target == S.SUCCEEDED else "nothing of it stands"
        return f"Corrected ({self.case.label}): our record said {self.was}; {became}. {self.by}: {self.evidence}"


def _stood(*, state: str, reference: str | None, minor: int | None, sent: int | None, currency: str) -> str:
    word = S(state).label.lower()
    told = f"{word} as {reference}" if reference else word
    return f"{told} at {Money(minor, currency)}" if minor is not None and minor != sent else told
