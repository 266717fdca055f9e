"""The numbered record of what happened: append-only per stream, chained by hash over the stored canonical text."""

from django.db import models

from runs.models.principal import Principal


class Event(models.Model):
    """`stream` is `run:<id>` or `system:<topic>`; `seq` counts from 1 in it without gaps; `hash` is SHA-256 of the
    previous event's hash and this one's `canonical` text."""

    id = models.BigAutoField(primary_key=True)
    stream = models.CharField(max_length=80)
    seq = models.BigIntegerField()
    at = models.DateTimeField()
    kind = models.CharField(max_length=60)
    actor = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="+")
    data = models.JSONField()
    canonical = models.TextField()
    hash = models.CharField(max_length=64)

    class Meta:
        constraints = [models.UniqueConstraint(name="event_once_per_stream", fields=["stream", "seq"])]

    def __str__(self) -> str:
        return f"{self.stream} {self.seq} {self.kind}"


class StreamHead(models.Model):
    """The last number and hash of a stream that has no row of its own to lock (runs keep theirs on the run)."""

    stream = models.CharField(max_length=80, primary_key=True)
    seq = models.BigIntegerField(default=0)
    hash = models.CharField(max_length=64, blank=True)

    def __str__(self) -> str:
        return self.stream
