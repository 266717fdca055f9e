"""`manage.py state_machines`: write docs/state-machines.md again from the declarations."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from agentops.machines import document


class Command(BaseCommand):
    help = "Write docs/state-machines.md from the models' declarations"

    def handle(self, *args: Any, **options: Any) -> None:
        path = settings.BASE_DIR / "docs" / "state-machines.md"
        path.write_text(document())
        self.stdout.write(f"wrote {path.relative_to(settings.BASE_DIR)}")
