"""`manage.py freeze tool:billing.create_credit --reason … --as tomas`: freeze, `--lift`, or list what is frozen."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agentops import switching
from agentops.management.people import acting_as, may_not
from approvals import freezes
from approvals.services import freezing
from approvals.services.freezing import FreezeResult
from runs.models import Principal
from runs.rights import NO_RIGHT


class Command(BaseCommand):
    help = (
        "Freeze everything (all), a workflow (workflow:NAME) or a tool (tool:NAME): nothing new is sent under it. "
        "--lift ends the freeze of that scope. Without a scope it lists what is frozen."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("scope", nargs="?", help="all, workflow:NAME or tool:NAME")
        parser.add_argument("--lift", action="store_true", help="end the freeze of this scope")
        parser.add_argument("--reason", default="", help="shown on every page while it lasts, and kept")
        parser.add_argument("--as", dest="user", metavar="USER", help="the account under which it is done")

    def handle(self, *args: Any, **options: Any) -> None:
        scope: str | None = options["scope"]
        if scope is None:
            self._list()
            return
        if not options["user"]:
            raise CommandError("--as: say under which account")
        if len(options["reason"]) > 2000:
            raise CommandError("--reason: at most 2000 characters")
        principal = acting_as(options["user"])
        if options["lift"]:
            result = self._lift(scope, principal, options["reason"])
        elif scope not in switching.scopes():
            raise CommandError(f"there is no {scope!r} to freeze; there are {', '.join(switching.scopes())}")
        else:
            result = freezing.freeze(scope=scope, principal=principal, reason=options["reason"])
        if result.code == NO_RIGHT:
            raise CommandError(may_not(options["user"], "freeze or lift a freeze"))
        if not result.ok or result.freeze is None:
            raise CommandError(switching.say(code=result.code, detail=result.detail))
        reach = switching.reach(scope=scope)
        done = "lifted" if options["lift"] else "frozen"
        self.stdout.write(f"{done}: {result.freeze.what}; {reach.runs} live run(s), {reach.in_flight} in flight")

    def _lift(self, scope: str, principal: Principal, reason: str) -> FreezeResult:
        found = freezes.current().filter(scope=scope).first()
        if found is None:
            raise CommandError(f"no freeze of {scope!r} is in force")
        return freezing.lift(freeze_id=found.pk, principal=principal, reason=reason)

    def _list(self) -> None:
        found = list(freezes.current())
        for one in found:
            self.stdout.write(f"{one.scope}  since {one.since:%Y-%m-%d %H:%M:%S %Z}  by {one.by}: {one.reason}")
        if not found:
            self.stdout.write("nothing is frozen")
