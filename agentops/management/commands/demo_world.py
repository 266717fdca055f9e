"""`manage.py demo_world`: people, policies, the sandbox's world and a few runs. May be run again at any time."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from agentops.demo.people import ensure_people, ensure_policies
from agentops.demo.sandbox_client import SandboxClient, SandboxDown
from agentops.demo.world import PASSWORD, PEOPLE, STORIES, UNTOUCHED, sandbox_world
from agentops.starting import start_workflow
from runs.models import Principal, Run
from runs.services import principals


def sign_ins() -> str:
    width = max(len(one.username) for one in PEOPLE)
    return "\n".join(
        f"{one.username:<{width}}  {PASSWORD}   {one.first_name} {one.last_name}, {one.group}: {one.comes_for}"
        for one in PEOPLE
    )


class Command(BaseCommand):
    help = "Make the demo world: people, policies, the sandbox's customers, and runs that wait for somebody"

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DEMO:
            raise CommandError("DEMO is off: the demo world has known passwords and belongs into no real installation")
        ensure_people()
        ensure_policies()
        (Path(settings.DATA_DIR) / "demo_sign_ins.txt").write_text(sign_ins() + "\n")
        if not settings.SANDBOX_URL:
            self.stdout.write("no sandbox (SANDBOX_URL is empty): no customers and no runs were made")
            return
        sandbox = SandboxClient(url=settings.SANDBOX_URL)
        try:
            sandbox.post("world", sandbox_world((*STORIES, UNTOUCHED)))
            if settings.DEMO_RUNS and not Run.objects.exists():
                self._first_runs(sandbox)
        except SandboxDown as problem:
            raise CommandError(f"SANDBOX_URL: {problem}") from None

    def _first_runs(self, sandbox: SandboxClient) -> None:
        """Every story's ticket comes in; billing will make the first one's credit and lose the answer."""
        sandbox.post(
            "faults",
            {
                "operation": "billing.credit_notes.create",
                "mode": "execute_and_timeout",
                "times": 1,
                "match": {"invoice": STORIES[0].invoice},
            },
        )
        desk = principals.find_or_make(kind=Principal.Kind.INTEGRATION, key="integration:helpdesk", label="Help desk")
        for story in STORIES:
            start_workflow(name="service_credit", data={"ticket": story.ticket}, initiator=desk)
