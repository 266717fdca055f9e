"""Work that is done again and again: when it was last begun and finished, and what came of it."""

from django.db import models


class Recurring(models.Model):
    name = models.CharField(primary_key=True, max_length=60)
    every_seconds = models.PositiveIntegerField(help_text="how often it is begun, at the latest")
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True, help_text="when it last ended, well or not")
    result = models.CharField(max_length=300, blank=True, help_text="what it did, or what went wrong")
    failed = models.BooleanField(default=False, help_text="it ended with an error the last time")

    class Meta:
        verbose_name_plural = "recurring work"

    def __str__(self) -> str:
        return self.name
