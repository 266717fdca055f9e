"""`manage.py messenger`: send mail and call webhooks about requests, until stopped."""

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand

from agentops.telling.messenger import run_forever


class Command(BaseCommand):
    help = "Send mail and call webhooks about requests for approval; any number may run"

    def handle(self, *args: Any, **options: Any) -> None:
        stop = threading.Event()
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: stop.set())
        run_forever(stop=stop)
