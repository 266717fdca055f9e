"""Who is to be told of what: the outbox that the record fills, a notice for each person, and how people wish it."""

from django.contrib.auth.models import User
from django.db import models
from django.db.models import Q

from approvals.models.request import ApprovalRequest
from runs.ids import new_id
from runs.models import Event


class Announcement(models.Model):
    """One line of the record about a request, still to be spread. A trigger on the record writes it, in the very
    transaction of the line, so none is lost and the path of a request knows nothing of it."""

    event = models.OneToOneField(Event, primary_key=True, on_delete=models.PROTECT, related_name="+")
    done_at = models.DateTimeField(null=True, blank=True, help_text="when everybody concerned had a row of their own")

    class Meta:
        indexes = [
            models.Index(name="announcement_to_spread", fields=["event"], condition=Q(done_at__isnull=True)),
        ]

    def __str__(self) -> str:
        return f"announcement of {self.event_id}"


class Notice(models.Model):
    """One mail to one person about one event: waiting until `ended_at`, then with its result."""

    class Kind(models.TextChoices):
        ASKED = "asked", "You are asked"
        OUTCOME = "outcome", "What became of it"
        TALK = "talk", "Somebody wrote"

    class Result(models.TextChoices):
        SENT = "sent", "Sent"
        NOT_NEEDED = "not_needed", "Not needed any more"
        NOT_WANTED = "not_wanted", "Mail not wanted"
        NO_ADDRESS = "no_address", "No address"
        GIVEN_UP = "given_up", "Given up"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False, help_text="the mail's Message-ID as well")
    event = models.ForeignKey(Event, on_delete=models.PROTECT, related_name="+")
    request = models.ForeignKey(ApprovalRequest, on_delete=models.PROTECT, related_name="notices")
    recipient = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    digest = models.BooleanField(default=False, help_text="goes out with the person's others in one mail")
    created_at = models.DateTimeField()
    due_at = models.DateTimeField(help_text="when it is tried next")
    tries = models.PositiveIntegerField(default=0, help_text="grows with every claim, so a late sender's word is known")
    lease_until = models.DateTimeField(null=True, blank=True, help_text="somebody is sending it until then")
    problem = models.CharField(max_length=300, blank=True, help_text="what went wrong last")
    result = models.CharField(max_length=12, choices=Result.choices, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="notice_once", fields=["event", "recipient"]),
            models.CheckConstraint(
                name="notice_ended_iff_result",
                condition=Q(result="", ended_at__isnull=True) | (~Q(result="") & Q(ended_at__isnull=False)),
            ),
        ]
        indexes = [
            models.Index(name="notice_due", fields=["due_at"], condition=Q(ended_at__isnull=True)),
            models.Index(name="notice_of_person", fields=["recipient"], condition=Q(ended_at__isnull=True)),
            models.Index(name="notice_newest", fields=["-ended_at"]),
        ]

    def __str__(self) -> str:
        return f"{self.kind} notice to {self.recipient}"


class Preference(models.Model):
    """How a person wishes to be told and to work; without a row, at once, with keys, in the browser's own zone."""

    class Mail(models.TextChoices):
        AT_ONCE = "at_once", "At once, one mail for each request"
        DIGEST = "digest", "Together, in one mail every few hours"
        NONE = "none", "No mail"

    user = models.OneToOneField(User, primary_key=True, on_delete=models.PROTECT, related_name="+")
    mail = models.CharField(max_length=8, choices=Mail.choices, default=Mail.AT_ONCE)
    digest_hours = models.PositiveSmallIntegerField(default=4)
    zone = models.CharField(max_length=64, blank=True, default="", db_default="", help_text="empty: the browser's own")
    keys = models.BooleanField(default=True, db_default=True, help_text="single letters act on the pages of approvals")

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="preference_hours_in_a_day", condition=Q(digest_hours__gte=1, digest_hours__lte=24)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.mail}"
