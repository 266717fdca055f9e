"""Addresses of other systems that are told of requests, and each delivery to them."""

from django.db import models
from django.db.models import Q

from runs.ids import new_id
from runs.models import Event, Principal


class Endpoint(models.Model):
    """An address that hears of every request. Its signing secret is derived from the installation's own key and
    `nonce`, so it is kept nowhere; a new nonce is a new secret."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    url = models.CharField(max_length=500)
    nonce = models.CharField(max_length=64)
    added_by = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="+")
    added_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True, help_text="nothing is sent there any more")
    failures = models.PositiveIntegerField(default=0, help_text="in a row")
    not_before = models.DateTimeField(null=True, blank=True, help_text="nothing is sent there before")

    class Meta:
        constraints = [
            models.UniqueConstraint(name="endpoint_once", fields=["url"], condition=Q(ended_at__isnull=True)),
        ]

    def __str__(self) -> str:
        return self.url


class Delivery(models.Model):
    """One event to one endpoint: waiting until `ended_at`, then with its result. `body` is what is sent, every time."""

    class Result(models.TextChoices):
        DELIVERED = "delivered", "Delivered"
        ENDPOINT_ENDED = "ended", "The endpoint was ended"
        GIVEN_UP = "given_up", "Given up"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    event = models.ForeignKey(Event, on_delete=models.PROTECT, related_name="+")
    endpoint = models.ForeignKey(Endpoint, on_delete=models.PROTECT, related_name="deliveries")
    body = models.TextField()
    created_at = models.DateTimeField()
    due_at = models.DateTimeField(help_text="when it is tried next")
    tries = models.PositiveIntegerField(default=0, help_text="grows with every claim")
    lease_until = models.DateTimeField(null=True, blank=True, help_text="somebody is sending it until then")
    status = models.PositiveSmallIntegerField(null=True, blank=True, help_text="of the last answer over HTTP")
    problem = models.CharField(max_length=300, blank=True, help_text="what went wrong last")
    result = models.CharField(max_length=12, choices=Result.choices, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "deliveries"
        constraints = [
            models.UniqueConstraint(name="delivery_once", fields=["event", "endpoint"]),
            models.CheckConstraint(
                name="delivery_ended_iff_result",
                condition=Q(result="", ended_at__isnull=True) | (~Q(result="") & Q(ended_at__isnull=False)),
            ),
        ]
        indexes = [
            models.Index(name="delivery_due", fields=["due_at"], condition=Q(ended_at__isnull=True)),
            models.Index(name="delivery_newest", fields=["-created_at"]),
        ]

    def __str__(self) -> str:
        return f"delivery of {self.event_id} to {self.endpoint_id}"
