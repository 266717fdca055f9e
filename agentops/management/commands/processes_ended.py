"""`manage.py processes_ended`: record what ran on this machine before it was started anew as ended."""

from typing import Any

from django.core.management.base import BaseCommand

from reconciliation.services import processes


class Command(BaseCommand):
    help = (
        "Record every process of this machine that has ended, those from before its last start among them, so that "
        "what they sent can be settled. Only where no other machine of the same name uses this database: a process "
        "of that one may still be sending."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        ended = [*processes.record_ended(), *processes.record_earlier_boots()]
        for one in ended:
            self.stdout.write(f"ended: {one}, there since {one.started_at:%Y-%m-%d %H:%M:%S %Z}")
        self.stdout.write(f"{len(ended)} recorded as ended")
