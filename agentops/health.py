"""Whether this process lives, and whether the parts behind it work: for load balancers and alarms, without a login.

A page can be shown and a vote be counted while the broker, the relay or the workers are down; so these take no web
process out of service. `/health/ready` answers 503 for what keeps *this process* from serving, and with `?all=1` for
every part. Nothing in an answer names a host, an address or a secret.
"""

from collections.abc import Callable

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.exceptions import InconsistentMigrationHistory
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from agentops import servers
from agentops.checks_live import pending_migrations
from agentops.pages import dependencies
from agentops.relay import JOBS
from agentops.telling.messenger import NAMES as MESSENGER
from runs import advisory, clock
from runs.services import recurring

SECONDS = 2.0
LATE_SECONDS = 60  # work due for longer than this and not taken up: too few workers, or none

# an advisory lock's number is kept in two halves; the relay at work holds it
_RELAY = """
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
   AND classid = %s AND objid = %s AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
_LATE = """
SELECT coalesce(extract(epoch FROM clock_timestamp() - min(wake_at)), 0) FROM runs_run
 WHERE finished_at IS NULL AND wake_at <= statement_timestamp()
   AND (lease_until IS NULL OR lease_until < statement_timestamp())
"""


def _number(sql: str, *parameters: int) -> float:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        row = cursor.fetchone()
    return float(row[0]) if row else 0.0


def _database() -> str:
    try:
        missing = pending_migrations()
    except (DatabaseError, InconsistentMigrationHistory):
        return "the database cannot be used; see the log and manage.py check --database default"
    return f"the database lacks {len(missing)} migration(s); run manage.py migrate" if missing else ""


def _broker() -> str:
    try:
        servers.try_broker(url=settings.BROKER_URL, seconds=SECONDS)
    except servers.Unusable:
        return "the broker cannot be reached; runs wait in the database, and go on when it is back"
    return ""


def _relay() -> str:
    if _number(_RELAY, advisory.RELAY >> 32, advisory.RELAY & 0xFFFFFFFF):
        return ""
    return "no relay is at work; start manage.py relay, nothing due is handed to workers without it"


def _workers() -> str:
    late = _number(_LATE)
    return "" if late <= LATE_SECONDS else f"a run is due for {late:.0f} s and no worker has taken it up"


def _recurring() -> str:
    return "; ".join(f"{job.name}: {wrong}" for job, wrong in recurring.told(names=(*JOBS, *MESSENGER)) if wrong)


def _outside() -> str:
    return dependencies.trouble(now=clock.now())


def _asked_of_the_database(part: Callable[[], str]) -> str:
    try:
        return part()
    except DatabaseError:
        return "cannot be told without the database"


@never_cache
@require_safe
def live(request: HttpRequest) -> JsonResponse:
    """200 while this process answers at all."""
    return JsonResponse({"live": True})


@never_cache
@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """`{"ready": …, "parts": {"database": "ok" or what is wrong, …}}`; see the module for the status."""
    wrong = {"database": _database(), "broker": _broker()}
    asked = (("relay", _relay), ("workers", _workers), ("outside", _outside), ("recurring", _recurring))
    for name, part in asked:
        wrong[name] = "cannot be told without the database" if wrong["database"] else _asked_of_the_database(part)
    counted = wrong.values() if request.GET.get("all") == "1" else [wrong["database"]]
    serving = not any(counted)
    body = {"ready": serving, "parts": {name: words or "ok" for name, words in wrong.items()}}
    return JsonResponse(body, status=200 if serving else 503)
