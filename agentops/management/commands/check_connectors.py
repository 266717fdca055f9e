"""`manage.py check_connectors`: does each connector do what its contract declares?

Real effects are made, so it runs by itself only where nothing is real: on the demo's stand-in. For another receiver
CONNECTOR_GROUNDS names, by tool, the function that makes its ground (docs/add-a-tool.md), and --carry-out says that the
effects it makes there are wanted.
"""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.module_loading import import_string

from agentops.demo.grounds import grounds
from agentops.demo.sandbox_client import SandboxClient, SandboxDown
from runs.tools.conformance import Ground, Said, examine
from runs.tools.registry import TOOLS


class Command(BaseCommand):
    help = "Try out on the receiver itself what each tool's contract declares"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("tools", nargs="*", metavar="TOOL", help="only these; all that have a ground when left out")
        parser.add_argument(
            "--carry-out", action="store_true", help="make real effects on the grounds of CONNECTOR_GROUNDS"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if unknown := sorted(set(options["tools"]) - set(TOOLS)):
            raise CommandError(f"there is no tool {unknown[0]}; there are {', '.join(sorted(TOOLS))}")
        wanted = options["tools"] or sorted(TOOLS)
        try:
            found = _grounds(carry_out=options["carry_out"])
            broken = sum(self._examine(name, found.get(name)) for name in wanted)
        except SandboxDown as problem:
            raise CommandError(f"SANDBOX_URL: {problem}") from None
        if broken:
            raise CommandError(f"{broken} declared thing{'s are' if broken > 1 else ' is'} not as declared")

    def _examine(self, name: str, ground: Ground | None) -> int:
        """Tell what was found of one tool; how much of it is broken."""
        self.stdout.write(name)
        if ground is None:
            self.stdout.write("  not tried: it has no ground here (see CONNECTOR_GROUNDS and --carry-out)")
            return 0
        found = examine(ground=ground)
        for one in found:
            self.stdout.write(f"  {one.said:<9}  {one.declares}: {one.detail}")
        return sum(one.said == Said.BROKEN for one in found)


def _grounds(*, carry_out: bool) -> dict[str, Ground]:
    made = grounds(sandbox=SandboxClient(url=settings.SANDBOX_URL)) if settings.SANDBOX_URL else {}
    if carry_out:
        for name, at in settings.CONNECTOR_GROUNDS.items():
            try:
                made[name] = import_string(at)()
            except ImportError as problem:
                raise CommandError(f"CONNECTOR_GROUNDS: {name}: {problem}") from None
    return made
