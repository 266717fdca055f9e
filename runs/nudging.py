"""Waking the relay when a transaction commits. Only where somebody waits: the relay polls anyway."""

from django.db import connection

RELAY_CHANNEL = "agentops_relay"


def nudge_relay() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, '')", [RELAY_CHANNEL])
