"""The allowed edges of every state machine, as the database's triggers read them; filled by migrations only."""

from django.db import models


class StateEdge(models.Model):
    pk = models.CompositePrimaryKey("machine", "source", "target")
    machine = models.CharField(max_length=30)
    source = models.CharField(max_length=30)
    target = models.CharField(max_length=30)

    def __str__(self) -> str:
        return f"{self.machine}: {self.source} → {self.target}"
