"""Who answers for whom while somebody is away; and what is set about people who answer."""

from django.contrib.auth.models import User
from django.db import models
from django.db.models import F, Q

from runs.ids import new_id
from runs.models import Principal


class Absence(models.Model):
    """From `begins` until `ends`, `stand_in` may answer what `person` may answer. It goes no further than that: nobody
    stands in for a stand-in."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    person = models.ForeignKey(User, on_delete=models.PROTECT, related_name="absences")
    stand_in = models.ForeignKey(User, on_delete=models.PROTECT, related_name="stands_in")
    begins = models.DateTimeField()
    ends = models.DateTimeField()
    note = models.CharField(max_length=300, blank=True)
    made_by = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="+")
    made_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True, help_text="it was ended early, or called off")
    ended_by = models.ForeignKey(Principal, null=True, blank=True, on_delete=models.PROTECT, related_name="+")

    class Meta:
        permissions = [("arrange_absence", "Can name stand-ins for others and set what they may approve")]
        constraints = [
            models.CheckConstraint(name="absence_has_length", condition=Q(ends__gt=F("begins"))),
            models.CheckConstraint(name="absence_of_two_people", condition=~Q(person=F("stand_in"))),
            models.CheckConstraint(
                name="absence_ended_by_somebody",
                condition=Q(ended_at__isnull=True, ended_by__isnull=True)
                | Q(ended_at__isnull=False, ended_by__isnull=False),
            ),
        ]
        indexes = [
            models.Index(name="absence_of_stand_in", fields=["stand_in", "ends"], condition=Q(ended_at__isnull=True)),
            models.Index(name="absence_of_person", fields=["person", "ends"], condition=Q(ended_at__isnull=True)),
        ]

    def __str__(self) -> str:
        return f"{self.stand_in} for {self.person}"


class Remit(models.Model):
    """What is set about a person who answers: up to how much of each currency, for which team and region."""

    user = models.OneToOneField(User, primary_key=True, on_delete=models.PROTECT, related_name="remit")
    team = models.CharField(max_length=60, blank=True)
    region = models.CharField(max_length=60, blank=True)
    limits = models.JSONField(default=dict, help_text="currency to minor units")

    def __str__(self) -> str:
        return f"remit of {self.user}"
