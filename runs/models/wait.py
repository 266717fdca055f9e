"""What a workflow waits for: a timer, an event from outside, another run's end. A row, so that no worker holds it."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from runs.ids import new_id
from runs.models.run import Run


class Wait(models.Model):
    class Kind(models.TextChoices):
        TIMER = "timer", "Timer"
        EVENT = "event", "Event"
        RUN = "run", "Run"

    class Result(models.TextChoices):
        PASSED = "passed", "The time has passed"
        CAME = "came", "The event came"
        ENDED = "ended", "The other run ended"
        LATE = "late", "It was not there in time"
        DROPPED = "dropped", "The run no longer waited for it"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="waits")
    key = models.CharField(max_length=40, help_text="the workflow's own name for it: a run waits once for each")
    kind = models.CharField(max_length=10, choices=Kind)
    event = models.CharField(max_length=60, blank=True, help_text="the event's name, for events")
    starts = models.JSONField(null=True, blank=True, help_text="workflow and input of the run to start and wait for")
    # without a constraint: checking one would lock the other run's row, and nobody ever locks two
    other = models.ForeignKey(
        Run, null=True, blank=True, on_delete=models.PROTECT, related_name="awaited_by", db_constraint=False
    )
    due_at = models.DateTimeField(null=True, blank=True, help_text="when the timer, or the patience, is over")
    began_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True, blank=True)
    result = models.CharField(max_length=10, blank=True, choices=Result)
    content = models.JSONField(default=dict, help_text="what came of it, as the workflow is shown it")

    class Meta:
        constraints = [
            models.UniqueConstraint(name="wait_once", fields=["run", "key"]),
            models.UniqueConstraint(name="wait_one_open", fields=["run"], condition=Q(ended_at__isnull=True)),
            models.CheckConstraint(
                name="wait_ended_iff_result",
                condition=Q(ended_at__isnull=True, result="") | (Q(ended_at__isnull=False) & ~Q(result="")),
            ),
            # nothing is waited for that cannot come
            models.CheckConstraint(
                name="wait_for_something",
                condition=Q(kind="timer", due_at__isnull=False)
                | (Q(kind="event") & ~Q(event=""))
                | (Q(kind="run") & (Q(other__isnull=False) | Q(starts__isnull=False))),
            ),
        ]
        indexes = [
            models.Index(name="wait_for_run", fields=["other"], condition=Q(ended_at__isnull=True)),
        ]

    def __str__(self) -> str:
        return self.words

    @property
    def words(self) -> str:
        """What is waited for, to go on after "waits for"."""
        if self.kind == self.Kind.TIMER:
            return f"the timer “{plain(self.key)}”"
        if self.kind == self.Kind.EVENT:
            return f"the event “{plain(self.event)}”"
        return f"another run: {self.other}" if self.other is not None else "another run, which it starts"


def plain(name: str) -> str:
    return name.replace("_", " ")
