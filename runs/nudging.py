"""Waking the relay when a transaction commits. Only where somebody waits: the relay polls anyway."""

from django.db import connection

RELAY_CHANNEL = "agentops_relay"
DUE = "due"  # a run is due: the relay need not look at anything else at once


def nudge_relay(*, due: bool = False) -> None:
    """Have the relay look at once: at due runs alone (`due`), or at everything it does."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", [RELAY_CHANNEL, DUE if due else ""])
