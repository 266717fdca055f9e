"""`manage.py relay`: find what is due and hint at it to the workers, until stopped."""

import signal
from typing import Any

from django.core.management.base import BaseCommand

from agentops.relay import run_forever


class Command(BaseCommand):
    help = "Find what is due and hint at it to the workers; any number may run, one is busy"

    def handle(self, *args: Any, **options: Any) -> None:
        stop: list[bool] = []
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: stop.append(True))
        run_forever(stop=stop)
