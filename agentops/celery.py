"""The worker's application. Messages are hints with a run's id; losing every one of them loses nothing."""

import logging
import os
from typing import Any

from celery import Celery
from celery.signals import after_setup_logger, celeryd_init, worker_process_init
from django.db import connection
from kombu.transport.redis import Channel, QoS

from runs.garbage import keep_what_is_here

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentops.settings")


class HintsInHand(QoS):  # type: ignore[misc]  # kombu has no types
    """Messages in hand when the broker goes are neither put back nor acknowledged: a hint is given again.

    Kombu tries both over the connection that is gone, and its error takes the worker down with every call it is making.
    """

    restore_at_shutdown = False

    def ack(self, delivery_tag: str) -> None:
        if not self.channel.closed:
            super().ack(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        if not self.channel.closed:
            super().reject(delivery_tag, requeue=requeue)


Channel.QoS = HintsInHand

app = Celery("agentops")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["agentops"])
app.conf.CELERY_DB_REUSE_MAX = 2**62  # tasks look after the connection themselves, see `keep_connection`


@celeryd_init.connect
def one_run_a_process(options: dict[str, Any] | None = None, **_: Any) -> None:
    """Refuse to start on threads: that a process which looks is not in a call at the same time is what tells a lost
    answer from a running call (`close_dead_attempt`)."""
    pool = (options or {}).get("pool") or "prefork"
    name = pool if isinstance(pool, str) else pool.__module__.rpartition(".")[2]
    if name not in ("prefork", "solo"):
        raise SystemExit(f"the worker's pool is {name}: start it with --pool=prefork, one run a process")


@worker_process_init.connect
def keep_connection(**_: Any) -> None:
    """A process of the worker keeps its connection from task to task; a broken one is noticed as a task begins."""
    connection.settings_dict |= {"CONN_MAX_AGE": None, "CONN_HEALTH_CHECKS": True}


@worker_process_init.connect
def keep_imports(**_: Any) -> None:
    keep_what_is_here()


@after_setup_logger.connect
def say_less(**_: Any) -> None:
    """Two lines a hint would bury what matters: what became of a run stands in its own record."""
    for name in ("celery.worker.strategy", "celery.app.trace"):
        logging.getLogger(name).setLevel(logging.WARNING)
