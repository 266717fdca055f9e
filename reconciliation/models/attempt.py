"""One call to the other side. Its row is there before the call; it is closed once."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from reconciliation.models.operation import Operation
from runs.ids import new_id


class WorkerProcess(models.Model):
    """A process that may hold an open call: named so that its end can be proved by the machine it ran on
    (kernel boot, pid namespace, pid and start ticks together never come back). One that was recorded as ended and is
    there all the same registers anew, as another row."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    host = models.CharField(max_length=200)
    boot = models.CharField(max_length=80, help_text="kernel boot id and pid namespace")
    pid = models.PositiveIntegerField()
    start_ticks = models.BigIntegerField()
    started_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="worker_process_once",
                fields=["boot", "pid", "start_ticks"],
                condition=Q(ended_at__isnull=True),
            )
        ]

    def __str__(self) -> str:
        return f"{self.host} pid {self.pid}"


class Attempt(models.Model):
    class Result(models.TextChoices):
        DONE = "done", "done"
        NOT_SENT = "not_sent", "never sent"
        REFUSED = "refused", "refused"
        OVERLOADED = "overloaded", "asked to wait"
        AMBIGUOUS = "ambiguous", "no certain answer"
        SENDER_GONE = "sender_gone", "sender died"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="attempts")
    number = models.PositiveIntegerField()
    epoch = models.PositiveIntegerField()
    wire_key = models.CharField(max_length=220, help_text="identity:epoch")
    request = models.TextField(help_text="the canonical effect that was sent")
    sender = models.ForeignKey(WorkerProcess, on_delete=models.PROTECT, related_name="attempts")
    opened_at = models.DateTimeField()
    send_before = models.DateTimeField(help_text="the worker does not start the call after this")
    call_limit_seconds = models.FloatField()
    closed_at = models.DateTimeField(null=True, blank=True)
    result = models.CharField(max_length=12, choices=Result.choices, blank=True)
    detail = models.TextField(blank=True)
    answer = models.JSONField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="attempt_number_once", fields=["operation", "number"]),
            models.UniqueConstraint(name="attempt_one_open", fields=["operation"], condition=Q(closed_at__isnull=True)),
            models.CheckConstraint(
                name="attempt_closed_iff_result",
                condition=Q(closed_at__isnull=True, result="") | (Q(closed_at__isnull=False) & ~Q(result="")),
            ),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.operation_id}"

    @property
    def may_wake(self) -> bool:
        """May its sender still act? Not once it has reported, or its process is recorded as ended: then it has sent
        what it will ever send. Until then its silence proves nothing."""
        return self.result in ("", self.Result.SENDER_GONE) and self.sender.ended_at is None
